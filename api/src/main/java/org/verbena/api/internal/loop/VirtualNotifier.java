package org.verbena.api.internal.loop;

import io.netty.util.concurrent.AbstractEventExecutor;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.util.concurrent.TimeUnit;
import org.verbena.transport.spi.LoopClock;

/** Runs the listeners of futures that no event loop completes: each time on a virtual thread. */
public final class VirtualNotifier extends AbstractEventExecutor {
    public static final VirtualNotifier INSTANCE = new VirtualNotifier(LoopClock.system());

    private final LoopClock clock;

    private VirtualNotifier(LoopClock clock) {
        this.clock = clock;
    }

    /** One whose threads this clock makes. */
    public static VirtualNotifier of(LoopClock clock) {
        return clock.isSystem() ? INSTANCE : new VirtualNotifier(clock);
    }

    @Override
    public void execute(Runnable task) {
        Threads.start(clock, "verbena-notifier", task);
    }

    @Override
    public boolean inEventLoop(Thread thread) {
        return false;
    }

    @Override
    public boolean isShuttingDown() {
        return false;
    }

    @Override
    public boolean isShutdown() {
        return false;
    }

    @Override
    public boolean isTerminated() {
        return false;
    }

    /** It never ends. */
    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        return false;
    }

    @Override
    public Future<?> terminationFuture() {
        return GlobalEventExecutor.INSTANCE.terminationFuture();
    }

    /** Never called: no one gets this executor to end it. */
    @Override
    public Future<?> shutdownGracefully(long quietPeriod, long timeout, TimeUnit unit) {
        throw new UnsupportedOperationException("it has no thread to end");
    }

    /** As {@link #shutdownGracefully}. */
    @Override
    @Deprecated
    public void shutdown() {
        throw new UnsupportedOperationException("it has no thread to end");
    }
}
