package org.verbena.transport.verbs.epoll;

import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the loops of this library have in common: waiting on descriptors, and being woken by other threads.
 *
 * <pre>
 *            block()                     a descriptor, a deadline, or wakeup()
 *   AWAKE ------------> WAITING -------------------------------------------> AWAKE
 * </pre>
 *
 * <p>A thread that adds a task calls {@link #wakeup()}; only the first one that finds the loop WAITING writes to the
 * eventfd. The loop sets WAITING before it checks once more for a task ({@link IoHandlerContext#canBlock()}), so no
 * task is missed.
 */
public abstract class DescriptorIoHandler implements IoHandler {
    private static final Logger LOG = LoggerFactory.getLogger(DescriptorIoHandler.class);

    private static final int AWAKE = 0;
    private static final int WAITING = 1;

    /** Events of one wait; more are reported by the next. */
    private static final int MAX_EVENTS = 64;

    /** What the eventfd is watched with; no other descriptor may have it. */
    private static final long WAKEUP = -1;

    /** How long a loop that keeps failing pauses, so that it neither ends nor fills the log. */
    private static final long REST_MILLIS = 1000;

    private final ThreadAwareExecutor executor;
    private final Epoll epoll;
    private final EventDescriptor wakeup;

    /** Written by the loop and by the threads that wake it. */
    private final AtomicInteger state = new AtomicInteger(AWAKE);

    /**
     * Opens the descriptors.
     *
     * @param executor the loop that this handler is for
     */
    protected DescriptorIoHandler(ThreadAwareExecutor executor) {
        this.executor = executor;
        epoll = new Epoll(MAX_EVENTS);
        try {
            wakeup = new EventDescriptor();
        } catch (RuntimeException noDescriptor) {
            epoll.close();
            throw noDescriptor;
        }
        try {
            epoll.add(wakeup.fd(), Epoll.READABLE, WAKEUP);
        } catch (RuntimeException refused) {
            wakeup.close();
            epoll.close();
            throw refused;
        }
    }

    /**
     * One turn.
     *
     * @param context says whether and how long to block
     * @return how much was done
     */
    protected abstract int doWork(IoHandlerContext context);

    /**
     * A descriptor has something.
     *
     * @param data what it was watched with
     */
    protected abstract void onReadable(long data);

    /**
     * Watches a descriptor. The loop's thread.
     *
     * @param descriptor what to watch
     * @param data not negative; comes back in {@link #onReadable}
     */
    protected final void watch(int descriptor, long data) {
        epoll.add(descriptor, Epoll.READABLE, data);
    }

    /**
     * Watches a descriptor no longer; before it is closed. The loop's thread.
     *
     * @param descriptor what is watched
     */
    protected final void unwatch(int descriptor) {
        epoll.remove(descriptor);
    }

    /** Checks the descriptors without waiting. */
    protected final void look() {
        dispatch(epoll.await(0));
    }

    /**
     * Waits for a descriptor, a task, or the next scheduled one.
     *
     * @param context says whether there is a task, and when the next is due
     * @param maxNanos after which it returns in any case; {@code Long.MAX_VALUE} for never
     */
    protected final void block(IoHandlerContext context, long maxNanos) {
        int count;
        state.set(WAITING);
        try {
            if (context.canBlock()) {
                boolean scheduled = context.deadlineNanos() != -1;
                long nanos = scheduled ? Math.clamp(context.delayNanos(System.nanoTime()), 0, maxNanos) : maxNanos;
                count = epoll.await(nanos == Long.MAX_VALUE ? -1 : nanos);
            } else {
                count = epoll.await(0);
            }
        } finally {
            state.set(AWAKE);
        }
        dispatch(count);
    }

    private void dispatch(int count) {
        for (int i = 0; i < count; i++) {
            long data = epoll.data(i);
            if (data == WAKEUP) {
                wakeup.drain();
            } else {
                onReadable(data);
            }
        }
    }

    @Override
    public final int run(IoHandlerContext context) {
        try {
            return doWork(context);
        } catch (Throwable failure) {
            // Netty ends a loop whose handler throws, and with it all its connections.
            LOG.error(
                    "The loop {} failed and goes on after {} ms",
                    Thread.currentThread().getName(),
                    REST_MILLIS,
                    failure);
            try {
                TimeUnit.MILLISECONDS.sleep(REST_MILLIS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return 0;
        }
    }

    @Override
    public final void wakeup() {
        if (!executor.isExecutorThread(Thread.currentThread()) && state.getAndSet(AWAKE) == WAITING) {
            wakeup.signal();
        }
    }

    /** Closes the descriptors: nothing is watched any more. */
    @Override
    public void destroy() {
        epoll.close();
        wakeup.close();
    }
}
