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

/** Both ends of a ring: what is seen is whole, and neither end sleeps over what the other has done. */
public class RingStress {
    private RingStress() {}

    /** A ring of its own for each state. */
    abstract static class Base {
        final MemorySegment memory = Arena.ofAuto().allocate(Ring.fileBytes(Ring.MIN_BYTES), 4096);
        final RingWriter writer = new RingWriter(memory, 0, Ring.MIN_BYTES);
        final RingReader reader = new RingReader(memory, 0, Ring.MIN_BYTES);

        boolean write(int value) {
            writer.claim(8, 8);
            memory.set(ValueLayout.JAVA_LONG, writer.payload(), value);
            writer.commit(Ring.SEND, Ring.FIRST | Ring.LAST, 8, value, 0, 0, 8, value);
            return writer.publish() && writer.wakeReader();
        }
    }

    /** A record that is seen is there, with its payload. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = Expect.ACCEPTABLE, desc = "not there yet")
    @Outcome(id = "7, 7", expect = Expect.ACCEPTABLE, desc = "whole")
    @Outcome(expect = Expect.FORBIDDEN, desc = "a record without its header or payload")
    @State
    public static class WriteAndRead extends Base {
        @Actor
        public void write() {
            write(7);
        }

        @Actor
        public void read(II_Result result) {
            if (reader.next()) {
                result.r1 = reader.key();
                result.r2 = (int) memory.get(ValueLayout.JAVA_LONG, reader.payload());
            }
        }
    }

    /** A reader that falls asleep sees the record, or the writer wakes it. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = Expect.FORBIDDEN, desc = "the reader sleeps over the record")
    @Outcome(expect = Expect.ACCEPTABLE, desc = "seen, or woken")
    @State
    public static class SleepAndPublish extends Base {
        @Actor
        public void write(II_Result result) {
            result.r1 = write(7) ? 1 : 0;
        }

        @Actor
        public void sleep(II_Result result) {
            reader.setSleeping(true);
            result.r2 = reader.hasMore() ? 1 : 0;
        }
    }

    /** A writer that waits for room sees it, or the reader wakes it. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = Expect.FORBIDDEN, desc = "the writer sleeps over the room")
    @Outcome(expect = Expect.ACCEPTABLE, desc = "seen, or woken")
    @State
    public static class WaitAndRelease extends Base {
        public WaitAndRelease() {
            write(7);
            if (reader.next()) {
                reader.consume();
            }
        }

        @Actor
        public void await(II_Result result) {
            result.r1 = writer.awaitRoom() ? 0 : 1;
        }

        @Actor
        public void release(II_Result result) {
            result.r2 = reader.release() ? 1 : 0;
        }
    }
}
