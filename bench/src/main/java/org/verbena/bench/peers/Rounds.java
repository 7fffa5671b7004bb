package org.verbena.bench.peers;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/** The rounds that {@code bench/peers} wrote to files: of each workload and contender, in order. */
final class Rounds {
    private final Map<String, Map<String, List<Result>>> byWorkload = new LinkedHashMap<>();

    void read(Path file) throws IOException {
        for (String line : Files.readAllLines(file)) {
            String[] columns = line.split("\t", 3);
            byWorkload
                    .computeIfAbsent(columns[1], missing -> new LinkedHashMap<>())
                    .computeIfAbsent(columns[0], missing -> new ArrayList<>())
                    .add(Result.parse(columns[2].replace('\t', ' ')));
        }
    }

    Set<String> workloads() {
        return byWorkload.keySet();
    }

    Set<String> contenders(String workload) {
        return requireNonNull(byWorkload.get(workload)).keySet();
    }

    List<Result> of(String workload, String contender) {
        List<Result> rounds = requireNonNull(byWorkload.get(workload)).get(contender);
        if (rounds == null) {
            throw new IllegalArgumentException(contender + " has no round of " + workload);
        }
        return rounds;
    }

    /** The ratios of the rounds, sorted; above 1 the first is better. */
    double[] ratios(String workload, String contender, String base) {
        List<Result> own = of(workload, contender);
        List<Result> others = of(workload, base);
        boolean oneAtATime = workload.endsWith(" x1");
        return IntStream.range(0, Math.min(own.size(), others.size()))
                .mapToDouble(round -> oneAtATime
                        ? others.get(round).p50() / own.get(round).p50()
                        : own.get(round).perSecond() / others.get(round).perSecond())
                .sorted()
                .toArray();
    }

    /** The median of the CPU time for a million messages. */
    double cpuSeconds(String workload, String contender) {
        return Result.median(of(workload, contender), Result::cpuSecondsPerMillion);
    }
}
