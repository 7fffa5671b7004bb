package org.verbena.api.internal.loop;

import io.netty.channel.EventLoop;
import io.netty.util.concurrent.AbstractEventExecutor;
import io.netty.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Runs the listeners of a future: on its event loop, or, once the loop has ended and refuses tasks, on virtual threads.
 * So every listener is called, whenever it was added, and one that blocks then holds up only those of its future. Any
 * thread.
 */
public final class LoopNotifier extends AbstractEventExecutor {
    private final EventLoop loop;

    public LoopNotifier(EventLoop loop) {
        super(loop);
        this.loop = loop;
    }

    @Override
    public void execute(Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException | Error refused) {
            VirtualNotifier.INSTANCE.execute(task);
        }
    }

    @Override
    public boolean inEventLoop(Thread thread) {
        return loop.inEventLoop(thread);
    }

    @Override
    public boolean isShuttingDown() {
        return loop.isShuttingDown();
    }

    @Override
    public boolean isShutdown() {
        return loop.isShutdown();
    }

    @Override
    public boolean isTerminated() {
        return loop.isTerminated();
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
        return loop.awaitTermination(timeout, unit);
    }

    @Override
    public Future<?> terminationFuture() {
        return loop.terminationFuture();
    }

    /** Never called: no one gets this executor to end it. */
    @Override
    public Future<?> shutdownGracefully(long quietPeriod, long timeout, TimeUnit unit) {
        throw new UnsupportedOperationException("end the event loop itself");
    }

    /** As {@link #shutdownGracefully}. */
    @Override
    @Deprecated
    public void shutdown() {
        throw new UnsupportedOperationException("end the event loop itself");
    }
}
