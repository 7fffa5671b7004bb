package org.verbena.bench.stack;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What each layer cost in each round, by window. */
final class Costs {
    private record Key(Cell cell, int window) {}

    /** The median, minimum and maximum of the rounds. */
    record Nanos(double median, double least, double most) {}

    private final Map<Key, List<double[]>> rounds = new LinkedHashMap<>();

    void add(Cell cell, int window, double nanos, double heapBytes) {
        rounds.computeIfAbsent(new Key(cell, window), missing -> new ArrayList<>())
                .add(new double[] {nanos, heapBytes});
    }

    /** Adds the rounds of a file that {@link #write} wrote. */
    void read(Path file) throws IOException {
        for (String line : Files.readAllLines(file)) {
            String[] columns = line.split("\t");
            add(
                    new Cell(columns[0], columns[1]),
                    Integer.parseInt(columns[2]),
                    Double.parseDouble(columns[3]),
                    Double.parseDouble(columns[4]));
        }
    }

    void write(PrintStream out) {
        rounds.forEach((key, each) -> each.forEach(cost -> out.printf(
                "%s\t%s\t%d\t%.1f\t%.2f%n", key.cell.name(), key.cell.provider(), key.window, cost[0], cost[1])));
    }

    boolean has(Cell cell, int window) {
        return rounds.containsKey(new Key(cell, window));
    }

    private double[] sorted(Cell cell, int window, int column) {
        return rounds.getOrDefault(new Key(cell, window), List.of()).stream()
                .mapToDouble(cost -> cost[column])
                .sorted()
                .toArray();
    }

    private static double median(double[] sorted) {
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    Nanos nanos(Cell cell, int window) {
        double[] sorted = sorted(cell, window, 0);
        return new Nanos(median(sorted), sorted[0], sorted[sorted.length - 1]);
    }

    double heapBytes(Cell cell, int window) {
        return median(sorted(cell, window, 1));
    }

    int rounds() {
        return rounds.values().stream().mapToInt(List::size).max().orElse(0);
    }
}
