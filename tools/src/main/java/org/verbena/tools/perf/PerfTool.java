package org.verbena.tools.perf;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;
import org.verbena.transport.spi.RdmaProvider;

/** A set of C programs that measure the same things, between a server and a client of their own. */
enum PerfTool {
    /** The {@code ib_*} programs of linux-rdma/perftest. */
    PERFTEST("perftest") {
        @Override
        @Nullable String program(ToolRun run) {
            String kind = run.isLatency() ? "_lat" : "_bw";
            return switch (run.test()) {
                case MESSAGE, SEND -> "ib_send" + kind;
                case READ -> "ib_read" + kind;
                // Its latency is that of two writes; the second answers the first.
                case WRITE -> run.isLatency() ? null : "ib_write_bw";
                case ATOMIC -> "ib_atomic" + kind;
                case REQUEST, STREAM, RING, GRPC -> null;
            };
        }

        @Override
        boolean needsDevice(ToolRun run) {
            return true;
        }

        @Override
        boolean hasManyConnections(ToolRun run) {
            return !run.isLatency();
        }

        @Override
        List<String> arguments(ToolRun run, int port, @Nullable String host) {
            List<String> all = new ArrayList<>(List.of("-R", "-F", "-p", "" + port));
            all.addAll(List.of("-n", "" + run.countOfEachConnection()));
            if (run.test() != PerfTest.ATOMIC) {
                all.addAll(List.of("-s", "" + run.bytes()));
            }
            if (!run.isLatency()) {
                all.addAll(List.of("-t", "" + run.window(), "-q", "" + run.connections()));
            }
            if (run.isBidirectional()) {
                all.add("-b");
            }
            if (host != null) {
                all.add(host);
            }
            return all;
        }

        @Override
        ToolFigures figures(ToolRun run, String output) {
            String[] row = output.lines()
                    .dropWhile(line -> !line.stripLeading().startsWith("#bytes"))
                    .skip(1)
                    .map(line -> line.strip().split("\\s+"))
                    .filter(words -> words[0].equals("" + run.bytes()))
                    .findFirst()
                    .orElseThrow(() -> notUnderstood(run, output));
            return run.isLatency()
                    ? ToolFigures.latency(number(row[4]), number(row[5]))
                    : ToolFigures.bandwidth(number(row[3]) * MEBI / MILLION, number(row[4]) * MILLION);
        }
    },

    /** The program {@code qperf}, over TCP for streams. */
    QPERF("qperf") {
        @Override
        @Nullable String program(ToolRun run) {
            return test(run) == null ? null : "qperf";
        }

        private static @Nullable String test(ToolRun run) {
            boolean isLatency = run.isLatency();
            return switch (run.test()) {
                case STREAM -> isLatency ? "tcp_lat" : run.isBidirectional() ? null : "tcp_bw";
                case MESSAGE, SEND -> isLatency ? "rc_lat" : run.isBidirectional() ? "rc_bi_bw" : "rc_bw";
                case READ -> isLatency ? "rc_rdma_read_lat" : "rc_rdma_read_bw";
                case WRITE -> isLatency ? null : "rc_rdma_write_bw";
                case REQUEST, RING, GRPC, ATOMIC -> null;
            };
        }

        @Override
        boolean needsDevice(ToolRun run) {
            return run.test() != PerfTest.STREAM;
        }

        @Override
        List<String> arguments(ToolRun run, int port, @Nullable String host) {
            if (host == null) {
                return List.of("--listen_port", "" + port);
            }
            List<String> all = new ArrayList<>(List.of(host, "--listen_port", "" + port));
            all.addAll(List.of("--time", "" + run.seconds(), "--msg_size", "" + run.bytes()));
            all.addAll(List.of("--unify_units", "--verbose"));
            if (needsDevice(run)) {
                all.addAll(List.of("--use_cm", "1", "--cq_poll", "1"));
            }
            all.add(String.valueOf(test(run)));
            return all;
        }

        @Override
        ToolFigures figures(ToolRun run, String output) {
            if (run.isLatency()) {
                return ToolFigures.latency(Double.NaN, value(run, output, "latency", "ns") / 1e3);
            }
            double bytesPerSecond = value(run, output, "bw", "bytes/sec");
            return ToolFigures.bandwidth(bytesPerSecond / MILLION, bytesPerSecond / run.bytes());
        }

        private double value(ToolRun run, String output, String name, String unit) {
            Matcher line = Pattern.compile(
                            "^\\s*" + name + "\\s*=\\s*([0-9.]+)\\s*" + unit + "\\s*$", Pattern.MULTILINE)
                    .matcher(output);
            if (!line.find()) {
                throw notUnderstood(run, output);
            }
            return number(line.group(1));
        }
    },

    /** The program {@code ucx_perftest}, over TCP where perf has no device. */
    UCX("ucx-utils") {
        private static final int MAX_WARM_UP = 10_000;
        private static final int FIELDS = 8;

        @Override
        @Nullable String program(ToolRun run) {
            return test(run) == null ? null : "ucx_perftest";
        }

        private static @Nullable String test(ToolRun run) {
            if (run.isBidirectional()) {
                return null;
            }
            boolean isLatency = run.isLatency();
            return switch (run.test()) {
                case MESSAGE, SEND -> isLatency ? "tag_lat" : "tag_bw";
                case STREAM -> isLatency ? "stream_lat" : "stream_bw";
                case READ -> "ucp_get";
                case WRITE -> isLatency ? null : "ucp_put_bw";
                case ATOMIC -> "ucp_fadd";
                case REQUEST, RING, GRPC -> null;
            };
        }

        @Override
        boolean needsDevice(ToolRun run) {
            return false;
        }

        @Override
        List<String> arguments(ToolRun run, int port, @Nullable String host) {
            if (host == null) {
                return List.of("-p", "" + port);
            }
            List<String> all = new ArrayList<>(List.of(host, "-p", "" + port, "-t", String.valueOf(test(run))));
            all.addAll(List.of("-s", "" + run.bytes(), "-n", "" + run.count()));
            all.addAll(List.of("-w", "" + Math.min(MAX_WARM_UP, run.count() / 10)));
            all.addAll(List.of("-O", "" + (run.isLatency() ? 1 : run.window()), "-f", "-v"));
            return all;
        }

        @Override
        Map<String, String> environment(boolean hasDevice) {
            return Map.of("UCX_TLS", hasDevice ? "rc" : "tcp");
        }

        @Override
        ToolFigures figures(ToolRun run, String output) {
            String[] last = output.lines()
                    .map(line -> line.strip().split(","))
                    .filter(fields -> fields.length == FIELDS && fields[0].matches("[0-9]+"))
                    .reduce((first, second) -> second)
                    .orElseThrow(() -> notUnderstood(run, output));
            return run.isLatency()
                    ? ToolFigures.latency(number(last[1]), number(last[3]))
                    : ToolFigures.bandwidth(number(last[5]) * MEBI / MILLION, number(last[7]));
        }
    };

    private static final double MILLION = 1e6;
    private static final double MEBI = 1 << 20;

    private final String debianPackage;

    PerfTool(String debianPackage) {
        this.debianPackage = debianPackage;
    }

    /** Whether that provider uses an RDMA device. */
    static boolean hasDevice(RdmaProvider provider) {
        return !provider.name().equals("soft");
    }

    /** The program for that; null if it has none. */
    abstract @Nullable String program(ToolRun run);

    /** Whether it runs only on RDMA devices. */
    abstract boolean needsDevice(ToolRun run);

    /** Whether it can have more than one connection. */
    boolean hasManyConnections(ToolRun run) {
        return false;
    }

    /**
     * The arguments of the program.
     *
     * @param host the server, which the client connects to; null for the server
     */
    abstract List<String> arguments(ToolRun run, int port, @Nullable String host);

    /** Variables for its environment, unless the user has set them. */
    Map<String, String> environment(boolean hasDevice) {
        return Map.of();
    }

    /**
     * Parses the client's output.
     *
     * @throws CommandFailure the output is in no format of the program's known versions
     */
    abstract ToolFigures figures(ToolRun run, String output);

    /** Why it cannot measure the same; null if it can. */
    @Nullable String unfit(ToolRun run, double ratePerSecond, boolean hasDevice) {
        String mode = run.isLatency() ? "--lat" : run.isBidirectional() ? "--bw --bidirectional" : "--bw";
        if (program(run) == null) {
            return this + " has nothing like " + run.test() + " " + mode;
        }
        if (ratePerSecond > 0) {
            return this + " cannot start operations at a rate";
        }
        if (run.connections() > 1 && !hasManyConnections(run)) {
            return this + " has one connection for " + run.test() + " " + mode;
        }
        if (needsDevice(run) && !hasDevice) {
            return this + " needs an RDMA device for " + run.test() + ", and perf runs without one here";
        }
        return null;
    }

    /**
     * The complete command.
     *
     * @param path folders as in {@code PATH}
     * @param host as in {@link #arguments}
     * @throws CommandFailure it is not installed
     */
    List<String> command(ToolRun run, String path, int port, @Nullable String host) {
        String program = String.valueOf(program(run));
        Path found = Arrays.stream(path.split(File.pathSeparator))
                .map(folder -> Path.of(folder, program))
                .filter(Files::isExecutable)
                .findFirst()
                .orElseThrow(() -> new CommandFailure(program + " is not installed on the "
                        + (host == null ? "server" : "client") + ": apt-get install " + debianPackage));
        List<String> all = new ArrayList<>();
        all.add(found.toString());
        all.addAll(arguments(run, port, host));
        return all;
    }

    CommandFailure notUnderstood(ToolRun run, String output) {
        return new CommandFailure("no figures in what " + program(run) + " printed: " + output.strip());
    }

    /** Reads what C's printf has printed; infinity for what is no number as well. */
    private static double number(String text) {
        return text.endsWith("inf") || text.endsWith("nan") ? Double.POSITIVE_INFINITY : Double.parseDouble(text);
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
