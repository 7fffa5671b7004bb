package org.verbena.transport.spi;

import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/** Threads of which some cannot be had. */
public final class RefusingThreads implements ThreadFactory {
    private final AtomicInteger asked = new AtomicInteger();
    private final int first;
    private final int count;

    /**
     * Makes all threads but some.
     *
     * @param first the number of the first that is refused, from 0
     * @param count how many are
     */
    public RefusingThreads(int first, int count) {
        this.first = first;
        this.count = count;
    }

    @Override
    public Thread newThread(Runnable task) {
        int number = asked.getAndIncrement();
        if (number >= first && number < first + count) {
            throw new OutOfMemoryError("unable to create native thread");
        }
        return Thread.ofPlatform().daemon().unstarted(task);
    }

    /**
     * Whether all that are to be refused were.
     *
     * @return false if they were not asked for yet
     */
    public boolean isOver() {
        return asked.get() >= first + count;
    }
}
