package org.verbena.api.internal.channel;

import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;

/** An attempt to connect, from the call to its outcome: the promise and its time limit. Event loop only. */
public final class ConnectAttempt {
    /** How long after the connect timeout the provider may take to report what it was waiting for. */
    private static final long TIMEOUT_GRACE_MILLIS = 200;

    private @Nullable ChannelPromise promise;
    private @Nullable Future<?> timeout;

    public ConnectAttempt(ChannelPromise promise) {
        this.promise = promise;
    }

    /** Whether the attempt is still pending. */
    public boolean isPending() {
        return promise != null;
    }

    /**
     * Sets the time limit. The provider's own timeout reports more; this one applies if the handshake after it takes
     * too long.
     */
    public void limit(EventLoop loop, int millis, Runnable onTimeout) {
        if (millis > 0) {
            timeout = loop.schedule(
                    () -> {
                        if (isPending()) {
                            onTimeout.run();
                        }
                    },
                    millis + TIMEOUT_GRACE_MILLIS,
                    TimeUnit.MILLISECONDS);
        }
    }

    /** The connection is established. Returns false if the attempt was already given up. */
    public boolean succeed() {
        ChannelPromise ended = end();
        return ended != null && ended.trySuccess();
    }

    /** The attempt failed. Returns false if it had already ended. */
    public boolean fail(Throwable cause) {
        ChannelPromise ended = end();
        return ended != null && ended.tryFailure(cause);
    }

    /** The attempt was cancelled: there is nobody to notify. */
    public void forget() {
        end();
    }

    private @Nullable ChannelPromise end() {
        Future<?> scheduled = timeout;
        if (scheduled != null) {
            scheduled.cancel(false);
        }
        ChannelPromise pending = promise;
        promise = null;
        return pending;
    }

    /** Checks an address to connect to or from. */
    public static InetSocketAddress resolved(SocketAddress address, String purpose) {
        if (!(address instanceof InetSocketAddress internet)) {
            throw new IllegalArgumentException(purpose + address + ": not an internet address");
        }
        if (internet.isUnresolved()) {
            throw new ConnectionException.Unreachable(purpose + internet + ": the name cannot be resolved");
        }
        return internet;
    }
}
