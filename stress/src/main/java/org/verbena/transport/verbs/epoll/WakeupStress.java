package org.verbena.transport.verbs.epoll;

import io.netty.channel.IoHandle;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoRegistration;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/** A loop that is about to block, and a thread that gives it a task: it must not sleep over it. */
@JCStressTest
@Outcome(id = "1", expect = Expect.ACCEPTABLE, desc = "the loop saw the task at once")
@Outcome(id = "0", expect = Expect.FORBIDDEN, desc = "the loop slept over the task")
@State
public class WakeupStress {
    /** Far longer than a wake-up takes, also on a busy machine. */
    private static final long SLEEP_NANOS = TimeUnit.SECONDS.toNanos(2);

    private volatile boolean hasTask;
    private volatile Handler handler;
    private volatile boolean isTold;

    /** The loop: opens its descriptors itself, so that there are no more of them than loops, and closes them. */
    @Actor
    public void loop(I_Result result) {
        Handler made = new Handler(Thread.currentThread());
        handler = made;
        long start = System.nanoTime();
        while (!hasTask && System.nanoTime() - start < SLEEP_NANOS) {
            made.block(new Context());
        }
        result.r1 = System.nanoTime() - start < SLEEP_NANOS ? 1 : 0;
        while (!isTold) {
            Thread.onSpinWait();
        }
        made.destroy();
    }

    /** Another thread. */
    @Actor
    public void giveTask() {
        Handler known;
        while ((known = handler) == null) {
            Thread.onSpinWait();
        }
        hasTask = true;
        known.wakeup();
        isTold = true;
    }

    private final class Context implements IoHandlerContext {
        @Override
        public boolean canBlock() {
            return !hasTask;
        }

        @Override
        public long delayNanos(long currentTimeNanos) {
            return SLEEP_NANOS;
        }

        @Override
        public long deadlineNanos() {
            return System.nanoTime() + SLEEP_NANOS;
        }
    }

    private static final class Handler extends DescriptorIoHandler {
        Handler(Thread loop) {
            super(new ThreadAwareExecutor() {
                @Override
                public boolean isExecutorThread(Thread thread) {
                    return thread == loop;
                }

                @Override
                public void execute(Runnable task) {
                    throw new UnsupportedOperationException();
                }
            });
        }

        @Override
        protected int doWork(IoHandlerContext context) {
            return 0;
        }

        @Override
        protected void onReadable(long data) {
            throw new IllegalStateException("nothing is watched");
        }

        @Override
        public IoRegistration register(IoHandle handle) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean isCompatible(Class<? extends IoHandle> handleType) {
            return false;
        }
    }
}
