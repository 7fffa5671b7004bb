package org.verbena.api.internal.client;

import java.net.SocketAddress;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;

/** An attempt to connect, on a virtual thread, once {@link DialLimit} lets it begin. */
final class Dial implements Runnable {
    private final Control control;
    private final DialLimit limit;
    private final Dialer dialer;
    private final SocketAddress address;
    private final @Nullable List<String> rungs;
    private final Consumer<Dial> end;

    // Confined to the control thread, except that the attempt's reads when it began.
    private long beganNanos;

    /** Null before its turn, and if it could not be started. */
    private @Nullable Thread thread;

    private boolean cancelled;

    // Written before the end.
    private @Nullable Connected connected;
    private @Nullable Throwable failure;

    /**
     * Prepares one.
     *
     * @param rungs of the ladder that may be used; null for all
     * @param beganNanos when the connect timeout began, unless it has to wait for its turn
     * @param end gets this, in a step of the control
     */
    Dial(
            Control control,
            DialLimit limit,
            Dialer dialer,
            SocketAddress address,
            @Nullable List<String> rungs,
            long beganNanos,
            Consumer<Dial> end) {
        this.control = control;
        this.limit = limit;
        this.dialer = dialer;
        this.address = address;
        this.rungs = rungs;
        this.beganNanos = beganNanos;
        this.end = end;
    }

    /** Begins, now or later. */
    void start() {
        limit.begin0(this);
    }

    /**
     * Its turn has come: begins, or fails at once. Then the client tries again as after any failure.
     *
     * @param late whether it has waited: its connect timeout begins now
     */
    void begin0(boolean late) {
        if (late) {
            beganNanos = control.nanoTime();
        }
        try {
            Thread attempt = control.clock().newVirtualThread("verbena-connect", this);
            thread = attempt;
            attempt.start();
        } catch (Throwable refused) {
            failure = failureOf(refused);
            control.submit(this::over0);
        }
    }

    private void over0() {
        try {
            end.accept(this);
        } finally {
            limit.ended0();
        }
    }

    /** Ends the attempt, if it has no outcome yet. */
    void cancel() {
        cancelled = true;
        Thread attempt = thread;
        if (attempt != null) {
            attempt.interrupt();
        }
    }

    /** Whether it need not begin. */
    boolean isCancelled0() {
        return cancelled;
    }

    @Override
    public void run() {
        try {
            connected = dialer.connect(address, rungs, beganNanos);
        } catch (Throwable thrown) {
            failure = failureOf(thrown);
        }
        control.submit(this::over0);
    }

    private Throwable failureOf(Throwable thrown) {
        return thrown instanceof Error
                ? new ConnectionException("connect to " + address + ": " + thrown, thrown)
                : thrown;
    }

    /** The connection, at the end; null if there is none. */
    @Nullable Connected connected() {
        return connected;
    }

    /** Why there is no connection, at the end; null if there is one. */
    @Nullable Throwable failure() {
        return failure;
    }
}
