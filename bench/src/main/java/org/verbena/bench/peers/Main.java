package org.verbena.bench.peers;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.verbena.bench.JavaProcess;

/**
 * Runs the contenders in rounds (A B C, A B C, ...), each time in two fresh JVMs, and prints each figure's median
 * over the rounds.
 */
@SuppressWarnings("NullAway") // processes and results that are not there yet
public final class Main {
    private static final List<String> JVM_FLAGS = List.of("-Xms1g", "-Xmx1g");
    private static final List<String> PROPERTIES =
            List.of("java.library.path", Place.PROVIDER, Place.HOST, Place.CONNECTIONS, Workload.ONLY);
    private static final int START_SECONDS = 120; // an emulated machine takes most of a minute to start a JVM with gRPC
    private static final int DRAIN_SECONDS =
            20; // for the echoes of a workload that are still outstanding when its time is up

    private int rounds = 3;
    private double seconds = 2;
    private double warmup = 3;
    private final List<String> names = new ArrayList<>();
    /** Pairs of contenders to be compared: the one and the one it is measured by. */
    private final List<String[]> ratios = new ArrayList<>();

    /** Whether to print only the pairs, as a table in Markdown. */
    private boolean markdown;

    /** contender, workload, and a result for each round. */
    private final Map<String, Map<Workload, List<Result>>> results = new LinkedHashMap<>();

    private final Map<String, String> failures = new LinkedHashMap<>();
    private PrintStream raw;

    public static void main(String[] args) throws Exception {
        new Main().run(args);
    }

    private void run(String[] args) throws Exception {
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--rounds" -> rounds = Integer.parseInt(args[++i]);
                case "--seconds" -> seconds = Double.parseDouble(args[++i]);
                case "--warmup" -> warmup = Double.parseDouble(args[++i]);
                case "--provider" -> System.setProperty(Place.PROVIDER, args[++i]);
                case "--host" -> System.setProperty(Place.HOST, args[++i]);
                case "--connections" -> System.setProperty(Place.CONNECTIONS, args[++i]);
                case "--only" -> System.setProperty(Workload.ONLY, args[++i]);
                case "--ratio" -> ratios.add(args[++i].split("/", 2));
                case "--markdown" -> markdown = true;
                case "--list" -> {
                    System.out.println(String.join("\n", Contenders.ALL.keySet()));
                    return;
                }
                default -> names.add(args[i]);
            }
        }
        for (String[] pair : ratios) {
            if (pair.length != 2) {
                throw new IllegalArgumentException("--ratio needs two contenders, as in --ratio one/other");
            }
            for (String name : List.of(pair[1], pair[0])) {
                if (!names.contains(name)) {
                    names.add(name);
                }
            }
        }
        if (names.isEmpty()) {
            names.addAll(Contenders.ALL.keySet());
        }
        names.forEach(Contenders::named); // a wrong name ends it here
        Place.address(0); // so does a wrong host
        if (Workload.ALL.isEmpty()) {
            throw new IllegalArgumentException("--only fits no workload");
        }
        Path logs = Path.of(System.getProperty("peers.logs"));
        try (Stream<Path> old = Files.list(logs)) {
            for (Path log : old.toList()) {
                Files.delete(log);
            }
        }
        raw = new PrintStream(logs.resolve("rounds.tsv").toFile());
        long started = System.nanoTime();
        for (int round = 1; round <= rounds; round++) {
            for (String name : names) {
                System.err.printf("round %d/%d %s%n", round, rounds, name);
                try {
                    once(name);
                } catch (IOException e) {
                    failures.put(name, e.getMessage());
                    System.err.println("  " + e.getMessage());
                }
            }
        }
        raw.close();
        double took = (System.nanoTime() - started) / 1e9;
        if (markdown) {
            table(System.out, took);
        } else {
            report(System.out, took);
        }
    }

    /** One contender in one round: a server process and a client process. */
    private void once(String name) throws Exception {
        Path scratch = Files.createTempDirectory("verbena-peers");
        Process server = null;
        Process client = null;
        try {
            server = start(name, "server", name, scratch.toString());
            String address = address(server);
            client = start(
                    name,
                    "client",
                    name,
                    address,
                    Long.toString(server.pid()),
                    Double.toString(warmup),
                    Double.toString(seconds));
            Process running = client;
            double limit = START_SECONDS + 2 * Workload.ALL.size() * (seconds + 2 * warmup + DRAIN_SECONDS);
            Thread watch = Thread.ofVirtual().start(() -> {
                LockSupport.parkNanos((long) (limit * 1e9));
                if (!Thread.currentThread().isInterrupted()) {
                    running.destroyForcibly();
                }
            });
            Map<String, Result> lines = new LinkedHashMap<>();
            try (BufferedReader out = client.inputReader()) {
                for (String line; (line = out.readLine()) != null; ) {
                    if (line.startsWith("RESULT\t")) {
                        String[] parts = line.split("\t");
                        lines.put(parts[1], Result.parse(parts[2]));
                        raw.printf("%s\t%s\t%s%n", name, parts[1], parts[2].replace(' ', '\t'));
                    } else if (line.startsWith(JavaProcess.FAILED)) {
                        throw new IOException(line);
                    }
                }
            } finally {
                watch.interrupt();
            }
            for (Workload workload : Workload.ALL) {
                if (!lines.containsKey(workload.toString())) {
                    throw new IOException("no result for " + workload + ": the client died or ran out of time");
                }
            }
            for (Workload workload : Workload.ALL) { // a round counts when it is complete
                results.computeIfAbsent(name, k -> new LinkedHashMap<>())
                        .computeIfAbsent(workload, k -> new ArrayList<>())
                        .add(lines.get(workload.toString()));
            }
        } finally {
            JavaProcess.end(client);
            JavaProcess.end(server);
            try (Stream<Path> files = Files.list(scratch)) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
            }
            Files.delete(scratch);
        }
    }

    private static Process start(String name, String... arguments) throws IOException {
        List<String> flags = new ArrayList<>(JVM_FLAGS);
        for (String property : PROPERTIES) {
            if (System.getProperty(property) != null) {
                flags.add("-D" + property + "=" + System.getProperty(property));
            }
        }
        flags.addAll(Contenders.named(name).jvmFlags());
        flags.addAll(Arrays.stream(System.getenv().getOrDefault("PEERS_JVM", "").split(" "))
                .filter(flag -> !flag.isEmpty())
                .toList());
        File log = Path.of(System.getProperty("peers.logs"), name + "-" + arguments[0] + ".log")
                .toFile();
        return new ProcessBuilder(JavaProcess.command(flags, Child.class, arguments))
                .redirectError(ProcessBuilder.Redirect.appendTo(log))
                .start();
    }

    /** Where the server is; killed if it does not start in time. */
    private static String address(Process process) throws IOException {
        Thread watch = Thread.ofVirtual().start(() -> {
            LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(START_SECONDS));
            if (!Thread.currentThread().isInterrupted()) {
                process.destroyForcibly();
            }
        });
        try {
            return JavaProcess.awaitLine(process, Child.READY);
        } finally {
            watch.interrupt();
        }
    }

    private void ratios(PrintStream out) {
        if (ratios.isEmpty()) {
            return;
        }
        out.printf(
                "%nRatios, above 1 where the first of the two is faster: x1 by the p50 of the round trip, x64 by messages/s; in each round,%n"
                        + "one beside the other: median, least and most%n");
        for (String[] pair : ratios) {
            Map<Workload, List<Result>> one = results.get(pair[0]);
            Map<Workload, List<Result>> other = results.get(pair[1]);
            if (one == null || other == null) {
                out.printf("%s / %s: no results%n", pair[0], pair[1]);
                continue;
            }
            out.printf("%n%s / %s%n", pair[0], pair[1]);
            for (Workload workload : Workload.ALL) {
                List<Result> mine = one.get(workload);
                List<Result> theirs = other.get(workload);
                double[] each = workload.pingPong()
                        ? ratios(theirs, mine, Result::p50)
                        : ratios(mine, theirs, Result::perSecond);
                double median = Result.median(each);
                out.printf("  %-11s%8.2f%8.2f%8.2f%n", workload, median, each[0], each[each.length - 1]);
            }
        }
    }

    /** A figure of the one by that of the other, in each round, sorted. */
    private static double[] ratios(List<Result> one, List<Result> other, ToDoubleFunction<Result> figure) {
        return IntStream.range(0, Math.min(one.size(), other.size()))
                .mapToDouble(round -> figure.applyAsDouble(one.get(round)) / figure.applyAsDouble(other.get(round)))
                .sorted()
                .toArray();
    }

    /** Only the pairs, with a row for each workload. */
    private void table(PrintStream out, double took) {
        out.printf("| | requests/s | ratio | p99, µs | ratio | CPU s/million | ratio |%n");
        out.printf("|---|---:|---:|---:|---:|---:|---:|%n");
        for (String[] pair : ratios) {
            Map<Workload, List<Result>> one = results.get(pair[0]);
            Map<Workload, List<Result>> other = results.get(pair[1]);
            for (Workload workload : Workload.ALL) {
                out.printf("| %s / %s, %s |", pair[0], pair[1], workload);
                if (one == null || other == null) {
                    out.printf(" not complete | | | | | |%n");
                    continue;
                }
                List<Result> mine = one.get(workload);
                List<Result> theirs = other.get(workload);
                cells(out, mine, theirs, Result::perSecond);
                cells(out, mine, theirs, Result::p99);
                cells(out, mine, theirs, Result::cpuSecondsPerMillion);
                out.println();
            }
        }
        out.printf(
                "%nA cell has the medians of both; a ratio is the first by the second in the same round: the median and the extremes.%n");
        conditions(out, took);
    }

    private static void cells(PrintStream out, List<Result> one, List<Result> other, ToDoubleFunction<Result> figure) {
        double mine = Result.median(one, figure);
        double theirs = Result.median(other, figure);
        String format = Math.min(mine, theirs) < 100 ? "%,.1f" : "%,.0f";
        double[] each = ratios(one, other, figure);
        out.printf(
                " " + format + " / " + format + " | **%.2f** (%.2f–%.2f) |",
                mine,
                theirs,
                Result.median(each),
                each[0],
                each[each.length - 1]);
    }

    private void conditions(PrintStream out, double took) {
        out.printf(
                "%nJava %s, %d cores, Linux %s; %d rounds, %.1f s a workload, %.0f s in all; medians of rounds%n",
                Runtime.version(),
                Runtime.getRuntime().availableProcessors(),
                System.getProperty("os.version"),
                rounds,
                seconds,
                took);
        double others = results.values().stream()
                .flatMap(m -> m.values().stream())
                .flatMap(List::stream)
                .mapToDouble(Result::others)
                .average()
                .orElse(0);
        out.printf("Other processes took %.2f of the cores on average while it measured.%n", others);
        failures.forEach((name, why) -> out.printf("%s: not complete: %s%n", name, why));
    }

    private void report(PrintStream out, double took) {
        conditions(out, took);
        out.printf(
                "%nOverview: x1 is the p50 of the round trip in microseconds, x64 is messages/s; behind the slash, the CPU "
                        + "seconds of both processes for a million messages%n%-19s",
                "");
        Workload.ALL.forEach(workload -> out.printf("%18s", workload));
        out.println();
        results.forEach((name, byWorkload) -> {
            out.printf("%-19s", name);
            byWorkload.forEach((workload, all) -> {
                Result median = Result.median(all);
                out.printf(
                        "%18s",
                        (workload.pingPong() ? "%.1f" : "%,.0f")
                                        .formatted(workload.pingPong() ? median.p50() : median.perSecond())
                                + " / %.1f".formatted(Result.median(all, Result::cpuSecondsPerMillion)));
            });
            out.println();
        });

        ratios(out);
        out.printf(
                "%nAll figures: round trip in microseconds; payload MB/s (10^6) each way; bytes allocated on the "
                        + "client's heap a message;%ncores used by both processes, their CPU seconds for a million messages, and cores used "
                        + "by everything else on the machine;%nspread is the least and the most messages/s of a round, against the median%n%n");
        out.printf(
                "%-11s%-19s%10s%10s%10s%12s%12s%10s%12s%6s%8s%7s  %s%n",
                "workload",
                "contender",
                "p50",
                "p90",
                "p99",
                "max",
                "msg/s",
                "MB/s",
                "B/msg",
                "cores",
                "s/M",
                "others",
                "spread");
        for (Workload workload : Workload.ALL) {
            results.forEach((name, byWorkload) -> {
                List<Result> all = byWorkload.get(workload);
                Result m = Result.median(all);
                double min = all.stream().mapToDouble(Result::perSecond).min().orElseThrow();
                double max = all.stream().mapToDouble(Result::perSecond).max().orElseThrow();
                out.printf(
                        "%-11s%-19s%10.1f%10.1f%10.1f%12.1f%,12.0f%10.1f%,12.1f%6.2f%8.2f%7.2f  %+.0f%% %+.0f%%%n",
                        workload,
                        name,
                        m.p50(),
                        m.p90(),
                        m.p99(),
                        m.max(),
                        m.perSecond(),
                        m.megabytes(),
                        m.allocated(),
                        m.cores(),
                        Result.median(all, Result::cpuSecondsPerMillion),
                        m.others(),
                        100 * (min / m.perSecond() - 1),
                        100 * (max / m.perSecond() - 1));
            });
            out.println();
        }
    }
}
