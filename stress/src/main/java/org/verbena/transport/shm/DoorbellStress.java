package org.verbena.transport.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.I_Result;
import org.verbena.transport.shm.ffm.FileIdentity;

/** The doorbell of a loop and those who ring: nobody's bit is lost, and the loop does not sleep over one. */
public class DoorbellStress {
    private DoorbellStress() {}

    /** A doorbell and a ring for each state. */
    abstract static class Base {
        final MemorySegment page = Arena.ofAuto().allocate(Doorbell.BYTES, 8);
        final PeerDoorbell doorbell = new PeerDoorbell(new FileIdentity(1, 1), page);
        final MemorySegment memory = Arena.ofAuto().allocate(Ring.fileBytes(Ring.MIN_BYTES), 4096);
        final RingWriter writer = new RingWriter(memory, 0, Ring.MIN_BYTES);
        final RingReader reader = new RingReader(memory, 0, Ring.MIN_BYTES);

        /** Publishes a record and rings; gives whether a wake-up is to be sent. */
        boolean write(int value) {
            writer.claim(8, 8);
            memory.set(ValueLayout.JAVA_LONG, writer.payload(), value);
            writer.commit(Ring.SEND, Ring.FIRST | Ring.LAST, 8, value, 0, 0, 8, value);
            return writer.publish() && doorbell.ring(0) != 0;
        }
    }

    /** Who takes a bit sees what was published before it was set. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = Expect.ACCEPTABLE, desc = "not rung yet")
    @Outcome(id = "1, 7", expect = Expect.ACCEPTABLE, desc = "rung, and there")
    @Outcome(expect = Expect.FORBIDDEN, desc = "rung for a record that is not seen")
    @State
    public static class RingAndTake extends Base {
        @Actor
        public void write() {
            write(7);
        }

        @Actor
        public void take(II_Result result) {
            result.r1 = (int) Doorbell.take(page, 0);
            if (result.r1 != 0 && reader.next()) {
                result.r2 = (int) memory.get(ValueLayout.JAVA_LONG, reader.payload());
            }
        }
    }

    /** A loop that falls asleep sees the bit, or is sent a wake-up. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = Expect.FORBIDDEN, desc = "the loop sleeps over the bit")
    @Outcome(expect = Expect.ACCEPTABLE, desc = "seen, or woken")
    @State
    public static class RingAndSleep extends Base {
        @Actor
        public void write(II_Result result) {
            result.r1 = write(7) ? 1 : 0;
        }

        @Actor
        public void sleep(II_Result result) {
            Doorbell.setSleeps(page, 1);
            result.r2 = Doorbell.isRung(page, 0) ? 1 : 0;
        }
    }

    /** A loop that looks at its connections, and falls asleep: it sees the record, or the bit, or is sent a wake-up. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = Expect.FORBIDDEN, desc = "the loop sleeps over the record")
    @Outcome(expect = Expect.ACCEPTABLE, desc = "seen, rung, or woken")
    @State
    public static class LookAndSleep extends Base {
        public LookAndSleep() {
            Doorbell.setSleeps(page, Doorbell.LOOKS);
        }

        @Actor
        public void write(II_Result result) {
            writer.claim(8, 8);
            writer.commit(Ring.SEND, Ring.FIRST | Ring.LAST, 8, 7, 0, 0, 8, 7);
            writer.publish();
            result.r1 = !doorbell.isLooking() && doorbell.ring(0) != 0 ? 1 : 0;
        }

        @Actor
        public void sleep(II_Result result) {
            Doorbell.setSleeps(page, 1);
            result.r2 = reader.hasMore() || Doorbell.isRung(page, 0) ? 1 : 0;
        }
    }

    /** A writer that waits for room sees it, or the reader rings, and then the writer's loop sees that or is woken. */
    @JCStressTest
    @Outcome(id = "0, 0, 0", expect = Expect.FORBIDDEN, desc = "the writer's loop sleeps over the room")
    @Outcome(expect = Expect.ACCEPTABLE, desc = "seen, rung, or woken")
    @State
    public static class RoomAndSleep extends Base {
        public RoomAndSleep() {
            write(7);
            Doorbell.take(page, 0);
            if (reader.next()) {
                reader.consume();
            }
        }

        @Actor
        public void await(III_Result result) {
            result.r1 = writer.awaitRoom() ? 0 : 1;
            Doorbell.setSleeps(page, 1);
            result.r2 = Doorbell.isRung(page, 0) ? 1 : 0;
        }

        @Actor
        public void release(III_Result result) {
            result.r3 = reader.release() && doorbell.ring(0) != 0 ? 1 : 0;
        }
    }

    /** A writer that waits for room a second time sees it, or the reader rings, although it clears requests late. */
    @JCStressTest
    @Outcome(id = "1", expect = Expect.ACCEPTABLE, desc = "seen, or rung")
    @Outcome(expect = Expect.FORBIDDEN, desc = "the writer waits for room that is there, and nobody rings")
    @State
    public static class WaitTwice extends Base {
        private boolean seen;

        public WaitTwice() {
            write(7);
            write(8);
            Doorbell.take(page, 0);
        }

        @Actor
        public void await() {
            writer.awaitRoom();
            writer.isReadUpTo(writer.tail()); // looks
            seen = !writer.awaitRoom();
            if (Doorbell.take(page, 0) != 0) {
                seen = !writer.awaitRoom();
            }
        }

        @Actor
        public void release() {
            for (int i = 0; i < 2; i++) {
                if (reader.next()) {
                    reader.consume();
                }
                if (reader.release()) {
                    doorbell.ring(0);
                }
            }
        }

        @Arbiter
        public void outcome(I_Result result) {
            result.r1 = seen || !writer.hasMoreRoom() || Doorbell.isRung(page, 0) ? 1 : 0;
        }
    }

    /** Two connections of one word: a loop that takes the bits beside them loses none, and none of another one. */
    @JCStressTest
    @Outcome(id = "3", expect = Expect.ACCEPTABLE, desc = "both")
    @Outcome(expect = Expect.FORBIDDEN, desc = "a bit is lost")
    @State
    public static class TwoRing extends Base {
        private int taken;

        @Actor
        public void first() {
            doorbell.ring(0);
        }

        @Actor
        public void second() {
            doorbell.ring(1);
        }

        @Actor
        public void take() {
            taken |= (int) Doorbell.take(page, 0);
        }

        @Arbiter
        public void rest(I_Result result) {
            result.r1 = taken | (int) Doorbell.take(page, 0);
        }
    }

    /** Two loops that ring at a sleeping one: at least one of them wakes it. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = Expect.FORBIDDEN, desc = "each leaves it to the other")
    @Outcome(expect = Expect.ACCEPTABLE, desc = "woken")
    @State
    public static class TwoWake extends Base {
        public TwoWake() {
            Doorbell.setSleeps(page, 1);
        }

        private int ring(int slot) {
            long sleep = doorbell.ring(slot);
            if (sleep != 0) {
                doorbell.woken(sleep);
            }
            return sleep == 0 ? 0 : 1;
        }

        @Actor
        public void first(II_Result result) {
            result.r1 = ring(0);
        }

        @Actor
        public void second(II_Result result) {
            result.r2 = ring(1);
        }
    }
}
