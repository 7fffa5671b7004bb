package org.verbena.api.internal.client;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.IntToLongFunction;
import org.jspecify.annotations.Nullable;
import org.verbena.api.client.Target;
import org.verbena.api.internal.request.NameLookup;

/** The addresses that a client connects to, as its target has them. Control thread only. */
final class Addresses {
    private final Links.Options options;
    private final Control control;
    private final IntToLongFunction waits;
    private final Consumer<List<InetSocketAddress>> use;
    private final Resolution resolution;

    /** Null for servers that are not found by a name. */
    private final @Nullable Families families;

    /** Those that were found last. */
    private List<InetSocketAddress> known = List.of();

    private boolean resting;
    private boolean closed;
    private @Nullable Future<?> next;
    private long dueNanos;

    /** How often it has looked since there was a connection. */
    private int looks;

    /**
     * Prepares them.
     *
     * @param control where it all runs
     * @param waits how long to wait after so many look-ups
     * @param use gets those to connect to, each time that they change
     * @param notFound gets the reason why there are no new ones
     */
    Addresses(
            Target target,
            NameLookup names,
            Links.Options options,
            Control control,
            IntToLongFunction waits,
            Consumer<List<InetSocketAddress>> use,
            Consumer<Throwable> notFound) {
        this.options = options;
        this.control = control;
        this.waits = waits;
        this.use = use;
        families = target instanceof Target.Name ? new Families(control, use) : null;
        resolution = new Resolution(control, target, names, options.lookUpNanos(), this::found0, notFound);
    }

    void begin0() {
        resolution.begin0(TimeUnit.MILLISECONDS.toNanos(options.connectMillis()));
    }

    private void found0(List<InetSocketAddress> found) {
        known = found;
        if (resting) {
            return;
        }
        if (families == null) {
            use.accept(found);
        } else {
            families.found0(found);
        }
    }

    /** One of them has connected. */
    void connected0() {
        resolution.connected0();
    }

    /** The client uses that one: it may leave others. */
    void won0(SocketAddress address) {
        if (families != null && address instanceof InetSocketAddress internet) {
            families.won0(internet);
        }
    }

    /** There is a connection: the waits begin with the shortest when it is lost. */
    void up0() {
        looks = 0;
    }

    /** All that were tried have failed: returns whether there are others, which are tried now or soon. */
    boolean failed0() {
        return families != null && families.failed0();
    }

    /** Looks for others, since those that are known do not help: later each time. */
    void lookLater0() {
        if (next != null || closed) {
            return;
        }
        looks++;
        lookIn0(waits.applyAsLong(looks));
    }

    private void lookIn0(long delayNanos) {
        dueNanos = control.nanoTime() + delayNanos;
        next = control.schedule(
                () -> {
                    next = null;
                    resolution.refresh0();
                },
                delayNanos);
    }

    /** Looks within this time, if it waits to look. */
    void hurry0(long mostNanos, boolean forgets) {
        looks = forgets ? 0 : looks;
        Future<?> scheduled = next;
        if (scheduled != null && dueNanos - control.nanoTime() > mostNanos) {
            scheduled.cancel(false);
            lookIn0(control.clock().random().nextLong(mostNanos + 1));
        }
    }

    /** None is needed until {@link #wake0}. */
    void rest0() {
        resting = true;
        if (families != null) {
            families.forget0();
        }
        resolution.rest0();
    }

    /** Uses those that were found last, and looks for those that there are now. */
    void wake0() {
        resting = false;
        found0(known);
        resolution.wake0();
    }

    void close0() {
        closed = true;
        if (families != null) {
            families.stop0();
        }
        Future<?> scheduled = next;
        if (scheduled != null) {
            scheduled.cancel(false);
            next = null;
        }
        resolution.close0();
    }
}
