package org.verbena.bench.soak;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.bench.JavaProcess;
import org.verbena.transport.RemoteMemory;

/**
 * Messages, requests, streams and one-sided operations between this process and another one, which is killed, stopped
 * and cut off during the run. Each future must complete once, each message must arrive in order, reads must return what
 * was written, and in the end all resources must be released. See bench/README.md.
 */
public final class Soak {
    /** The token of a channel's memory, at the server. */
    static final AttributeKey<byte[]> TOKEN = AttributeKey.valueOf(Soak.class, "token");

    private static final int WORKERS_OF_A_KIND = 2;

    /** Far beyond what anything takes here: a future without an outcome by then will have none. */
    private static final long OUTCOME_SECONDS = 60;

    /** What allocators and the JIT may add between the first and the last quarter of a run. */
    private static final long TOLERATED_GROWTH_KIB = 64 << 10;

    private static final int MINUTES_TO_JUDGE_MEMORY = 5;

    private final String provider;
    private final String host;
    private final int minutes;
    private final Random random;
    private final RdmaEventLoopGroup group;
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private final Queue<Channel> channels = new ConcurrentLinkedQueue<>();
    private final AtomicLong futures = new AtomicLong();
    private final AtomicLong outcomes = new AtomicLong();
    private final AtomicLong messages = new AtomicLong();
    private final AtomicLong requests = new AtomicLong();
    private final AtomicLong streamed = new AtomicLong();
    private final AtomicLong oneSided = new AtomicLong();
    private final AtomicLong connections = new AtomicLong();
    private final List<Long> residentKib = new ArrayList<>();
    private volatile boolean stopping;

    @SuppressWarnings("NullAway.Init") // run() starts it first
    private Process server;

    private volatile int messagePort;
    private volatile int streamPort;
    private int kills;
    private int stops;
    private int cuts;

    private Soak(String provider, String host, int minutes, long seed) {
        this.provider = provider;
        this.host = host;
        this.minutes = minutes;
        random = new Random(seed);
        group = new RdmaEventLoopGroup(provider, 2);
    }

    /** Options as bench/soak has them. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0 && arguments[0].equals("--report")) {
            System.exit(Report.run(Arrays.copyOfRange(arguments, 1, arguments.length)) ? 0 : 1);
        }
        String provider = "soft";
        String host = "127.0.0.1";
        int minutes = 60;
        long seed = ThreadLocalRandom.current().nextLong();
        for (int i = 0; i < arguments.length; i += 2) {
            String value = i + 1 < arguments.length ? arguments[i + 1] : "";
            switch (arguments[i]) {
                case "--minutes" -> minutes = Integer.parseInt(value);
                case "--provider" -> provider = value;
                case "--host" -> host = value;
                case "--seed" -> seed = Long.parseLong(value);
                default -> throw new IllegalArgumentException("unknown option " + arguments[i] + ", see bench/soak -h");
            }
        }
        System.out.println("soak of " + minutes + " minutes on " + provider + ", --seed " + seed);
        System.exit(new Soak(provider, host, minutes, seed).run() ? 0 : 1);
    }

    private boolean run() throws Exception {
        startServer();
        long endNanos = System.nanoTime() + TimeUnit.MINUTES.toNanos(minutes);
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < WORKERS_OF_A_KIND; i++) {
            workers.add(start("messages", this::sendMessages));
            workers.add(start("requests", this::makeRequests));
            workers.add(start("stream", this::stream));
            workers.add(start("one-sided", this::useMemory));
        }
        long nextReportNanos = System.nanoTime();
        while (System.nanoTime() - endNanos < 0) {
            if (System.nanoTime() - nextReportNanos >= 0) {
                nextReportNanos += TimeUnit.SECONDS.toNanos(minutes < 5 ? 5 : 30);
                report();
            }
            Thread.sleep(500 + random.nextInt(2_500));
            disturb();
        }
        stopping = true;
        for (Thread worker : workers) {
            worker.join(TimeUnit.SECONDS.toMillis(2 * OUTCOME_SECONDS));
            if (worker.isAlive()) {
                violations.add(worker.getName() + " hangs: " + Arrays.toString(worker.getStackTrace()));
            }
        }
        report();
        String left = endServer();
        if (!left.isEmpty()) {
            violations.add("the server: " + left);
        }
        group.shutdownGracefully(0, 10, TimeUnit.SECONDS).sync();
        String mine = SoakServer.leaks(ProviderStatistics.of(group.provider()));
        if (!mine.isEmpty()) {
            violations.add("the client: " + mine);
        }
        if (futures.get() != outcomes.get()) {
            violations.add(futures + " futures had " + outcomes + " outcomes");
        }
        if (messages.get() == 0 || requests.get() == 0 || streamed.get() == 0 || oneSided.get() == 0) {
            violations.add("there were no messages, requests, streams or one-sided operations: the run was too short");
        }
        judgeMemory();
        violations.stream().limit(20).forEach(violation -> System.out.println("VIOLATION " + violation));
        System.out.println(violations.isEmpty() ? "no violations" : violations.size() + " violations");
        return violations.isEmpty();
    }

    private void report() throws IOException {
        long resident = residentKib(ProcessHandle.current().pid());
        residentKib.add(resident);
        System.out.printf(
                "%s: %d connections, %d messages, %d requests, %d MiB streamed, %d one-sided; %d kills, %d stops, %d cuts; %d of %d futures"
                        + " told; resident %d MiB, the server %d MiB; %d violations%n",
                Duration.ofNanos(ManagementFactory.getRuntimeMXBean().getUptime() * 1_000_000)
                        .truncatedTo(java.time.temporal.ChronoUnit.SECONDS),
                connections.get(),
                messages.get(),
                requests.get(),
                streamed.get() >> 20,
                oneSided.get(),
                kills,
                stops,
                cuts,
                outcomes.get(),
                futures.get(),
                resident >> 10,
                residentKib(server.pid()) >> 10,
                violations.size());
    }

    /** What a process has of the machine's memory; 0 if it is gone. */
    static long residentKib(long pid) throws IOException {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/" + pid + "/status"))) {
                if (line.startsWith("VmRSS:")) {
                    return Long.parseLong(line.replaceAll("[^0-9]", ""));
                }
            }
        } catch (java.nio.file.NoSuchFileException gone) {
            return 0;
        }
        return 0;
    }

    /** Level means: the last quarter is no higher than the second. */
    private void judgeMemory() {
        if (minutes < MINUTES_TO_JUDGE_MEMORY) {
            return;
        }
        int quarter = residentKib.size() / 4;
        long early = residentKib.subList(quarter, 2 * quarter).stream()
                .mapToLong(Long::longValue)
                .max()
                .orElse(0);
        long late = residentKib.subList(3 * quarter, residentKib.size()).stream()
                .mapToLong(Long::longValue)
                .max()
                .orElse(0);
        System.out.println("resident at most " + (early >> 10) + " MiB in the second quarter, " + (late >> 10)
                + " MiB in the last");
        if (late > early + TOLERATED_GROWTH_KIB) {
            violations.add("memory grew from " + early + " to " + late + " KiB");
        }
    }

    // ---- what is done to the other process

    private void startServer() throws IOException {
        server = JavaProcess.start(JavaProcess.command(
                JavaProcess.permissionsAnd("-Xmx256m"),
                SoakServer.class,
                provider,
                host,
                String.valueOf(messagePort),
                String.valueOf(streamPort)));
        String[] ports = JavaProcess.awaitLine(server, SoakServer.READY).split(" ");
        messagePort = Integer.parseInt(ports[0]);
        streamPort = Integer.parseInt(ports[1]);
    }

    private String endServer() throws IOException {
        server.outputWriter().close();
        return JavaProcess.awaitLine(server, SoakServer.DONE);
    }

    private void disturb() throws IOException, InterruptedException {
        switch (random.nextInt(6)) {
            case 0 -> {
                kills++;
                server.destroyForcibly().waitFor();
                startServer();
            }
            case 1 -> {
                stops++;
                signal("-STOP");
                Thread.sleep(100 + random.nextInt(2_000));
                signal("-CONT");
            }
            default -> {
                channels.removeIf(channel -> !channel.isOpen());
                List<Channel> open = List.copyOf(channels);
                if (!open.isEmpty()) {
                    cuts++;
                    open.get(random.nextInt(open.size())).deregister(); // without a word to the peer
                }
            }
        }
    }

    private void signal(String name) throws IOException, InterruptedException {
        new ProcessBuilder("kill", name, String.valueOf(server.pid())).start().waitFor();
    }

    // ---- traffic

    /** Talks over one connection until it is tired of it or the connection ends. */
    private interface Talk {
        void talk() throws Exception;
    }

    private Thread start(String name, Talk talk) {
        return Thread.ofPlatform().name("soak-" + name).start(() -> {
            while (!stopping) {
                try {
                    talk.talk();
                } catch (ExecutionException | RuntimeException | IOException disturbed) {
                    // The connection was cut, or there is no server now: it is tried again.
                    pause();
                } catch (InterruptedException ended) {
                    return;
                } catch (Throwable failure) {
                    violations.add(name + ": " + failure);
                }
            }
        });
    }

    private static void pause() {
        try {
            Thread.sleep(50);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private <F extends Future<?>> F counted(F future) {
        futures.incrementAndGet();
        future.addListener(done -> outcomes.incrementAndGet());
        return future;
    }

    private <T> T outcome(Future<T> future, String what)
            throws ExecutionException, InterruptedException, TimeoutException {
        try {
            return counted(future).get(OUTCOME_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException hangs) {
            violations.add(what + " had no outcome within " + OUTCOME_SECONDS + " s");
            throw hangs;
        }
    }

    private RdmaClient connect(RdmaClient.Builder builder) {
        RdmaClient client = builder.group(group)
                .reconnect(false)
                .connectTimeout(Duration.ofSeconds(10))
                .connect(host, messagePort);
        connections.incrementAndGet();
        channels.add(client.channel());
        return client;
    }

    private int size() {
        ThreadLocalRandom drawn = ThreadLocalRandom.current();
        return switch (drawn.nextInt(20)) {
            case 0 -> drawn.nextInt(2 << 20);
            case 1, 2, 3 -> drawn.nextInt(64 << 10);
            default -> drawn.nextInt(512);
        };
    }

    /** A number, and content that follows from it. */
    private static void write(ByteBuf into, long number, int length) {
        into.writeLong(number);
        for (int i = 0; i < length; i++) {
            into.writeByte((int) (number * 31 + i));
        }
    }

    private void check(String what, ByteBuf message, long number) {
        int length = message.readableBytes() - Long.BYTES;
        if (length < 0 || message.getLong(message.readerIndex()) != number) {
            violations.add(what + ": number " + (length < 0 ? "none" : message.getLong(message.readerIndex()))
                    + " came where " + number + " was next");
            return;
        }
        for (int i = 0; i < length; i++) {
            if (message.getByte(message.readerIndex() + Long.BYTES + i) != (byte) (number * 31 + i)) {
                violations.add(what + ": byte " + i + " of number " + number + " is wrong");
                return;
            }
        }
    }

    private void sendMessages() throws Exception {
        AtomicLong received = new AtomicLong();
        Semaphore underWay = new Semaphore(64);
        try (RdmaClient client = connect(RdmaClient.builder().onMessage((exchange, message) -> {
            check("messages", message, received.getAndIncrement());
            messages.incrementAndGet();
            underWay.release();
        }))) {
            int count = 1 + ThreadLocalRandom.current().nextInt(5_000);
            long sent = 0;
            while (sent < count && !stopping && client.channel().isOpen()) {
                if (underWay.tryAcquire(100, TimeUnit.MILLISECONDS)) {
                    int length = size();
                    ByteBuf message = client.channel().alloc().buffer(Long.BYTES + length);
                    write(message, sent++, length);
                    counted(client.send(message));
                }
            }
            long untilNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(OUTCOME_SECONDS);
            while (received.get() < sent && client.channel().isOpen() && System.nanoTime() - untilNanos < 0) {
                Thread.sleep(1);
            }
            if (received.get() < sent && client.channel().isOpen()) {
                violations.add("messages: " + (sent - received.get()) + " of " + sent + " did not come back");
            }
        }
    }

    private void makeRequests() throws Exception {
        try (RdmaClient client = connect(RdmaClient.builder())) {
            int count = 1 + ThreadLocalRandom.current().nextInt(500);
            for (long number = 0; number < count && !stopping; number++) {
                int length = size();
                ByteBuf message = client.channel().alloc().buffer(Long.BYTES + length);
                write(message, number, length);
                Future<ByteBuf> reply = client.request(message);
                if (ThreadLocalRandom.current().nextInt(100) == 0) {
                    counted(reply);
                    if (!reply.cancel(false) && reply.isSuccess()) {
                        reply.getNow().release();
                    }
                    continue;
                }
                ByteBuf answer = outcome(reply, "a request");
                check("a reply", answer, number);
                answer.release();
                requests.incrementAndGet();
            }
        }
    }

    private void useMemory() throws Exception {
        try (RdmaClient client = connect(RdmaClient.builder())) {
            RdmaChannel channel = client.channel();
            ByteBuf token = outcome(client.request(Unpooled.EMPTY_BUFFER), "a request for a token");
            RemoteMemory memory = RemoteMemory.decode(token);
            token.release();
            byte[] expected = new byte[SoakServer.MEMORY_BYTES];
            long counter = 0;
            int count = 1 + ThreadLocalRandom.current().nextInt(1_000);
            for (int i = 0; i < count && !stopping; i++) {
                // The first bytes are the counter's.
                int offset = 8 + ThreadLocalRandom.current().nextInt(SoakServer.MEMORY_BYTES - 4_104);
                int length = 1 + ThreadLocalRandom.current().nextInt(4_096);
                byte[] content = new byte[length];
                ThreadLocalRandom.current().nextBytes(content);
                ByteBuf from = channel.alloc().buffer(length).writeBytes(content);
                counted(channel.write(memory, offset, from));
                from.release();
                System.arraycopy(content, 0, expected, offset, length);
                ByteBuf into = channel.alloc().buffer(length);
                try {
                    outcome(channel.read(memory, offset, into), "a read");
                    byte[] got = new byte[length];
                    into.getBytes(0, got);
                    if (!Arrays.equals(got, 0, length, expected, offset, offset + length)) {
                        violations.add("one-sided: what was read is not what was written");
                    }
                } finally {
                    into.release();
                }
                if (channel.capabilities().atomics()) {
                    long old = outcome(channel.fetchAndAdd(memory, 0, 3), "an atomic");
                    if (old != counter) {
                        violations.add("one-sided: the counter was " + old + " and not " + counter);
                    }
                    counter = old + 3;
                }
                oneSided.addAndGet(3);
            }
        }
    }

    private void stream() throws Exception {
        AtomicLong received = new AtomicLong();
        Channel channel = new Bootstrap()
                .group(group)
                .channel(RdmaSocketChannel.class)
                .handler(new ChannelInboundHandlerAdapter() {
                    @Override
                    public void channelRead(ChannelHandlerContext context, Object bytes) {
                        ByteBuf part = (ByteBuf) bytes;
                        long at = received.get();
                        for (int i = 0; i < part.readableBytes(); i++) {
                            if (part.getByte(part.readerIndex() + i) != (byte) ((at + i) * 7)) {
                                violations.add("stream: byte " + (at + i) + " is wrong");
                                context.close();
                                break;
                            }
                        }
                        received.addAndGet(part.readableBytes());
                        streamed.addAndGet(part.readableBytes());
                        part.release();
                    }

                    @Override
                    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
                        context.close();
                    }
                })
                .connect(host, streamPort)
                .sync()
                .channel();
        connections.incrementAndGet();
        channels.add(channel);
        try {
            long sent = 0;
            long total = ThreadLocalRandom.current().nextLong(64L << 20);
            while (sent < total && !stopping && channel.isOpen()) {
                if (!channel.isWritable() || sent - received.get() > 4 << 20) {
                    Thread.sleep(1);
                    continue;
                }
                int length = 1 + size();
                ByteBuf part = channel.alloc().buffer(length);
                for (int i = 0; i < length; i++) {
                    part.writeByte((int) ((sent + i) * 7));
                }
                sent += length;
                counted(channel.writeAndFlush(part));
            }
            long untilNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(OUTCOME_SECONDS);
            while (received.get() < sent && channel.isOpen() && System.nanoTime() - untilNanos < 0) {
                Thread.sleep(1);
            }
            if (received.get() < sent && channel.isOpen()) {
                violations.add("stream: " + (sent - received.get()) + " of " + sent + " bytes did not come back");
            }
        } finally {
            outcome(channel.close(), "a close");
        }
    }
}
