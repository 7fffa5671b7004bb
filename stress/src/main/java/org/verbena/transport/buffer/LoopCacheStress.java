package org.verbena.transport.buffer;

import io.netty.util.concurrent.ImmediateEventExecutor;
import java.util.EnumSet;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;
import org.verbena.transport.MemoryDomain;

/** Blocks that other threads release while their loop takes them in, and ends. */
public class LoopCacheStress {
    private static final int BYTES = 256;

    private LoopCacheStress() {}

    /** A pool of its own for each state, made by the loop, whose thread the cache belongs to. */
    abstract static class Base {
        private final RegisteredBufferPool pool = new RegisteredBufferPool(
                Region.domain(),
                new BufferPoolOptions(
                        1 << 20,
                        256 << 10,
                        1 << 20,
                        EnumSet.noneOf(MemoryDomain.Access.class),
                        BufferPoolOptions.Exhaustion.FAIL,
                        0,
                        0,
                        false));

        private volatile Block[] out;
        LoopCache cache;

        void begin() {
            int sizeClass = SizeClasses.indexOf(BYTES);
            int classes = SizeClasses.indexOf(pool.options().chunkBytes()) + 1;
            cache = new LoopCache(pool, ImmediateEventExecutor.INSTANCE, classes, 1 << 12);
            out = new Block[] {cache.take(sizeClass), cache.take(sizeClass)};
        }

        void giveBack(int i) {
            Block[] taken;
            while ((taken = out) == null) {
                Thread.onSpinWait();
            }
            cache.give(taken[i]);
        }

        /** Bytes that nobody has and that are not back; then it is of no use any more. */
        int lostBytes() {
            long used = pool.metrics().usedBytes();
            pool.close();
            return (int) used;
        }
    }

    /** Another thread releases while the loop trims. With two actors, as a machine may have no more processors. */
    @JCStressTest
    @Outcome(id = "0", expect = Expect.ACCEPTABLE, desc = "all blocks are back")
    @Outcome(expect = Expect.FORBIDDEN, desc = "a block was lost or came back twice")
    @State
    public static class ReleaseAndTrim extends Base {
        @Actor
        public void loop() {
            begin();
            cache.trim();
            cache.trim();
            cache.detach();
        }

        @Actor
        public void release() {
            giveBack(0);
            giveBack(1);
        }

        @Arbiter
        public void count(I_Result result) {
            result.r1 = lostBytes();
        }
    }
}
