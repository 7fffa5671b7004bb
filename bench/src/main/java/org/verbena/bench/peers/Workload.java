package org.verbena.bench.peers;

import java.util.List;
import java.util.stream.Stream;

/** What is asked of every contender: echoes of messages of one size, with so many outstanding. */
public record Workload(int size, int window) {

    /**
     * A regular expression that the names of the workloads to run match; if it is not there, all but those of 16 MiB,
     * which not every contender takes, and that with 1,000 outstanding, which is more than some let a client have.
     */
    static final String ONLY = "peers.only";

    static final List<Workload> ALL = Stream.of(
                    new Workload(64, 1),
                    new Workload(4 << 10, 1),
                    new Workload(64 << 10, 1),
                    new Workload(1 << 20, 1),
                    new Workload(64, 64),
                    new Workload(4 << 10, 64),
                    new Workload(64 << 10, 64),
                    new Workload(1 << 20, 64),
                    new Workload(64, 1000),
                    new Workload(16 << 20, 1),
                    new Workload(16 << 20, 4))
            .filter(workload -> workload.toString().matches(System.getProperty(ONLY, "(?!16 MiB)(?!.* x1000).*")))
            .toList();

    boolean pingPong() {
        return window == 1;
    }

    @Override
    public String toString() {
        String bytes = size < 1 << 10 ? size + " B" : size < 1 << 20 ? (size >> 10) + " KiB" : (size >> 20) + " MiB";
        return bytes + " x" + window;
    }
}
