package org.verbena.transport.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** An owner that removes an entry, and a peer that uses it. */
public class RegionTableStress {
    private static final int KEY = 0x1234_5678;

    private RegionTableStress() {}

    /** A table of its own for each state, with one entry, and the memory that it opens. */
    abstract static class Base {
        final MemorySegment memory = Arena.ofAuto().allocate(RegionTable.BYTES + 128, 64);
        final RegionTable table = new RegionTable(memory, 0, RegionTable.BYTES + 64);
        final int number = table.add(KEY, 1, 0, 8, 0, RegionTable.READ | RegionTable.WRITE);
    }

    /** What is written after the entry was removed is not given to the peer. */
    @JCStressTest
    @Outcome(
            id = {"0, 0", "0, 1", "1, 0"},
            expect = Expect.ACCEPTABLE,
            desc = "old, or not valid")
    @Outcome(id = "1, 1", expect = Expect.FORBIDDEN, desc = "the peer takes what is another's")
    @State
    public static class RemoveAndRead extends Base {
        @Actor
        public void remove() {
            table.remove(number);
            memory.set(ValueLayout.JAVA_INT, RegionTable.BYTES, 1);
        }

        @Actor
        public void read(II_Result result) {
            long at = table.find(KEY);
            if (at >= 0) {
                result.r1 = memory.get(ValueLayout.JAVA_INT, RegionTable.BYTES);
                result.r2 = table.isStill(at, KEY) ? 1 : 0;
            }
        }
    }

    /** A peer that begins to write finds the entry gone, or the owner sees it. */
    @JCStressTest
    @Outcome(id = "0, 1", expect = Expect.FORBIDDEN, desc = "the peer writes unseen")
    @Outcome(expect = Expect.ACCEPTABLE, desc = "seen, or not begun")
    @State
    public static class RemoveAndEnter extends Base {
        @Actor
        public void remove(II_Result result) {
            table.remove(number);
            result.r1 = table.isVisited(KEY) ? 1 : 0;
        }

        @Actor
        public void enter(II_Result result) {
            result.r2 = table.enter((long) number * 64, KEY) ? 1 : 0;
        }
    }
}
