package org.verbena.bench.peers;

import java.util.List;

/** What is asked of every contender: echoes of messages of one size, with so many outstanding. */
public record Workload(int size, int window) {

    static final List<Workload> ALL = List.of(
            new Workload(64, 1),
            new Workload(4 << 10, 1),
            new Workload(64 << 10, 1),
            new Workload(1 << 20, 1),
            new Workload(64, 64),
            new Workload(4 << 10, 64),
            new Workload(64 << 10, 64),
            new Workload(1 << 20, 64));

    boolean pingPong() {
        return window == 1;
    }

    @Override
    public String toString() {
        String bytes = size < 1 << 10 ? size + " B" : size < 1 << 20 ? (size >> 10) + " KiB" : (size >> 20) + " MiB";
        return bytes + " x" + window;
    }
}
