package org.verbena.bench.overload;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.bench.JavaProcess;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.RequestException;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.provider.ProviderChoice;

/**
 * How long a client with short requests waits at a server that many clients send long ones to: with the loop's budget
 * for long reads and without, and with shedding as well. See bench/README.md.
 */
public final class Overload {
    private static final String PORT = "port ";
    private static final String READY = "ready";
    private static final String DONE = "done ";

    private static final int SHORT_BYTES = 64;
    private static final int REPLY_BYTES = 8;
    /** Long requests that each client has out. */
    private static final int WINDOW = 2;

    private static final Duration SHED_TARGET = Duration.ofMillis(5);
    private static final Duration SHED_INTERVAL = Duration.ofMillis(100);

    /** What a run has of the remedies. */
    private enum Remedy {
        NONE,
        BUDGET,
        SHEDDING
    }

    private String provider = "soft";
    private String host = "127.0.0.1";
    private int clients = 64;
    private int bytes = 1 << 20;
    private int seconds = 20;
    private int rounds = 3;
    private int rate = 1000;
    private long budgetBytes = CompletionLoopOptions.DEFAULT_TRANSFER_BUDGET_BYTES;
    private int workMicros;

    /** Longer requests are read by the server, shorter ones go in fragments. */
    private int rendezvousBytes = MessageOptions.DEVICE_DEFAULT;

    private Overload() {}

    /** Options as bench/overload has them; or what one of the two other processes does. */
    public static void main(String[] arguments) throws Exception {
        Overload bench = new Overload();
        switch (arguments.length > 0 ? arguments[0] : "") {
            case "server" -> {
                bench.read(arguments, 2);
                bench.serve(Remedy.valueOf(arguments[1]));
            }
            case "clients" -> {
                bench.read(arguments, 2);
                bench.load(Integer.parseInt(arguments[1]));
            }
            default -> {
                bench.read(arguments, 0);
                bench.measureAll(arguments);
            }
        }
    }

    private void read(String[] arguments, int from) {
        for (int i = from; i < arguments.length; i += 2) {
            String value = i + 1 < arguments.length ? arguments[i + 1] : "";
            switch (arguments[i]) {
                case "--provider" -> provider = value;
                case "--host" -> host = value;
                case "--clients" -> clients = Integer.parseInt(value);
                case "--bytes" -> bytes = Integer.parseInt(value);
                case "--seconds" -> seconds = Integer.parseInt(value);
                case "--rounds" -> rounds = Integer.parseInt(value);
                case "--rate" -> rate = Integer.parseInt(value);
                case "--budget" -> budgetBytes = Long.parseLong(value);
                case "--rendezvous" -> rendezvousBytes = Integer.parseInt(value);
                case "--work" -> workMicros = Integer.parseInt(value);
                default ->
                    throw new IllegalArgumentException("unknown option " + arguments[i] + ", see bench/overload -h");
            }
        }
    }

    private void measureAll(String[] arguments) throws Exception {
        System.out.printf(
                "%d clients with requests of %d bytes, one with %d of %d bytes a second, %d s, budget %d bytes, work %d us%n",
                clients, bytes, rate, SHORT_BYTES, seconds, budgetBytes, workMicros);
        for (int round = 1; round <= rounds; round++) {
            for (Remedy remedy : Remedy.values()) {
                measure(round, remedy, arguments);
            }
        }
    }

    private void measure(int round, Remedy remedy, String[] arguments) throws Exception {
        Process server = null;
        Process load = null;
        try {
            server = start(arguments, "server", remedy.name());
            String port = JavaProcess.awaitLine(server, PORT);
            load = start(arguments, "clients", port);
            JavaProcess.awaitLine(load, READY);
            Waits waits = new Waits(seconds * rate);
            try (RdmaClient client = RdmaClient.builder().provider(provider).connect(host, Integer.parseInt(port))) {
                ask(client, new Waits(rate)); // a second, for the compilers
                ask(client, waits);
            }
            load.getOutputStream().close();
            String done = JavaProcess.awaitLine(load, DONE);
            System.out.printf("round %d, %-8s short requests: %s; long ones: %s%n", round, remedy, waits, done);
        } finally {
            JavaProcess.end(load);
            JavaProcess.end(server);
        }
    }

    private static Process start(String[] arguments, String... first) throws IOException {
        List<String> all = new ArrayList<>(List.of(first));
        all.addAll(List.of(arguments));
        List<String> flags = JavaProcess.permissionsAnd("-Xmx1g");
        return JavaProcess.start(JavaProcess.command(flags, Overload.class, all.toArray(String[]::new)));
    }

    /** How long short requests took, from when they were due. */
    private static final class Waits {
        private final long[] nanos;
        private int count;
        private int refused;

        Waits(int max) {
            nanos = new long[max];
        }

        boolean isFull() {
            return count + refused == nanos.length;
        }

        private double millis(double part) {
            return nanos[Math.min(count - 1, (int) (count * part))] / 1e6;
        }

        @Override
        public String toString() {
            if (count == 0) {
                return "none answered, " + refused + " refused";
            }
            Arrays.sort(nanos, 0, count);
            return "p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, %d answered, %d refused"
                    .formatted(millis(0.5), millis(0.99), millis(0.999), count, refused);
        }
    }

    /** One request at a time, each counted from when it was due: those that one has held up have waited, too. */
    private void ask(RdmaClient client, Waits waits) throws Exception {
        byte[] request = new byte[SHORT_BYTES];
        long periodNanos = TimeUnit.SECONDS.toNanos(1) / rate;
        long dueNanos = System.nanoTime();
        while (!waits.isFull()) {
            for (long left; (left = dueNanos - System.nanoTime()) > 0; ) {
                LockSupport.parkNanos(left);
            }
            try {
                client.request(request).get();
                waits.nanos[waits.count++] = System.nanoTime() - dueNanos;
            } catch (ExecutionException failure) {
                if (!(failure.getCause() instanceof RequestException.Overloaded)) {
                    throw failure;
                }
                waits.refused++;
            }
            dueNanos += periodNanos;
        }
    }

    // ---- the two other processes

    private void serve(Remedy remedy) throws IOException {
        CompletionLoopOptions loops = CompletionLoopOptions.DEFAULTS.withTransferBudgetBytes(
                remedy == Remedy.NONE ? Long.MAX_VALUE : budgetBytes);
        RdmaServer.Builder builder =
                RdmaServer.builder().provider(provider).threadsPerProvider(1).loopOptions(loops);
        if (remedy == Remedy.SHEDDING) {
            builder.shedding(SHED_TARGET, SHED_INTERVAL);
        }
        long workNanos = TimeUnit.MICROSECONDS.toNanos(workMicros);
        try (RdmaServer server = builder.bind(host, 0, (exchange, message) -> {
            if (message.readableBytes() > SHORT_BYTES) {
                work(workNanos);
            }
            exchange.reply(exchange.channel().alloc().buffer(REPLY_BYTES).writeLong(message.readableBytes()));
        })) {
            System.out.println(PORT + server.port());
            System.in.transferTo(System.out); // until it is stopped
        }
    }

    private static void work(long nanos) {
        long endNanos = System.nanoTime() + nanos;
        while (System.nanoTime() - endNanos < 0) {
            Thread.onSpinWait();
        }
    }

    private void load(int port) throws Exception {
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup(
                ProviderChoice.choose(provider, null).provider().name(), 1)) {
            List<Load> all = new ArrayList<>();
            Semaphore replies = new Semaphore(0);
            LongAdder refused = new LongAdder();
            for (int i = 0; i < clients; i++) {
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .option(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, rendezvousBytes)
                        .requestTimeout(Duration.ofMinutes(5))
                        .connect(host, port);
                all.add(new Load(client, bytes, replies, refused));
            }
            long beganNanos = System.nanoTime();
            for (Load load : all) {
                for (int i = 0; i < WINDOW; i++) {
                    load.send();
                }
            }
            replies.acquire(clients); // each has been served about once
            System.out.println(READY);
            System.in.transferTo(System.out); // until it is stopped
            all.forEach(load -> load.stopped = true);
            double took = (System.nanoTime() - beganNanos) / 1e9;
            long answered = replies.availablePermits() + clients - refused.sum();
            System.out.printf("%s%.1f answered a second, %.1f refused%n", DONE, answered / took, refused.sum() / took);
        }
    }

    /** One client with long requests: each reply is followed by the next request. */
    private static final class Load {
        private final RdmaClient client;
        private final int bytes;
        private final Semaphore replies;
        private final LongAdder refused;
        volatile boolean stopped;

        Load(RdmaClient client, int bytes, Semaphore replies, LongAdder refused) {
            this.client = client;
            this.bytes = bytes;
            this.replies = replies;
            this.refused = refused;
        }

        void send() {
            ByteBuf message = client.channel().alloc().buffer(bytes, bytes);
            message.writerIndex(bytes);
            client.request(message).addListener((Future<ByteBuf> reply) -> answered(reply));
        }

        private void answered(Future<ByteBuf> reply) {
            if (stopped) {
                release(reply.getNow());
                return;
            }
            if (!reply.isSuccess()) {
                if (!(reply.cause() instanceof RequestException.Overloaded overloaded)) {
                    System.out.println(JavaProcess.FAILED + reply.cause());
                    return;
                }
                refused.increment();
                replies.release();
                long afterNanos = Math.max(overloaded.retryAfter().toNanos(), SHED_TARGET.toNanos());
                client.channel().eventLoop().schedule(this::send, afterNanos, TimeUnit.NANOSECONDS);
                return;
            }
            release(reply.getNow());
            replies.release();
            send();
        }

        private static void release(@Nullable ByteBuf reply) {
            if (reply != null) {
                reply.release();
            }
        }
    }
}
