package org.verbena.transport.buffer;

import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/** Threads that hold memory, close it, and wait for its end. */
public class RegisteredMemoryStress {
    private RegisteredMemoryStress() {}

    /**
     * While it is held the device knows it, and it forgets it once. First what the holder saw: -1 it was gone, else
     * deregistrations while it held it.
     */
    @JCStressTest
    @Outcome(id = "-1, 0, 1", expect = Expect.ACCEPTABLE, desc = "closed before it could be held")
    @Outcome(id = "0, 0, 1", expect = Expect.ACCEPTABLE, desc = "held, and forgotten afterwards")
    @Outcome(expect = Expect.FORBIDDEN, desc = "forgotten while it was held, twice, or never")
    @State
    public static class CloseAndHold {
        private final Region region = new Region();

        @Actor
        public void close() {
            region.close();
            region.close();
        }

        @Actor
        public void hold(III_Result result) {
            if (region.tryRetain()) {
                result.r1 = region.deregistrations.get();
                region.release();
            } else {
                result.r1 = -1;
            }
        }

        @Arbiter
        public void count(III_Result result) {
            result.r3 = region.deregistrations.get();
        }
    }

    /**
     * What is to be done at its end is done once, whether it comes before or after; and not before the device has
     * forgotten it.
     */
    @JCStressTest
    @Outcome(id = "1, 1, 1", expect = Expect.ACCEPTABLE)
    @Outcome(expect = Expect.FORBIDDEN, desc = "an action ran twice, never, or too early")
    @State
    public static class CloseAndAwaitTheEnd {
        private final Region region = new Region();
        private final AtomicInteger first = new AtomicInteger();
        private final AtomicInteger second = new AtomicInteger();

        @Actor
        public void close() {
            region.close();
        }

        @Actor
        public void await() {
            region.whenGone(() -> first.addAndGet(region.deregistrations.get()));
            region.whenGone(() -> second.addAndGet(region.deregistrations.get()));
        }

        @Arbiter
        public void count(III_Result result) {
            result.r1 = region.deregistrations.get();
            result.r2 = first.get();
            result.r3 = second.get();
        }
    }
}
