package org.verbena.tools.perf;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.LoopOptions;
import org.verbena.samples.command.Measurement;
import org.verbena.samples.command.Pipelined;
import org.verbena.samples.command.WarmUp;
import org.verbena.tools.command.CpuOption;
import picocli.CommandLine;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** The active end: runs the tests one after another, each with all sizes. */
@Command(
        name = "client",
        description = "Measures against a perf server, and prints a line for each test and size.",
        footer =
                "%nA latency (--lat) has one operation under way on each connection. Those of messages, streams, sends and rings are half"
                        + " a round trip, as perftest's; all others are whole operations. With --rate, operations (round trips are whole then) start when they"
                        + " are due and are timed from then, so that what a stall delays is counted. Bandwidth (--bw) has --window"
                        + " of them under way.")
final class PerfClient implements Callable<Integer> {
    private static final int BANDWIDTH_WINDOW = 64;

    private static final double NANOS_PER_SECOND = 1e9;

    /** The sizes of perftest's {@code -a}: up to 8 MiB. */
    private static final int LARGEST_POWER = 23;

    @Parameters(index = "0", arity = "0..1", paramLabel = "HOST", description = "The server; the same as --host.")
    private @Nullable String host;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private LoopOptions loop;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CpuOption cpu;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ProgressOption progress;

    @Option(
            names = {"-t", "--test"},
            paramLabel = "TEST",
            split = ",",
            defaultValue = "request",
            description = "What: ${COMPLETION-CANDIDATES}, or several with commas (${DEFAULT-VALUE}).")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private List<PerfTest> tests;

    @ArgGroup
    private @Nullable Mode mode;

    /** One of these. */
    private static final class Mode {
        @Option(names = "--lat", required = true, description = "Latency; the default.")
        @SuppressWarnings("UnusedVariable") // whether bandwidth is set decides
        boolean latency;

        @Option(names = "--bw", required = true, description = "Bandwidth and operations a second.")
        boolean bandwidth;
    }

    @ArgGroup
    private @Nullable Sizes sizes;

    /** One of these. */
    private static final class Sizes {
        @Option(
                names = {"-s", "--size"},
                required = true,
                split = ",",
                paramLabel = "BYTES",
                converter = ByteSize.class,
                description =
                        "Bytes of an operation, 1 to 1g, of a record in a ring to 8m, of a send to 16m, of a gRPC call to 64m;"
                                + " suffixes k, m; several with commas (64).")
        @Nullable List<Integer> list;

        @Option(
                names = {"-a", "--all"},
                required = true,
                description = "All powers of two from 1 to 8m.")
        boolean all;
    }

    @Option(
            names = "--window",
            paramLabel = "N",
            defaultValue = "" + BANDWIDTH_WINDOW,
            description = "With --bw, operations under way on each connection (${DEFAULT-VALUE}).")
    private int window;

    @Option(
            names = {"-b", "--bidirectional"},
            description = "With --bw: the server sends as well, as much at once; both directions are counted together."
                    + " For the tests message, stream and send.")
    private boolean bidirectional;

    @Option(
            names = {"-q", "--connections"},
            paramLabel = "N",
            defaultValue = "1",
            description = "Connections at once (${DEFAULT-VALUE}).")
    private int connections;

    @Option(
            names = "--threads",
            paramLabel = "N",
            defaultValue = "1",
            description = "Event loops that the connections are spread over (${DEFAULT-VALUE}).")
    private int threads;

    @Option(
            names = "--rate",
            paramLabel = "N",
            description = "With --lat: start so many operations a second, on all connections together.")
    private @Nullable Double rate;

    @Option(
            names = {"-D", "--duration"},
            paramLabel = "SECONDS",
            defaultValue = "3",
            description = "How long each test and size is measured (${DEFAULT-VALUE}).")
    private double seconds;

    @Option(
            names = "--warm-up",
            paramLabel = "SECONDS",
            description =
                    "How long each test and size runs before that; by default until its times no longer fall, for 3"
                            + " seconds at most.")
    private @Nullable Double warmUpSeconds;

    @Option(
            names = "--histogram",
            paramLabel = "FILE",
            description = "Write the distribution of the times in microseconds, as HdrHistogram's plotter reads it; of"
                    + " the last test and size, if there are several.")
    private @Nullable Path histogram;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private PerfReport report;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private PerfPlot plot;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private PerfAgainst against;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    /**
     * How operations are started.
     *
     * @param connections on how many connections at once
     * @param window how many are under way on each; 0 where a rate says when they start
     * @param ratePerSecond of all connections together; 0 for none
     * @param isBidirectional whether the server sends as well
     */
    record Load(int connections, int window, double ratePerSecond, boolean isBidirectional) {}

    @Override
    public Integer call() throws Exception {
        boolean isLatency = mode == null || !mode.bandwidth;
        check(isLatency);
        plot.prepare(isLatency);
        Load load = new Load(
                connections, rate != null ? 0 : isLatency ? 1 : window, rate == null ? 0 : rate, bidirectional);
        String server = host == null ? options.host : host;
        List<PerfConnection> open = new ArrayList<>();
        try (RdmaEventLoopGroup group = cpu.newGroup(options.provider, threads, loop.completionLoop())) {
            try {
                boolean hasDevice = PerfTool.hasDevice(group.provider());
                against.check(toolRuns(isLatency), load.ratePerSecond(), hasDevice);
                for (int i = 0; i < connections; i++) {
                    open.add(new PerfConnection(group, server, options.remotePort()));
                }
                PerfOrigin origin = PerfOrigin.now(group.provider().name());
                report.begin(
                        isLatency,
                        bidirectional,
                        against.isOn(),
                        origin,
                        open.getFirst().client().channel());
                for (PerfTest test : tests) {
                    List<PerfSubject> subjects = new ArrayList<>();
                    for (PerfConnection connection : open) {
                        subjects.add(connection.subject(test));
                    }
                    for (int size : sizesOf(test)) {
                        Measured measured = measure(subjects, test, isLatency, size, load);
                        PerfFigures figures = measured.figures();
                        Compared compared = against.compare(open.getFirst(), test, figures, seconds, hasDevice);
                        report.row(figures, measured.percentiles(), compared);
                        plot.add(figures, measured.percentiles());
                    }
                    subjects.forEach(PerfSubject::close);
                }
                report.end();
                plot.draw(origin);
            } finally {
                open.forEach(PerfConnection::close);
            }
        }
        return against.exitCode();
    }

    /** The run for a C program. */
    private List<ToolRun> toolRuns(boolean isLatency) {
        List<ToolRun> runs = new ArrayList<>();
        try {
            for (PerfTest test : against.isOn() ? tests : List.<PerfTest>of()) {
                for (int size : sizesOf(test)) {
                    runs.add(new ToolRun(
                            test, isLatency, size, connections, window, bidirectional, 1, ToolRun.MIN_COUNT));
                }
            }
        } catch (IllegalArgumentException e) {
            throw wrong("--against: " + e.getMessage());
        }
        return runs;
    }

    private void check(boolean isLatency) {
        if (window < 1 || connections < 1 || threads < 1) {
            throw wrong("--window, --connections and --threads must be 1 or more");
        }
        if (!(seconds > 0) || (warmUpSeconds != null && !(warmUpSeconds >= 0))) {
            throw wrong("--duration must be more than 0, --warm-up 0 or more");
        }
        if (rate != null && !isLatency) {
            throw wrong("--rate goes with --lat: bandwidth starts operations as others end");
        }
        if (rate != null && !(rate > 0)) {
            throw wrong("--rate must be more than 0");
        }
        if (bidirectional && isLatency) {
            throw wrong("--bidirectional goes with --bw: latency has one operation under way");
        }
        for (PerfTest test : tests) {
            if (bidirectional && !test.isBothWays()) {
                throw wrong("--bidirectional goes with the tests message, stream and send, not with " + test);
            }
            for (int size : sizesOf(test)) {
                if (size < 1 || size > test.maxBytes()) {
                    throw wrong("--size must be 1 to " + (test.maxBytes() >> 20) + "m for the test " + test + "; it is "
                            + size);
                }
            }
        }
    }

    private ParameterException wrong(String what) {
        return new ParameterException(spec.commandLine(), what);
    }

    private List<Integer> allSizes() {
        if (sizes != null && sizes.all) {
            return IntStream.rangeClosed(0, LARGEST_POWER).mapToObj(i -> 1 << i).toList();
        }
        return sizes == null || sizes.list == null ? List.of(64) : sizes.list;
    }

    private List<Integer> sizesOf(PerfTest test) {
        return test == PerfTest.ATOMIC ? List.of(Long.BYTES) : allSizes();
    }

    /** The figures, and the distribution of the times. */
    private record Measured(PerfFigures figures, NavigableMap<Double, Double> percentiles) {}

    private Measured measure(List<PerfSubject> subjects, PerfTest test, boolean isLatency, int bytes, Load load)
            throws InterruptedException, IOException {
        List<Supplier<Future<?>>> operations = new ArrayList<>();
        for (PerfSubject subject : subjects) {
            operations.add(subject.operation(test, isLatency, bytes, load));
        }
        boolean isCounted = test.isCounted(load) && !isLatency;
        long countedBefore = isCounted ? arrived(subjects) : 0;
        if (load.isBidirectional()) {
            for (PerfSubject subject : subjects) {
                subject.beginReturn(bytes, load);
            }
        }
        long uncounted;
        Measurement all;
        long received;
        PerfUsage used;
        try (PerfProgress shown = new PerfProgress(progress, test + " " + bytes, maxWarmUpSeconds() + seconds)) {
            shown.begin();
            uncounted = warmUp(subjects, operations, load);
            PerfUsage before = PerfUsage.untilNow();
            long receivedBefore = received(subjects, load);
            all = run(subjects, operations, seconds, load);
            received = received(subjects, load) - receivedBefore;
            used = PerfUsage.untilNow().since(before);
        }
        if (load.isBidirectional()) {
            endReturn(subjects, load);
        }
        long arrived = isCounted ? arrived(subjects) - countedBefore : 0;
        if (isCounted && arrived != uncounted + all.count()) {
            throw new CommandFailure(
                    "of " + (uncounted + all.count()) + " messages that were sent, " + arrived + " arrived");
        }
        double nanosPerMicro = test.nanosPerMicro(isLatency, load);
        PerfFigures figures = PerfFigures.of(test, isLatency, bytes, load, all, received, used);
        NavigableMap<Double, Double> percentiles = PerfFigures.percentiles(all.histogram(), nanosPerMicro);
        if (histogram != null) {
            try (PrintStream out = new PrintStream(Files.newOutputStream(histogram), false, StandardCharsets.UTF_8)) {
                all.histogram().outputPercentileDistribution(out, nanosPerMicro);
            }
        }
        return new Measured(figures, percentiles);
    }

    /**
     * Ends the server's messages.
     *
     * @throws CommandFailure not all of it has arrived
     */
    static void endReturn(List<PerfSubject> subjects, Load load) throws InterruptedException {
        long sent = 0;
        for (PerfSubject subject : subjects) {
            sent += subject.endReturn();
        }
        long received = received(subjects, load);
        if (received != sent) {
            throw new CommandFailure("of " + sent + " messages that the server sent, " + received + " arrived");
        }
    }

    private double maxWarmUpSeconds() {
        return warmUpSeconds != null ? warmUpSeconds : WarmUp.MAX_NANOS / NANOS_PER_SECOND;
    }

    /** Runs the operations uncounted, and returns how many that were. */
    private long warmUp(List<PerfSubject> subjects, List<Supplier<Future<?>>> operations, Load load)
            throws InterruptedException {
        WarmUp.Window window = nanos -> run(subjects, operations, nanos / NANOS_PER_SECOND, load);
        WarmUp.Outcome outcome;
        if (warmUpSeconds == null) {
            outcome = new WarmUp().run(window, WarmUp.MAX_NANOS);
        } else {
            long nanos = (long) (warmUpSeconds * NANOS_PER_SECOND);
            outcome = new WarmUp.Outcome(nanos, nanos > 0 ? window.run(nanos).count() : 0, true);
        }
        report.warmedUp(outcome);
        return outcome.count();
    }

    /** How many messages of the server have arrived here; 0 if it sends none. */
    private static long received(List<PerfSubject> subjects, Load load) {
        return load.isBidirectional()
                ? subjects.stream().mapToLong(PerfSubject::received).sum()
                : 0;
    }

    /** How many one-way messages the server has received. */
    private static long arrived(List<PerfSubject> subjects) throws InterruptedException {
        long arrived = 0;
        for (PerfSubject subject : subjects) {
            arrived += subject.arrived();
        }
        return arrived;
    }

    private static Measurement run(
            List<PerfSubject> subjects, List<Supplier<Future<?>>> operations, double seconds, Load load)
            throws InterruptedException {
        long nanos = (long) (seconds * TimeUnit.SECONDS.toNanos(1));
        List<Future<Measurement>> runs = new ArrayList<>();
        if (load.ratePerSecond() > 0) {
            runs.addAll(OpenLoop.runAll(
                    subjects.stream().map(PerfSubject::loop).toList(), load.ratePerSecond(), nanos, operations));
        } else {
            for (int i = 0; i < subjects.size(); i++) {
                EventLoop on = subjects.get(i).loop();
                runs.add(Pipelined.run(on, Long.MAX_VALUE, load.window(), nanos, operations.get(i)));
            }
        }
        Measurement all = new Measurement();
        for (Future<Measurement> run : runs) {
            all.add(run.sync().getNow());
        }
        return all;
    }
}
