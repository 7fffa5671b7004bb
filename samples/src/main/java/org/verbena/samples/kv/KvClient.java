package org.verbena.samples.kv;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.Measurement;
import org.verbena.samples.command.Pipelined;
import org.verbena.samples.command.Report;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** The commands of a key-value client; {@link KvConnection} does the work. */
@Command(
        name = "kv-client",
        description = "Reads a kv-server's values with RDMA READ, locks them with compare-and-swap, and puts them.",
        subcommands = {
            KvClient.Get.class,
            KvClient.Put.class,
            KvClient.List.class,
            KvClient.Lock.class,
            KvClient.Increment.class,
            KvClient.Bench.class,
            KvClient.Counters.class
        })
public final class KvClient implements Runnable {
    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(
                spec.commandLine(), "choose a command: get, put, list, lock, increment, bench or counters");
    }

    /** The first and last steps of all of them. */
    abstract static class Connected implements Callable<Integer> {
        @Mixin
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private ConnectionOptions options;

        @CommandLine.Spec
        @SuppressWarnings("NullAway.Init") // picocli sets it
        CommandLine.Model.CommandSpec spec;

        @Override
        public final Integer call() throws InterruptedException {
            check();
            try (KvConnection connection = new KvConnection(options.provider, options.host, options.remotePort())) {
                PrintWriter out = spec.commandLine().getOut();
                run(connection, out);
                out.flush();
            }
            return CommandLine.ExitCode.OK;
        }

        /** Checks the ranges of the options. */
        void check() {}

        abstract void run(KvConnection connection, PrintWriter out) throws InterruptedException;

        final void require(boolean right, String what) {
            if (!right) {
                throw new CommandLine.ParameterException(spec.commandLine(), what);
            }
        }

        final KvFormat.Item value(KvConnection connection, String key) throws InterruptedException {
            Optional<KvFormat.Item> found = KvConnection.await(connection.get(KvFormat.key(key)));
            return found.orElseThrow(() -> new CommandFailure("there is no key " + key + ": kv-client put sets it"));
        }
    }

    /** {@code get KEY}. */
    @Command(name = "get", description = "Prints a value, with two RDMA READs and without the server's program.")
    static final class Get extends Connected {
        @Parameters(paramLabel = "KEY", description = "1 to 255 bytes in UTF-8.")
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private String key;

        @Override
        void run(KvConnection connection, PrintWriter out) throws InterruptedException {
            out.println(value(connection, key).text());
        }
    }

    /** {@code put KEY VALUE}. */
    @Command(
            name = "put",
            description = "Sets a value, by a message to the server. Refused if another client has locked the key.")
    static final class Put extends Connected {
        @Parameters(index = "0", paramLabel = "KEY", description = "1 to 255 bytes in UTF-8.")
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private String key;

        @Parameters(index = "1", paramLabel = "VALUE", description = "Up to the server's --value-size in UTF-8.")
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private String value;

        @Override
        void run(KvConnection connection, PrintWriter out) throws InterruptedException {
            connection.put(KvFormat.key(key), value.getBytes(StandardCharsets.UTF_8), 0);
        }
    }

    /** {@code list}. */
    @Command(name = "list", description = "Prints all keys with version and value, read one after the other.")
    static final class List extends Connected {
        @Override
        void run(KvConnection connection, PrintWriter out) throws InterruptedException {
            connection.list(item -> out.println(item.keyText() + "\t" + item.version() / 2 + "\t" + item.text()));
        }
    }

    /** Commands that take a lock. */
    abstract static class Locking extends Connected {
        @Parameters(index = "0", paramLabel = "KEY", description = "An existing key.")
        @SuppressWarnings("NullAway.Init") // picocli sets it
        String key;

        @Option(
                names = "--lease",
                paramLabel = "MILLIS",
                defaultValue = "2000",
                description = "The lock expires after this time unless it is renewed (${DEFAULT-VALUE}).")
        long leaseMillis;

        @Option(
                names = "--wait",
                paramLabel = "MILLIS",
                defaultValue = "10000",
                description = "How long to wait while another client holds it (${DEFAULT-VALUE}).")
        long waitMillis;

        @Override
        void check() {
            require(
                    leaseMillis >= 100 && leaseMillis <= TimeUnit.DAYS.toMillis(1) && waitMillis >= 0,
                    "--lease must be 100 to 86400000 and --wait 0 or more");
        }
    }

    /** {@code lock KEY}. */
    @Command(
            name = "lock",
            description = {
                "Locks a key, by compare-and-swap in the server's memory, holds it for a while and releases it.",
                "While it is held, only the holder may put the key; everyone may get it. It is renewed while it is held; if this program"
                        + " dies, it expires after --lease."
            })
    static final class Lock extends Locking {
        @Option(
                names = "--hold",
                paramLabel = "MILLIS",
                defaultValue = "1000",
                description = "How long to hold it (${DEFAULT-VALUE}).")
        private long holdMillis;

        @Override
        void check() {
            super.check();
            require(holdMillis >= 0, "--hold must be 0 or more");
        }

        @Override
        void run(KvConnection connection, PrintWriter out) throws InterruptedException {
            long beganNanos = System.nanoTime();
            KvConnection.Lock lock = connection.lock(KvFormat.key(key), leaseMillis, waitMillis);
            out.println("locked " + key + " as owner " + connection.owner() + " after "
                    + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - beganNanos) + " ms");
            out.flush();
            long endNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(holdMillis);
            for (long left = holdMillis; left > 0; left = TimeUnit.NANOSECONDS.toMillis(endNanos - System.nanoTime())) {
                TimeUnit.MILLISECONDS.sleep(Math.min(left, leaseMillis / 3));
                lock.renew();
            }
            if (!lock.release()) {
                throw new CommandFailure(key + ": the lock expired before it was released");
            }
            out.println("released " + key);
        }
    }

    /** {@code increment KEY}. */
    @Command(
            name = "increment",
            description = "Adds 1 to a numeric value: locks it, gets it, puts it under the lock, and releases it.")
    static final class Increment extends Locking {
        @Option(
                names = "--times",
                paramLabel = "N",
                defaultValue = "1",
                description = "How many times (${DEFAULT-VALUE}).")
        private int times;

        @Override
        void check() {
            super.check();
            require(times >= 1, "--times must be 1 or more");
        }

        @Override
        void run(KvConnection connection, PrintWriter out) throws InterruptedException {
            byte[] bytes = KvFormat.key(key);
            for (int i = 0; i < times; i++) {
                KvConnection.Lock lock = connection.lock(bytes, leaseMillis, waitMillis);
                try {
                    out.println(increment(connection, bytes, lock));
                } finally {
                    lock.release();
                }
            }
        }

        private long increment(KvConnection connection, byte[] bytes, KvConnection.Lock lock)
                throws InterruptedException {
            String text = value(connection, key).text();
            long next;
            try {
                next = Math.addExact(Long.parseLong(text), 1);
            } catch (NumberFormatException | ArithmeticException none) {
                throw new CommandFailure(key + " is '" + text + "', which is not a number to increment", none);
            }
            connection.put(bytes, String.valueOf(next).getBytes(StandardCharsets.UTF_8), lock.word());
            return next;
        }
    }

    /** {@code bench}. */
    @Command(
            name = "bench",
            description = "Puts and gets its own values, bench-0 and so on, and prints the times and how many"
                    + " requests the server's program served meanwhile.")
    static final class Bench extends Connected {
        @Mixin
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private Report report;

        @Option(names = "--count", paramLabel = "N", defaultValue = "10000", description = "Gets (${DEFAULT-VALUE}).")
        private int count;

        @Option(names = "--keys", paramLabel = "N", defaultValue = "100", description = "Keys (${DEFAULT-VALUE}).")
        private int keys;

        @Option(
                names = "--size",
                paramLabel = "BYTES",
                defaultValue = "64",
                converter = ByteSize.class,
                description = "Value size in bytes (${DEFAULT-VALUE}).")
        private int valueBytes;

        @Option(
                names = "--window",
                paramLabel = "N",
                defaultValue = "8",
                description = "Gets in flight at once (${DEFAULT-VALUE}).")
        private int window;

        @Override
        void check() {
            require(
                    count >= 1 && keys >= 1 && window >= 1 && valueBytes >= 0,
                    "--count, --keys and --window must be 1 or more, --size 0 or more");
        }

        @Override
        void run(KvConnection connection, PrintWriter out) throws InterruptedException {
            byte[][] names = new byte[keys][];
            Measurement puts = new Measurement();
            long beganNanos = System.nanoTime();
            for (int i = 0; i < keys; i++) {
                names[i] = KvFormat.key("bench-" + i);
                long startNanos = System.nanoTime();
                connection.put(names[i], new byte[valueBytes], 0);
                puts.record(System.nanoTime() - startNanos);
            }
            puts.took(System.nanoTime() - beganNanos);
            KvConnection.Counters before = connection.counters();
            int[] next = new int[1];
            int[] wrong = new int[1];
            Measurement gets = KvConnection.await(Pipelined.run(
                    connection.client().channel().eventLoop(),
                    count,
                    window,
                    Long.MAX_VALUE,
                    () -> connection.get(names[next[0]++ % keys]).addListener(got -> {
                        boolean right = got.isSuccess()
                                && ((Optional<?>) got.getNow()).orElse(null) instanceof KvFormat.Item item
                                && item.value().length == valueBytes;
                        wrong[0] += right ? 0 : 1;
                    })));
            if (wrong[0] > 0) {
                throw new CommandFailure(wrong[0] + " of " + count + " gets did not return what was put");
            }
            KvConnection.Counters after = connection.counters();
            report.row("put " + valueBytes + " B", puts, valueBytes);
            report.row("get " + valueBytes + " B x" + window, gets, valueBytes);
            // The second of the two questions is the one request there has to be.
            long served = after.requests() - before.requests() - 1;
            report.line("requests that the server's program served during the gets: " + served);
            report.line("torn reads that were repeated: " + connection.tornReads());
            report.member("requestsDuringGets", served)
                    .member("tornReads", connection.tornReads())
                    .end();
        }
    }

    /** {@code counters}. */
    @Command(
            name = "counters",
            description = "Prints how many requests the server's program has served; gets are not among them.")
    static final class Counters extends Connected {
        @Mixin
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private Report report;

        @Override
        void run(KvConnection connection, PrintWriter out) throws InterruptedException {
            KvConnection.Counters counters = connection.counters();
            report.line("requests " + counters.requests() + ", puts among them " + counters.puts() + ", keys "
                    + counters.keys());
            report.member("requests", counters.requests())
                    .member("puts", counters.puts())
                    .member("keys", counters.keys())
                    .end();
        }
    }
}
