package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.netty.channel.IoHandle;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoRegistration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.spi.PollCounters;

/** How a loop waits, with scripted sockets. */
@Timeout(240)
class SoftIoHandlerTest {
    private final Sockets sockets = new Sockets();
    private final Loop loop = new Loop();

    private SoftIoHandler handler(long spinNanos) {
        return new SoftIoHandler(
                sockets,
                spinNanos,
                SoftOptions.ofSystemProperties(),
                new SoftwareDomain(),
                new PollCounters("soft").newLoop());
    }

    @Test
    void blocksAtOnceWithoutABudget() {
        SoftIoHandler handler = handler(0);
        for (int i = 0; i < 20; i++) {
            assertThat(handler.run(loop)).isEqualTo(1);
        }
        assertThat(sockets.polls).isZero();
        assertThat(sockets.blocks).isEqualTo(20);
    }

    @Test
    void pollsForTheBudgetAndThenBlocks() {
        SoftIoHandler handler = handler(TimeUnit.MILLISECONDS.toNanos(5));
        long start = System.nanoTime();
        handler.run(loop);
        assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(5));
        assertThat(sockets.polls).isPositive();
        assertThat(sockets.blocks).isEqualTo(1);
    }

    @Test
    void stopsPollingForATask() {
        SoftIoHandler handler = handler(TimeUnit.HOURS.toNanos(1));
        loop.blockableLooks = 10;
        assertThat(handler.run(loop)).isZero();
        assertThat(sockets.blocks).isZero();
    }

    @Test
    void stopsPollingForADeadline() {
        SoftIoHandler handler = handler(TimeUnit.HOURS.toNanos(1));
        loop.deadlineNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(2);
        handler.run(loop);
        assertThat(sockets.polls).isGreaterThan(0);
        assertThat(sockets.blocks).isEqualTo(1);
    }

    @Test
    void adaptivePollsOnlyWhileWorkComesOften() {
        assumeThat(Runtime.getRuntime().availableProcessors()).isGreaterThan(1);
        SoftIoHandler handler = handler(CompletionLoopOptions.ADAPTIVE_SPIN);
        handler.run(loop);
        assertThat(sockets.polls).as("before it has seen a wait").isZero();
        while (sockets.polls == 0) { // a wait may take long because others have the processor
            handler.run(loop);
        }
        sockets.blockedNanos = TimeUnit.MILLISECONDS.toNanos(2);
        for (int i = 0; i < 20; i++) {
            handler.run(loop);
        }
        int polls = sockets.polls;
        handler.run(loop);
        assertThat(sockets.polls).isEqualTo(polls);
    }

    @Test
    void adaptiveDoesNotMistakeWorkForWaiting() {
        assumeThat(Runtime.getRuntime().availableProcessors()).isGreaterThan(1);
        SoftIoHandler handler = handler(CompletionLoopOptions.ADAPTIVE_SPIN);
        sockets.activeNanos = TimeUnit.MILLISECONDS.toNanos(2);
        while (sockets.polls == 0) {
            handler.run(loop);
        }
    }

    /** Has work after each time it was blocked in. */
    private static final class Sockets implements IoHandler {
        private int polls;
        private int blocks;
        private long blockedNanos;
        private long activeNanos;

        @Override
        public int run(IoHandlerContext context) {
            if (!context.canBlock()) {
                polls++;
                return 0;
            }
            blocks++;
            pass(blockedNanos);
            long active = pass(activeNanos);
            if (context.shouldReportActiveIoTime()) {
                context.reportActiveIoTime(active);
            }
            return 1;
        }

        /** Takes at least so long, and returns how long it was. */
        private static long pass(long nanos) {
            long start = System.nanoTime();
            long passed = 0;
            while (passed < nanos) {
                Thread.onSpinWait();
                passed = System.nanoTime() - start;
            }
            return passed;
        }

        @Override
        public IoRegistration register(IoHandle handle) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void wakeup() {}

        @Override
        public boolean isCompatible(Class<? extends IoHandle> handleType) {
            return false;
        }
    }

    private static final class Loop implements IoHandlerContext {
        private int blockableLooks = Integer.MAX_VALUE;
        private long deadlineNanos = Long.MAX_VALUE;

        @Override
        public boolean canBlock() {
            return blockableLooks-- > 0;
        }

        @Override
        public long delayNanos(long currentTimeNanos) {
            return deadlineNanos == Long.MAX_VALUE ? Long.MAX_VALUE : Math.max(0, deadlineNanos - currentTimeNanos);
        }

        @Override
        public long deadlineNanos() {
            return deadlineNanos == Long.MAX_VALUE ? -1 : deadlineNanos;
        }
    }
}
