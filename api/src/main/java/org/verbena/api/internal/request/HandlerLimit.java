package org.verbena.api.internal.request;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Limits how many requests of a server are in handlers on virtual threads at once. The others wait, in the order of
 * their arrival, and those that find the queue full are refused. Any thread.
 */
public final class HandlerLimit {
    private final int maxRunning;
    private final int maxWaiting;
    private final AtomicInteger running = new AtomicInteger();
    private final AtomicInteger waiting = new AtomicInteger();
    private final Queue<VirtualHandlers.Work> queue = new ConcurrentLinkedQueue<>();

    public HandlerLimit(int maxRunning, int maxWaiting) {
        this.maxRunning = maxRunning;
        this.maxWaiting = maxWaiting;
    }

    /** Starts a request's handler, now or when it is its turn; false if it is refused. */
    boolean start(VirtualHandlers.Work work) {
        if (tryEnter()) {
            VirtualHandlers.startThread(work);
            return true;
        }
        if (waiting.incrementAndGet() > maxWaiting) {
            waiting.decrementAndGet();
            return false;
        }
        queue.add(work);
        if (tryEnter()) { // a handler may have ended just before, and found no request waiting
            ended();
        }
        return true;
    }

    private boolean tryEnter() {
        int now = running.get();
        while (now < maxRunning) {
            if (running.compareAndSet(now, now + 1)) {
                return true;
            }
            now = running.get();
        }
        return false;
    }

    /** A handler has ended: the next that waits takes its place. */
    void ended() {
        do {
            VirtualHandlers.Work next = queue.poll();
            if (next != null) {
                waiting.decrementAndGet();
                VirtualHandlers.startThread(next);
                return;
            }
            running.decrementAndGet();
        } while (!queue.isEmpty() && tryEnter()); // one was queued just now, and saw no free place
    }

    /** How long the first waiting request has waited; 0 if there is none. */
    long longestWaitNanos(long nowNanos) {
        VirtualHandlers.Work first = queue.peek();
        return first == null ? 0 : Math.max(0, nowNanos - first.incoming().arrivedNanos());
    }
}
