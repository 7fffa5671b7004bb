package org.verbena.bench.peers;

import static org.verbena.bench.peers.Svg.number;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Draws contenders beside peers of theirs, one group for each pair, by workload: to the right where the contender is
 * better, to the left where the peer is. The scale is logarithmic, so that twice as good and half as good are as long.
 */
final class Overview {
    private static final int WIDTH = 760;
    private static final int TOP = 50;
    private static final int ROW = 20;
    private static final int HEAD = 24;
    private static final int GAP = 10;
    private static final int LABELS = 148;
    private static final int LEFT = 205;
    private static final int RIGHT = 575;

    private record Group(String where, String contender, String peer, Rounds rounds) {
        List<String> workloads() {
            return rounds.workloads().stream()
                    .filter(workload -> rounds.contenders(workload).containsAll(List.of(contender, peer)))
                    .toList();
        }

        double[] ratios(String workload) {
            return rounds.ratios(workload, contender, peer);
        }
    }

    private final List<Group> groups = new ArrayList<>();

    /** Adds a pair that was measured in the same rounds. */
    void add(String where, String contender, String peer, Path file) throws IOException {
        Rounds rounds = new Rounds();
        rounds.read(file);
        groups.add(new Group(where, contender, peer, rounds));
    }

    String draw() throws IOException {
        double max = 1;
        int height = TOP;
        for (Group group : groups) {
            for (String workload : group.workloads()) {
                double[] ratios = group.ratios(workload);
                max = Math.max(max, Math.max(ratios[ratios.length - 1], 1 / ratios[0]));
                height += ROW;
            }
            height += HEAD + GAP;
        }
        double middle = (LEFT + RIGHT) / 2.0;
        double scale = (RIGHT - LEFT) / 2.0 / Math.log(max);
        Svg svg = new Svg(WIDTH, height, "Verbena beside its peers, medians of the rounds");
        svg.text(8, 16, "title", "Verbena beside its peers");
        svg.text(8, 34, "small", "× 1: round trips; × more: messages a second");
        svg.text((int) middle - 12, 16, "title end", "← the peer is better");
        svg.text((int) middle + 12, 16, "title", "Verbena is better →");
        int y = TOP;
        for (Group group : groups) {
            svg.text(8, y + 16, "title", group.contender() + " beside " + group.peer() + ", " + group.where());
            y += HEAD;
            svg.line("one", middle, y, middle, y + group.workloads().size() * ROW);
            for (String workload : group.workloads()) {
                double[] ratios = group.ratios(workload);
                double end = Math.log(Result.median(ratios)) * scale;
                svg.text(LABELS, y + 14, "small end", workload.replace(" x", " × "));
                svg.bar(end < 0 ? "slower" : "faster", middle + Math.min(0, end), y + 3, Math.abs(end), ROW - 6);
                double line = y + ROW / 2.0;
                svg.line(
                        "range",
                        middle + Math.log(ratios[0]) * scale,
                        line,
                        middle + Math.log(ratios[ratios.length - 1]) * scale,
                        line);
                svg.text(
                        RIGHT + 12,
                        y + 14,
                        "small",
                        "%s (%s to %s)"
                                .formatted(
                                        number(Result.median(ratios)),
                                        number(ratios[0]),
                                        number(ratios[ratios.length - 1])));
                y += ROW;
            }
            y += GAP;
        }
        return svg.end();
    }
}
