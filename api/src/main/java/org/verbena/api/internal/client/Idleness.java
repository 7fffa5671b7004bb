package org.verbena.api.internal.client;

import java.util.IdentityHashMap;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.function.IntSupplier;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Notices that a client's connections carry nothing. It compares their counters from time to time, so that messages and
 * requests cost nothing more. Control thread only.
 */
final class Idleness {
    /** The counters are compared so often within the time, which ends by so much of it too late at worst. */
    private static final int CHECKS = 2;

    private final long everyNanos;
    private final Control control;
    private final BooleanSupplier hasWork;
    private final Runnable idle;
    private final IdentityHashMap<Object, Watched> open = new IdentityHashMap<>();

    /** Whether a connection that has closed had carried something since the last check. */
    private boolean closedBusy;

    private int quietChecks;
    private @Nullable Future<?> next;

    /** A connection's counters, and what they were when they were looked at last. */
    private static final class Watched {
        private final LongSupplier carried;
        private final IntSupplier load;
        private long before;

        Watched(LongSupplier carried, IntSupplier load) {
            this.carried = carried;
            this.load = load;
        }

        /** Whether it has carried something since the last call, or does. */
        boolean isBusy() {
            long now = carried.getAsLong();
            boolean busy = now != before || load.getAsInt() > 0;
            before = now;
            return busy;
        }
    }

    /**
     * Prepares it.
     *
     * @param afterNanos how long nothing is carried until the client is idle
     * @param hasWork whether something waits to be sent
     * @param idle is called when nothing was carried for so long, and nothing is under way
     */
    Idleness(long afterNanos, Control control, BooleanSupplier hasWork, Runnable idle) {
        everyNanos = Math.max(1, afterNanos / CHECKS);
        this.control = control;
        this.hasWork = hasWork;
        this.idle = idle;
    }

    /**
     * A connection is open.
     *
     * @param carried counts what it has carried
     * @param load how much is under way
     */
    void opened0(Object connection, LongSupplier carried, IntSupplier load) {
        open.put(connection, new Watched(carried, load));
    }

    void closed0(Object connection) {
        Watched closed = open.remove(connection);
        closedBusy |= closed != null && closed.isBusy();
    }

    /** The client has a connection. */
    void begin0() {
        if (next == null) {
            quietChecks = 0;
            next = control.schedule(this::check0, everyNanos);
        }
    }

    /** It has none. */
    void stop0() {
        Future<?> scheduled = next;
        if (scheduled != null) {
            scheduled.cancel(false);
            next = null;
        }
    }

    private void check0() {
        boolean busy = hasWork.getAsBoolean() || closedBusy;
        closedBusy = false;
        for (Watched each : open.values()) { // all of them, since each remembers what it has seen
            busy |= each.isBusy();
        }
        quietChecks = busy ? 0 : quietChecks + 1;
        if (quietChecks < CHECKS) {
            next = control.schedule(this::check0, everyNanos);
        } else {
            next = null;
            idle.run();
        }
    }
}
