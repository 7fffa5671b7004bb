package org.verbena.api.internal.request;

import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Limits how many requests of a server are in handlers on virtual threads at once. The others wait, in the order of
 * their arrival, and those that find the queue full are refused. Any thread.
 */
public final class HandlerLimit {
    private final int maxRunning;
    private final int maxWaiting;

    // Guarded by this object.
    private int running;
    /** In the order of their arrival. */
    private final LinkedHashMap<Incoming, VirtualHandlers.Work> waiting = new LinkedHashMap<>();

    public HandlerLimit(int maxRunning, int maxWaiting) {
        this.maxRunning = maxRunning;
        this.maxWaiting = maxWaiting;
    }

    /** Starts a request's handler, now or when it is its turn; false if it is refused. */
    boolean start(VirtualHandlers.Work work) {
        synchronized (this) {
            if (running == maxRunning) {
                if (waiting.size() >= maxWaiting) {
                    return false;
                }
                waiting.put(work.incoming(), work);
                work.countWaiting(1);
                return true;
            }
            running++;
        }
        VirtualHandlers.startThread(work);
        return true;
    }

    /** A handler has ended: the next that waits takes its place. */
    void ended() {
        Map.Entry<Incoming, VirtualHandlers.Work> next;
        synchronized (this) {
            next = waiting.pollFirstEntry();
            if (next == null) {
                running--;
                return;
            }
        }
        next.getValue().countWaiting(-1);
        VirtualHandlers.startThread(next.getValue());
    }

    /** A request's handler is not to begin: another may wait in its place. Null if it does not wait. */
    VirtualHandlers.@Nullable Work remove(Incoming request) {
        VirtualHandlers.Work removed;
        synchronized (this) {
            removed = waiting.remove(request);
        }
        if (removed != null) {
            removed.countWaiting(-1);
        }
        return removed;
    }

    /** How long the first waiting request has waited; 0 if there is none. */
    synchronized long longestWaitNanos(long nowNanos) {
        Map.Entry<Incoming, VirtualHandlers.Work> first = waiting.firstEntry();
        return first == null ? 0 : Math.max(0, nowNanos - first.getKey().arrivedNanos());
    }
}
