package org.verbena.bench.soak;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.bench.JavaProcess;

/**
 * Killed clients, killed servers, connects without end, a crowd of channels and a server without descriptors, one after
 * the other, and a line on each. The server's heap is small. See bench/README.md.
 */
final class Report {
    private static final String SERVER_HEAP = "-Xmx24m";

    /** For a crowd of channels, each of which takes some KiB of it. */
    private static final String CROWDED_SERVER_HEAP = "-Xmx96m";

    /** The descriptors of a server that runs out of them: its JVM takes half of them. */
    private static final int DESCRIPTORS = 160;

    private static final int WORKERS = 4;

    /** Far beyond what anything takes here. */
    private static final long LIMIT_SECONDS = 60;

    private final String provider;
    private final String host;
    private final int kills;
    private final int connects;
    private final int crowd;
    private final RdmaEventLoopGroup group;
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();

    private Report(String provider, String host, int kills, int connects, int crowd) {
        this.provider = provider;
        this.host = host;
        this.kills = kills;
        this.connects = connects;
        this.crowd = crowd;
        group = new RdmaEventLoopGroup(provider, 2);
    }

    /** Options as bench/soak has them after {@code --report}; 0 leaves something out. */
    static boolean run(String[] arguments) throws Exception {
        String provider = "soft";
        String host = "127.0.0.1";
        int kills = 200;
        int connects = 10_000;
        int crowd = 2_000;
        for (int i = 0; i < arguments.length; i += 2) {
            String value = i + 1 < arguments.length ? arguments[i + 1] : "";
            switch (arguments[i]) {
                case "--provider" -> provider = value;
                case "--host" -> host = value;
                case "--kills" -> kills = Integer.parseInt(value);
                case "--connects" -> connects = Integer.parseInt(value);
                case "--channels" -> crowd = Integer.parseInt(value);
                default -> throw new IllegalArgumentException("unknown option " + arguments[i] + ", see bench/soak -h");
            }
        }
        return new Report(provider, host, kills, connects, crowd).run();
    }

    private boolean run() throws Exception {
        System.out.println("report on " + provider + ", the server with " + SERVER_HEAP);
        try (Server server = new Server(0, List.of())) {
            if (kills > 0) {
                killClients(server);
            }
            if (connects > 0) {
                connectAndClose(server);
            }
            server.end();
        }
        if (crowd > 0) {
            try (Server server = new Server(0, List.of(), CROWDED_SERVER_HEAP)) {
                crowd(server);
                server.end();
            }
        }
        if (kills > 0) {
            killServers();
        }
        if (provider.equals("soft")) {
            exhaustDescriptors();
        }
        group.shutdownGracefully(0, 10, TimeUnit.SECONDS).sync();
        String mine = SoakServer.leaks(ProviderStatistics.of(group.provider()));
        if (!mine.isEmpty()) {
            violations.add("the client: " + mine);
        }
        violations.stream().limit(20).forEach(violation -> System.out.println("VIOLATION " + violation));
        System.out.println(violations.isEmpty() ? "no violations" : violations.size() + " violations");
        return violations.isEmpty();
    }

    // ---- the scenarios

    private void killClients(Server server) throws Exception {
        AtomicInteger left = new AtomicInteger(kills);
        AtomicBoolean over = new AtomicBoolean();
        AtomicLong replies = new AtomicLong();
        Thread honest = Thread.ofPlatform().start(() -> {
            try (RdmaClient client = builder().connect(host, server.port)) {
                while (!over.get()) {
                    exchange(client, 1_000);
                    replies.incrementAndGet();
                }
            } catch (RuntimeException disturbed) {
                violations.add("a client was disturbed by others that were killed: " + disturbed);
            }
        });
        List<Thread> killers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            killers.add(Thread.ofPlatform().start(() -> {
                while (left.getAndDecrement() > 0) {
                    try {
                        Process client = JavaProcess.start(JavaProcess.command(
                                JavaProcess.permissionsAnd("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                                ReportClient.class,
                                provider,
                                host,
                                String.valueOf(server.port)));
                        JavaProcess.awaitLine(client, ReportClient.TALKING);
                        Thread.sleep(ThreadLocalRandom.current().nextInt(50));
                        client.destroyForcibly().waitFor();
                    } catch (IOException | InterruptedException failure) {
                        violations.add("a client to be killed: " + failure);
                    }
                }
            }));
        }
        for (Thread killer : killers) {
            killer.join();
        }
        long millis = server.awaitConnections(1);
        over.set(true);
        honest.join();
        server.awaitConnections(0);
        System.out.printf(
                "%d clients killed while each talked over 4 connections: the server had let go of all %d ms after the"
                        + " last; one that was not killed had %d replies meanwhile; %s%n",
                kills, millis, replies.get(), server.describe());
    }

    private void killServers() throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        AtomicLong replies = new AtomicLong();
        AtomicLong failed = new AtomicLong();
        AtomicLongArray each = new AtomicLongArray(WORKERS);
        List<Thread> workers = new ArrayList<>();
        Server server = new Server(0, List.of());
        int port = server.port;
        for (int i = 0; i < WORKERS; i++) {
            int worker = i;
            workers.add(Thread.ofPlatform().start(() -> {
                while (!over.get()) {
                    try (RdmaClient client = builder().connect(host, port)) {
                        while (!over.get()) {
                            exchange(client, 10 << (4 * worker));
                            replies.incrementAndGet();
                            each.incrementAndGet(worker);
                        }
                    } catch (RuntimeException killed) {
                        failed.incrementAndGet();
                        pause();
                    }
                }
            }));
        }
        long slowest = 0;
        for (int i = 0; i < kills; i++) {
            server.kill();
            server = new Server(port, List.of());
            long begin = System.nanoTime();
            for (int worker = 0; worker < WORKERS; worker++) {
                long before = each.get(worker);
                while (each.get(worker) == before) {
                    if (System.nanoTime() - begin > TimeUnit.SECONDS.toNanos(LIMIT_SECONDS)) {
                        violations.add("client " + worker + " did not come back after kill " + i);
                        break;
                    }
                    Thread.sleep(1);
                }
            }
            slowest = Math.max(slowest, System.nanoTime() - begin);
        }
        over.set(true);
        for (Thread worker : workers) {
            worker.join(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS));
            if (worker.isAlive()) {
                violations.add("a client hangs: " + Arrays.toString(worker.getStackTrace()));
            }
        }
        server.end();
        System.out.printf(
                "%d servers killed under %d clients: %d replies, %d failures told; all clients were back at most %d ms"
                        + " after the next server listened%n",
                kills, WORKERS, replies.get(), failed.get(), TimeUnit.NANOSECONDS.toMillis(slowest));
    }

    private void connectAndClose(Server server) throws Exception {
        long residentBefore = server.residentKib();
        AtomicInteger left = new AtomicInteger(connects);
        long[] nanos = new long[connects];
        List<Thread> workers = new ArrayList<>();
        long begin = System.nanoTime();
        for (int i = 0; i < WORKERS; i++) {
            workers.add(Thread.ofPlatform().start(() -> {
                int mine;
                while ((mine = left.decrementAndGet()) >= 0) {
                    long start = System.nanoTime();
                    try (RdmaClient client = builder().connect(host, server.port)) {
                        exchange(client, 64);
                    } catch (RuntimeException refused) {
                        violations.add("a connect: " + refused);
                    }
                    nanos[mine] = System.nanoTime() - start;
                }
            }));
        }
        for (Thread worker : workers) {
            worker.join();
        }
        long tookNanos = System.nanoTime() - begin;
        server.awaitConnections(0);
        Arrays.sort(nanos);
        System.out.printf(
                "%d times connect, a reply, and close, by %d at a time: %d s; the median %d us, p99 %d us, the slowest"
                        + " %d ms; resident from %d to %d MiB; %s%n",
                connects,
                WORKERS,
                TimeUnit.NANOSECONDS.toSeconds(tookNanos),
                TimeUnit.NANOSECONDS.toMicros(nanos[connects / 2]),
                TimeUnit.NANOSECONDS.toMicros(nanos[connects - 1 - connects / 100]),
                TimeUnit.NANOSECONDS.toMillis(nanos[connects - 1]),
                residentBefore >> 10,
                server.residentKib() >> 10,
                server.describe());
    }

    private void crowd(Server server) throws Exception {
        long begin = System.nanoTime();
        List<RdmaClient> clients = connectMany(server, crowd, Duration.ofSeconds(LIMIT_SECONDS));
        if (clients.size() < crowd) {
            violations.add(clients.size() + " of " + crowd + " channels came");
        }
        server.awaitConnections(clients.size());
        int replies = exchangeAll(clients);
        if (replies < clients.size()) {
            violations.add(replies + " of " + clients.size() + " channels had a reply");
        }
        String open = server.describe();
        closeAll(clients);
        server.awaitConnections(0);
        System.out.printf(
                "%d channels at once, and a reply on each: %d s; %s with all open, %s afterwards%n",
                clients.size(), TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begin), open, server.describe());
    }

    /** A server that has just begun: it meets everything for the first time when no descriptor is left. */
    private void exhaustDescriptors() throws Exception {
        try (Server server =
                new Server(0, List.of("bash", "-c", "ulimit -n " + DESCRIPTORS + "; exec \"$@\"", "bash"))) {
            List<RdmaClient> clients = connectMany(server, 2 * DESCRIPTORS, Duration.ofSeconds(5));
            int max = clients.size();
            if (max == 2 * DESCRIPTORS) {
                violations.add("a server with " + DESCRIPTORS + " descriptors took " + max + " connections");
            }
            int replies = exchangeAll(clients);
            if (replies < max) {
                violations.add("without descriptors, " + (max - replies) + " of " + max + " connections broke");
            }
            closeAll(clients);
            server.awaitConnections(0);
            long begin = System.nanoTime();
            List<RdmaClient> again = connectMany(server, max / 2, Duration.ofSeconds(10));
            if (again.size() < max / 2 || exchangeAll(again) < max / 2) {
                violations.add("after descriptors were back, " + again.size() + " of " + max / 2 + " connected");
            }
            long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
            closeAll(again);
            System.out.printf(
                    "a server with %d descriptors: %d connections, all of which talked on while more were refused;"
                            + " when they had closed, %d connected and talked in %d ms%n",
                    DESCRIPTORS, max, again.size(), millis);
            server.end();
        }
    }

    // ---- what they have in common

    private RdmaClient.Builder builder() {
        return RdmaClient.builder()
                .group(group)
                .option(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true)
                .option(RdmaChannelOption.SEND_DEPTH, 16)
                .connectTimeout(Duration.ofSeconds(10))
                .requestTimeout(Duration.ofSeconds(LIMIT_SECONDS));
    }

    private void exchange(RdmaClient client, int bytes) {
        byte[] message = new byte[bytes];
        ThreadLocalRandom.current().nextBytes(message);
        if (!Arrays.equals(client.request(message).join(), message)) {
            violations.add("a reply is not what was sent");
        }
    }

    /** Connects so many, 32 at a time; those that come. */
    private List<RdmaClient> connectMany(Server server, int count, Duration timeout) throws InterruptedException {
        List<CompletableFuture<RdmaClient>> connecting = new ArrayList<>();
        Semaphore underWay = new Semaphore(32);
        for (int i = 0; i < count; i++) {
            underWay.acquire();
            connecting.add(builder()
                    .connectTimeout(timeout)
                    .connectAsync(host, server.port)
                    .whenComplete((client, refused) -> underWay.release()));
        }
        List<RdmaClient> clients = new ArrayList<>();
        for (CompletableFuture<RdmaClient> each : connecting) {
            try {
                clients.add(each.join());
            } catch (CompletionException refused) {
                // It is missing from the list.
            }
        }
        return clients;
    }

    private int exchangeAll(List<RdmaClient> clients) {
        byte[] message = new byte[1_000];
        ThreadLocalRandom.current().nextBytes(message);
        List<CompletableFuture<byte[]>> replies = new ArrayList<>();
        for (RdmaClient client : clients) {
            replies.add(client.request(message));
        }
        int came = 0;
        for (CompletableFuture<byte[]> reply : replies) {
            try {
                came += Arrays.equals(reply.join(), message) ? 1 : 0;
            } catch (CompletionException lost) {
                // The count goes without it.
            }
        }
        return came;
    }

    private static void closeAll(List<RdmaClient> clients) {
        List<CompletableFuture<Void>> closing = new ArrayList<>();
        for (RdmaClient client : clients) {
            closing.add(client.closeAsync());
        }
        closing.forEach(CompletableFuture::join);
    }

    private static void pause() {
        try {
            Thread.sleep(10);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    /** The other process. */
    private final class Server implements AutoCloseable {
        final Process process;
        final int port;

        Server(int wantedPort, List<String> before) throws IOException {
            this(wantedPort, before, SERVER_HEAP);
        }

        Server(int wantedPort, List<String> before, String heap) throws IOException {
            List<String> command = new ArrayList<>(before);
            command.addAll(JavaProcess.command(
                    JavaProcess.permissionsAnd(heap, "-XX:+UseSerialGC"),
                    ReportServer.class,
                    provider,
                    host,
                    String.valueOf(wantedPort)));
            process = JavaProcess.start(command);
            port = Integer.parseInt(JavaProcess.awaitLine(process, ReportServer.READY));
        }

        /** Its connections, and the bytes of heap that it uses. */
        private String[] state() throws IOException {
            process.outputWriter().write("\n");
            process.outputWriter().flush();
            return JavaProcess.awaitLine(process, ReportServer.STATE).split(" ");
        }

        long residentKib() throws IOException {
            return Soak.residentKib(process.pid());
        }

        String describe() throws IOException {
            return "heap " + (Long.parseLong(state()[1]) >> 20) + " MiB, resident " + (residentKib() >> 10) + " MiB";
        }

        /** Waits until it has so many; how many milliseconds that took. */
        long awaitConnections(int count) throws IOException, InterruptedException {
            long begin = System.nanoTime();
            String open = state()[0];
            while (!open.equals(String.valueOf(count))) {
                if (System.nanoTime() - begin > TimeUnit.SECONDS.toNanos(LIMIT_SECONDS)) {
                    violations.add("the server has " + open + " connections, not " + count);
                    break;
                }
                Thread.sleep(5);
                open = state()[0];
            }
            return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        }

        void kill() throws InterruptedException {
            process.destroyForcibly().waitFor();
        }

        /** In good order: everything must be back. */
        void end() throws IOException {
            process.outputWriter().close();
            String left = JavaProcess.awaitLine(process, ReportServer.STATE);
            if (!left.isEmpty()) {
                violations.add("the server: " + left);
            }
        }

        @Override
        public void close() {
            process.destroyForcibly();
        }
    }
}
