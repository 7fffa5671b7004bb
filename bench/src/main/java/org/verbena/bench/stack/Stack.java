package org.verbena.bench.stack;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.bench.CLibrary;
import org.verbena.bench.Endpoints;
import org.verbena.bench.JavaProcess;

/**
 * What each layer adds to the cost of a message of 64 bytes: echoes through it and all below, both ends on one thread,
 * in a JVM of its own for each layer and round. A message's cost is the processor time of that thread by the messages
 * that arrived at either end: both of its ends, one way.
 */
public final class Stack {
    /** Messages out at a time. */
    static final int[] WINDOWS = {16, 1};

    private static final int SECONDS_TO_START = 60;
    private static final List<String> HEAP = List.of("-Xms512m", "-Xmx512m");

    private int rounds = 3;
    private double seconds = 0.5;
    private double warmUp = 3;
    private String only = ".*";
    private final Costs costs = new Costs();
    private final Map<Cell, String> failures = new LinkedHashMap<>();

    private Stack() {}

    /**
     * Runs it, or draws what it measured.
     *
     * @param arguments as {@code bench/stack} says
     * @throws Exception it cannot be run
     */
    public static void main(String... arguments) throws Exception {
        if (arguments.length > 1 && arguments[0].equals("--plot")) {
            Costs read = new Costs();
            for (int i = 1; i < arguments.length; i++) {
                read.read(Path.of(arguments[i]));
            }
            System.out.print(new StackPlot(read).draw());
            return;
        }
        new Stack().run(arguments);
    }

    private void run(String... arguments) throws Exception {
        for (int i = 0; i < arguments.length; i++) {
            switch (arguments[i]) {
                case "--rounds" -> rounds = Integer.parseInt(arguments[++i]);
                case "--seconds" -> seconds = Double.parseDouble(arguments[++i]);
                case "--warmup" -> warmUp = Double.parseDouble(arguments[++i]);
                case "--only" -> only = arguments[++i];
                default -> throw new IllegalArgumentException(arguments[i] + ": see bench/stack --help");
            }
        }
        List<Cell> cells = new ArrayList<>();
        for (Cell cell : Cell.all()) {
            if (!cell.toString().matches(only)) {
                continue;
            }
            if (Cell.PROVIDERS.contains(cell.provider()) && Endpoints.findProvider(cell.provider()) == null) {
                failures.put(cell, "there is no provider " + cell.provider());
                continue;
            }
            cells.add(cell);
        }
        if (cells.isEmpty()) {
            throw new IllegalArgumentException("--only fits no layer");
        }
        String load = Files.readString(Path.of("/proc/loadavg")).split(" ")[0];
        Path source = Path.of(System.getProperty("stack.source"));
        Path stub = CLibrary.compile(source, "-I" + System.getProperty("stack.include"), "-lpthread");
        describeAsMlx5(stub.resolveSibling("sysfs"));
        long start = System.nanoTime();
        for (int round = 1; round <= rounds; round++) {
            for (Cell cell : cells) {
                System.err.printf("round %d/%d %s%n", round, rounds, cell);
                try {
                    once(cell, stub);
                } catch (IOException failed) {
                    failures.put(cell, failed.getMessage());
                    System.err.println("  " + failed.getMessage());
                }
            }
        }
        Path file = Path.of(System.getProperty("stack.results"));
        try (PrintStream out = new PrintStream(file.toFile())) {
            costs.write(out);
        }
        System.out.printf(
                "Java %s, %d cores, Linux %s; %d rounds, %.0f s in all; load before: %s%n%n",
                Runtime.version(),
                Runtime.getRuntime().availableProcessors(),
                System.getProperty("os.version"),
                rounds,
                (System.nanoTime() - start) / 1e9,
                load);
        report(System.out);
        failures.forEach((cell, why) -> System.out.printf("%s is left out: %s%n", cell, why));
    }

    /** What the kernel says of a ConnectX: the stub's device is one. */
    private static void describeAsMlx5(Path sysfs) throws IOException {
        Path driver = Files.createDirectories(sysfs.resolve("drivers").resolve("mlx5_core"));
        Path device = Files.createDirectories(sysfs.resolve("stub0").resolve("device"));
        Files.createSymbolicLink(device.resolve("driver"), driver);
    }

    /** A layer in one round. */
    private void once(Cell cell, Path stub) throws IOException, InterruptedException {
        List<String> flags = new ArrayList<>(JavaProcess.permissionsAnd(
                "-Dorg.verbena.verbs.library=" + stub,
                "-Dorg.verbena.cm.library=" + stub,
                "-Dorg.verbena.soft.crc=false"));
        flags.addAll(HEAP);
        flags.addAll(Arrays.stream(System.getenv().getOrDefault("STACK_JVM", "").split(" "))
                .filter(flag -> !flag.isEmpty())
                .toList());
        Process process = JavaProcess.start(JavaProcess.command(
                flags, Child.class, cell.name(), cell.provider(), Double.toString(warmUp), Double.toString(seconds)));
        long limit = SECONDS_TO_START + (long) (20 * (warmUp + seconds));
        Thread watch = Thread.ofVirtual().start(() -> endAfter(process, limit));
        try (BufferedReader lines = process.inputReader()) {
            int results = 0;
            for (String line; (line = lines.readLine()) != null; ) {
                if (line.startsWith(Child.RESULT)) {
                    String[] parts = line.substring(Child.RESULT.length()).split(" ");
                    costs.add(
                            cell,
                            Integer.parseInt(parts[0]),
                            Double.parseDouble(parts[1]),
                            Double.parseDouble(parts[2]));
                    results++;
                } else if (line.startsWith(JavaProcess.FAILED)) {
                    throw new IOException(line);
                } else if (!line.equals("DONE")) {
                    System.err.println(line);
                }
            }
            if (results < WINDOWS.length) {
                throw new IOException("it ended, or was ended after " + limit + " s, without its results");
            }
        } finally {
            watch.interrupt();
            JavaProcess.end(process);
        }
    }

    private static void endAfter(Process process, long limitSeconds) {
        try {
            if (!process.waitFor(limitSeconds, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private void report(PrintStream out) {
        out.printf(
                "A message of %d bytes, both of its ends, one way: median (least, most) of the rounds.%n",
                Layer.MESSAGE_BYTES);
        out.printf("\"adds\" is what it takes more than the layer that it is on; B is the heap.%n%n");
        out.printf("%-10s%-24s", "on", "layer");
        for (int window : WINDOWS) {
            out.printf("%8s %-17s%8s%8s", "ns", "(" + window + " at a time)", "adds", "B");
        }
        out.println();
        for (Cell cell : Cell.all()) {
            if (costs.has(cell, WINDOWS[0])) {
                out.printf("%-10s%-24s", cell.provider(), cell.title());
                for (int window : WINDOWS) {
                    Costs.Nanos nanos = costs.nanos(cell, window);
                    out.printf(
                            Locale.ROOT,
                            "%8.0f %-17s%8s%8.1f",
                            nanos.median(),
                            "(%.0f, %.0f)".formatted(nanos.least(), nanos.most()),
                            adds(cell, window),
                            costs.heapBytes(cell, window));
                }
                out.println();
            }
        }
        out.println();
    }

    private String adds(Cell cell, int window) {
        @Nullable Cell base = cell.base();
        return base == null || !costs.has(base, window)
                ? ""
                : "%.0f"
                        .formatted(costs.nanos(cell, window).median()
                                - costs.nanos(base, window).median());
    }
}
