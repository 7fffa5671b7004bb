package org.verbena.transport.software;

import io.netty.channel.IoEventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.nio.channels.SocketChannel;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;

/**
 * An inbound connection, until it is accepted, rejected or dropped: decided on once, by any thread. The rest belongs to
 * the listener's loop.
 *
 * @param <S> its socket
 * @param <E> what it becomes
 */
public abstract class IncomingRequest<S extends LoopSocket, E extends SoftwareEndpoint> implements IncomingConnection {
    private static final Logger LOG = LoggerFactory.getLogger(IncomingRequest.class);

    private final IoEventLoop listenerLoop;
    private final AtomicBoolean decided = new AtomicBoolean();
    private @Nullable S socket;
    private @Nullable ScheduledFuture<?> timeout;

    /** Written by the loop, read by any thread. */
    private volatile boolean ended;

    protected IncomingRequest(IoEventLoop listenerLoop) {
        this.listenerLoop = listenerLoop;
    }

    /** Checks the arguments of the user's accept; throws what the user is to see. */
    protected abstract void checkAccept(IoEventLoop loop, EndpointOptions options);

    protected abstract E newEndpoint(IoEventLoop loop, EndpointOptions options, EndpointHandler handler);

    /**
     * Hands the connection to the endpoint, on its loop.
     *
     * @param endpoint the new owner
     * @param channel connected; null if it is gone
     * @param inPlace its socket, if it is on that loop already
     */
    protected abstract void handOver(E endpoint, @Nullable SocketChannel channel, @Nullable S inPlace);

    /** Rejects, by a last message on the socket. */
    protected abstract void reject(S socket, byte[] reason);

    /** It has left the listener. */
    protected abstract void onEnded();

    // On the listener's loop.

    protected final @Nullable S socket() {
        return socket;
    }

    protected final void setSocket(S made) {
        socket = made;
    }

    protected final boolean isEnded() {
        return ended;
    }

    /** Schedules a task that runs unless this is decided first; it replaces the one before. */
    protected final void schedule(Runnable task, long nanos) {
        cancelTimeout();
        timeout = listenerLoop.schedule(task, nanos, TimeUnit.NANOSECONDS);
    }

    private void cancelTimeout() {
        ScheduledFuture<?> waiting = timeout;
        if (waiting != null) {
            timeout = null;
            waiting.cancel(false);
        }
    }

    /** It leaves the listener. Idempotent. */
    protected final void end() {
        if (!ended) {
            ended = true;
            socket = null;
            cancelTimeout();
            onEnded();
        }
    }

    protected final void close() {
        S now = socket;
        end();
        if (now != null) {
            now.closeNow();
        }
    }

    /** Decides, unless that has happened already. */
    protected final boolean tryDecide() {
        return decided.compareAndSet(false, true);
    }

    protected final void reject0(byte[] reason) {
        S now = socket;
        end();
        if (now != null) {
            reject(now, reason);
        }
    }

    private void handOver(IoEventLoop loop, E endpoint, EndpointHandler handler) {
        S now = socket;
        end();
        if (now == null) {
            handOver(loop, endpoint, handler, null);
        } else if (loop.inEventLoop()) {
            endpoint.guarded(() -> handOver(endpoint, now.channel(), now)).run();
        } else {
            SocketChannel channel = now.channel();
            now.unregister();
            handOver(loop, endpoint, handler, channel);
        }
    }

    private void handOver(IoEventLoop loop, E endpoint, EndpointHandler handler, @Nullable SocketChannel channel) {
        try {
            loop.execute(endpoint.guarded(() -> handOver(endpoint, channel, null)));
        } catch (RejectedExecutionException e) {
            // The program has ended the loop: no thread of the endpoint is left that could report its end.
            if (channel != null) {
                LoopSocket.closeQuietly(channel);
            }
            handler.onDisconnected(
                    endpoint,
                    new ConnectionException(
                            "accepting from " + remoteAddress() + ": the event loop that was to serve it has ended",
                            e));
        }
    }

    // On any thread.

    @Override
    public final boolean isPending() {
        return !ended && !decided.get();
    }

    private void decide() {
        if (!tryDecide()) {
            throw new IllegalStateException("the connect request of " + remoteAddress()
                    + " was already accepted or rejected, or has waited too long");
        }
    }

    @Override
    public final Endpoint accept(IoEventLoop loop, EndpointOptions options, EndpointHandler handler) {
        checkAccept(loop, options);
        decide();
        E endpoint = newEndpoint(loop, options, handler);
        execute(() -> handOver(loop, endpoint, handler), () -> handOver(loop, endpoint, handler, null));
        return endpoint;
    }

    @Override
    public final void reject(byte[] privateData) {
        if (privateData.length > EndpointOptions.MAX_PRIVATE_DATA_BYTES) {
            throw new IllegalArgumentException("private data of " + privateData.length + " bytes is over the limit of "
                    + EndpointOptions.MAX_PRIVATE_DATA_BYTES);
        }
        decide();
        byte[] reason = privateData.clone();
        execute(() -> reject0(reason), () -> {});
    }

    private void execute(Runnable task, Runnable otherwise) {
        try {
            listenerLoop.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("the listener's loop has ended", e);
            otherwise.run();
        }
    }
}
