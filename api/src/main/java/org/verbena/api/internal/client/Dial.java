package org.verbena.api.internal.client;

import io.netty.channel.Channel;
import java.net.SocketAddress;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.LoopClock;

/** An attempt to connect, on a virtual thread. */
final class Dial implements Runnable {
    private final Dialer dialer;
    private final SocketAddress address;
    private final @Nullable List<String> rungs;
    private final long beganNanos;
    private final Consumer<Dial> end;
    private final Thread thread;

    // Written before the end.
    private @Nullable Connected connected;
    private @Nullable Throwable failure;

    /**
     * Prepares one.
     *
     * @param clock makes the thread
     * @param rungs of the ladder that may be used; null for all
     * @param end gets this, on the thread of the attempt
     */
    Dial(
            LoopClock clock,
            Dialer dialer,
            SocketAddress address,
            @Nullable List<String> rungs,
            long beganNanos,
            Consumer<Dial> end) {
        this.dialer = dialer;
        this.address = address;
        this.rungs = rungs;
        this.beganNanos = beganNanos;
        this.end = end;
        thread = clock.newVirtualThread("verbena-connect", this);
    }

    void start() {
        thread.start();
    }

    /** Ends the attempt, if it has no outcome yet. */
    void cancel() {
        thread.interrupt();
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
            failure = thrown;
        }
        end.accept(this);
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
