package org.verbena.api.internal.loop;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.LoopClock;

/**
 * Calls what the program wants to be called: one after another, in order, on virtual threads, so that it may block. Any
 * thread.
 */
public final class Callbacks implements Executor {
    private static final Logger LOG = LoggerFactory.getLogger(Callbacks.class);

    private final LoopClock clock;
    private final Queue<Runnable> waiting = new ConcurrentLinkedQueue<>();

    /** The thread that raises it to 1 starts the thread that empties the queue. */
    private final AtomicInteger count = new AtomicInteger();

    /**
     * Creates one that has nothing to call.
     *
     * @param clock makes the threads
     */
    public Callbacks(LoopClock clock) {
        this.clock = clock;
    }

    @Override
    public void execute(Runnable callback) {
        waiting.add(callback);
        if (count.getAndIncrement() == 0) {
            Threads.start(clock, "verbena-listener", this::run);
        }
    }

    private void run() {
        do {
            Runnable callback = waiting.remove();
            try {
                callback.run();
            } catch (Throwable thrown) {
                LOG.error("a listener has failed", thrown);
            }
        } while (count.decrementAndGet() > 0);
    }
}
