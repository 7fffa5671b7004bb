package org.verbena.api.internal.request;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The requests that have arrived on a connection and have no answer yet, except those that a handler on the loop
 * answers before it returns. Any thread.
 */
final class OpenRequests {
    /**
     * As many requests as a client sends by default before it waits for replies. Further ones are handled and answered
     * as well, but nobody waits for them.
     */
    static final int MOST = 262_144;

    // Guarded by this object.
    /** Null until there is one. */
    private @Nullable ByNumber<Incoming> open;

    private boolean ended;

    /** Adds a request that other threads may answer from now on; returns false if the connection has ended. */
    boolean add(Incoming request) {
        synchronized (this) {
            if (ended) {
                return false;
            }
            ByNumber<Incoming> all = open;
            if (all == null) {
                all = new ByNumber<>();
                open = all;
            }
            if (all.size() >= MOST) {
                return true;
            }
            all.put(request.correlation(), request);
            request.setListed();
        }
        if (request.isOver()) { // it was answered in between, and not found here
            remove(request);
        }
        return true;
    }

    /** Null if it has its answer, or was never there. */
    synchronized @Nullable Incoming find(long correlation) {
        ByNumber<Incoming> all = open;
        return all == null ? null : all.get(correlation);
    }

    /** Removes a request, unless a later one has its number. */
    synchronized void remove(Incoming request) {
        ByNumber<Incoming> all = open;
        if (all != null && request.equals(all.get(request.correlation()))) {
            all.remove(request.correlation());
        }
    }

    /** Of those whose time is not over, returns the one whose time is over first; adds the others that have a time. */
    synchronized @Nullable Incoming earliest(long nowNanos, List<Incoming> expired) {
        Incoming first = null;
        ByNumber<Incoming> all = open;
        if (all == null) {
            return null;
        }
        for (Incoming each : all.each()) {
            if (!each.hasDeadline()) {
                continue;
            }
            if (each.deadlineNanos() - nowNanos <= 0) {
                expired.add(each);
            } else if (first == null || each.deadlineNanos() - first.deadlineNanos() < 0) {
                first = each;
            }
        }
        return first;
    }

    synchronized List<Incoming> all() {
        ByNumber<Incoming> all = open;
        return all == null ? List.of() : all.all();
    }

    /** Takes no more from now on; returns those that there are. */
    synchronized List<Incoming> end() {
        ended = true;
        return all();
    }

    synchronized boolean isEmpty() {
        ByNumber<Incoming> all = open;
        return all == null || all.isEmpty();
    }
}
