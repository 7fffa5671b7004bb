package org.verbena.api.internal.request;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The requests that have arrived on a connection and have no answer yet, except those that a handler on the loop
 * answers before it returns. Any thread.
 */
public final class OpenRequests {
    /**
     * The bounds.
     *
     * @param requests the most that may be open
     * @param bytes the most that these may have together; a request may be longer if no other is open
     */
    public record Bounds(int requests, long bytes) {
        /**
         * Twice as many requests as a client sends by default before it waits for replies, since a reply may arrive
         * there while its request still counts here.
         */
        public static final Bounds DEFAULTS = new Bounds(524_288, 128L << 20);

        public Bounds {
            if (requests < 1 || bytes < 1) {
                throw new IllegalArgumentException(
                        "maxOpenRequests: " + requests + " requests of " + bytes + " bytes are not at least 1 of 1");
            }
        }
    }

    private final Bounds bounds;

    // Guarded by this object. Only the loop makes the map, so it may look without the lock whether there is one.
    /** Null until there is one. */
    private @Nullable CorrelationMap<Incoming> open;

    /** What those that are open had when they arrived. */
    private long bytes;

    private boolean ended;

    OpenRequests(Bounds bounds) {
        this.bounds = bounds;
    }

    /** Whether a request of this number is open. On the loop. */
    boolean has0(long correlation) {
        return open != null && find(correlation) != null;
    }

    /** Whether there is room for another request of so many bytes. On the loop. */
    boolean hasRoom0(int more) {
        CorrelationMap<Incoming> all = open;
        if (all == null) {
            return true;
        }
        synchronized (this) {
            return all.isEmpty() || (all.size() < bounds.requests && bytes + more <= bounds.bytes);
        }
    }

    /**
     * Adds a request that other threads may answer from now on, and whose number none that is open has; returns false
     * if the connection has ended. On the loop.
     */
    boolean add0(Incoming request, int itsBytes) {
        synchronized (this) {
            if (ended) {
                return false;
            }
            CorrelationMap<Incoming> all = open;
            if (all == null) {
                all = new CorrelationMap<>();
                open = all;
            }
            all.put(request.correlation(), request);
            bytes += itsBytes;
            request.setListed(itsBytes);
        }
        if (request.isOver()) { // it was answered in between, and not found here
            remove(request);
        }
        return true;
    }

    /** Null if it has its answer, or was never there. */
    synchronized @Nullable Incoming find(long correlation) {
        CorrelationMap<Incoming> all = open;
        return all == null ? null : all.get(correlation);
    }

    /** Removes a request, unless a later one has its number: it may have been removed before. */
    synchronized void remove(Incoming request) {
        CorrelationMap<Incoming> all = open;
        if (all != null && request.equals(all.get(request.correlation()))) {
            all.remove(request.correlation());
            bytes -= request.listedBytes();
        }
    }

    /** Returns the request whose time is over next, and adds those whose time is over to a list. */
    synchronized @Nullable Incoming earliest(long nowNanos, List<Incoming> expired) {
        Incoming first = null;
        CorrelationMap<Incoming> all = open;
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
        CorrelationMap<Incoming> all = open;
        return all == null ? List.of() : all.all();
    }

    /** Takes no more from now on; returns those that there are. */
    synchronized List<Incoming> end() {
        ended = true;
        return all();
    }

    synchronized boolean isEmpty() {
        CorrelationMap<Incoming> all = open;
        return all == null || all.isEmpty();
    }
}
