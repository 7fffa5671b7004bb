package org.verbena.api.internal.client;

import io.netty.channel.Channel;
import java.net.SocketAddress;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;

/** An attempt to connect, on a virtual thread. */
final class Dial implements Runnable {
    private final Control control;
    private final Dialer dialer;
    private final SocketAddress address;
    private final @Nullable List<String> rungs;
    private final long beganNanos;
    private final Consumer<Dial> end;

    /** Null if it could not be started. */
    private @Nullable Thread thread;

    // Written before the end.
    private @Nullable Connected connected;
    private @Nullable Throwable failure;

    /**
     * Prepares one.
     *
     * @param rungs of the ladder that may be used; null for all
     * @param end gets this, in a step of the control
     */
    Dial(
            Control control,
            Dialer dialer,
            SocketAddress address,
            @Nullable List<String> rungs,
            long beganNanos,
            Consumer<Dial> end) {
        this.control = control;
        this.dialer = dialer;
        this.address = address;
        this.rungs = rungs;
        this.beganNanos = beganNanos;
        this.end = end;
    }

    /** Begins, or fails at once: then the client tries again as after any failure. */
    void start() {
        try {
            Thread attempt = control.clock().newVirtualThread("verbena-connect", this);
            thread = attempt;
            attempt.start();
        } catch (Throwable refused) {
            failure = failureOf(refused);
            control.submit(() -> end.accept(this));
        }
    }

    /** Ends the attempt, if it has no outcome yet. */
    void cancel() {
        Thread attempt = thread;
        if (attempt != null) {
            attempt.interrupt();
        }
    }

    @Override
    public void run() {
        Channel channel = null;
        try {
            channel = dialer.connect(address, rungs, beganNanos);
            connected = Connected.of(channel);
        } catch (Throwable thrown) {
            if (channel != null) {
                channel.close();
            }
            failure = failureOf(thrown);
        }
        control.submit(() -> end.accept(this));
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
