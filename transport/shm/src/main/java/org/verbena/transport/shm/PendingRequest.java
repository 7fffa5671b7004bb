package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;

/**
 * A connection that was taken from the socket, until it is accepted, rejected or dropped.
 *
 * <pre>{@code
 * READING --request complete--> ASKED --accept, reject, or out of time--> ENDED
 *    |                                                                     ^
 *    +--out of time, malformed, closed by the peer-------------------------+
 * }</pre>
 */
final class PendingRequest implements IncomingConnection, ControlSocket.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(PendingRequest.class);

    private final ShmListener listener;
    private final AtomicBoolean decided = new AtomicBoolean();
    private Handshake.@Nullable Reader reader = new Handshake.Reader();
    private @Nullable ControlSocket socket;
    private @Nullable ScheduledFuture<?> timeout;

    /** Written by the loop before the user knows of this, never again. */
    private Handshake.@Nullable Request request;

    /** Written by the loop, read by any thread. */
    private volatile boolean ended;

    PendingRequest(ShmListener listener) {
        this.listener = listener;
    }

    /** Begins to read the request; on the listener's loop. */
    void begin(SocketChannel channel) {
        try {
            ControlSocket made = new ControlSocket(listener.loop(), channel, this);
            socket = made;
            made.register();
            timeout = listener.loop().schedule(this::onTimeout, handshakeMillis(), TimeUnit.MILLISECONDS);
            onReadable();
        } catch (IOException | RuntimeException e) {
            drop(e.toString());
        }
    }

    private int handshakeMillis() {
        return listener.context().options().handshakeTimeoutMillis();
    }

    @Override
    public void onReadable() {
        ControlSocket now = socket;
        if (ended || now == null) {
            return;
        }
        try {
            Handshake.Reader reading = reader;
            if (reading == null) {
                // Nothing may come before the answer.
                drop(
                        now.channel().read(ByteBuffer.allocate(1)) < 0
                                ? "disconnected before it was accepted"
                                : "sent more than its request before it was answered");
                return;
            }
            ByteBuffer frame = reading.read(now.channel());
            if (frame != null) {
                reader = null;
                request = Handshake.Request.decode(frame);
                cancelTimeout();
                ask();
            } else if (reading.isEnded()) {
                LOG.debug("a client of {} disconnected without a request", listener);
                close();
            }
        } catch (IOException e) {
            drop(String.valueOf(e.getMessage()));
        }
    }

    private void onTimeout() {
        timeout = null;
        if (request == null) {
            drop("sent no complete request within " + handshakeMillis() + " ms");
        } else if (!ended && decided.compareAndSet(false, true)) {
            LOG.warn(
                    "the connect request of {} was neither accepted nor rejected within {} ms; rejecting it",
                    remoteAddress(),
                    handshakeMillis());
            reject0(new byte[0]);
        }
    }

    private void ask() {
        timeout = listener.loop().schedule(this::onTimeout, handshakeMillis(), TimeUnit.MILLISECONDS);
        if (!listener.onRequest(this) && decided.compareAndSet(false, true)) {
            reject0(new byte[0]);
        }
    }

    private void drop(String why) {
        if (!ended) {
            LOG.warn("dropped a client of {} that {}", listener, why);
            close();
        }
    }

    private void close() {
        ControlSocket now = socket;
        end();
        if (now != null) {
            now.closeNow();
        }
    }

    private void cancelTimeout() {
        ScheduledFuture<?> waiting = timeout;
        if (waiting != null) {
            timeout = null;
            waiting.cancel(false);
        }
    }

    private void end() {
        if (!ended) {
            ended = true;
            socket = null;
            cancelTimeout();
            listener.ended(this);
        }
    }

    private Handshake.Request requireRequest() {
        Handshake.Request now = request;
        if (now == null) {
            throw new IllegalStateException("the request is not complete");
        }
        return now;
    }

    @Override
    public InetSocketAddress localAddress() {
        return requireRequest().to();
    }

    @Override
    public InetSocketAddress remoteAddress() {
        return requireRequest().from();
    }

    @Override
    public byte[] privateData() {
        return requireRequest().privateData().clone();
    }

    @Override
    public boolean isPending() {
        return !ended && !decided.get();
    }

    private void decide() {
        if (!decided.compareAndSet(false, true)) {
            throw new IllegalStateException("the connect request of " + remoteAddress()
                    + " was already accepted or rejected, or has waited too long");
        }
    }

    @Override
    public Endpoint accept(IoEventLoop loop, EndpointOptions options, EndpointHandler handler) {
        ShmProvider.checkLoop(loop);
        ShmEndpoint.checkOptions(options);
        decide();
        ShmEndpoint endpoint = new ShmEndpoint(loop, listener.context(), options, handler, remoteAddress(), false);
        execute(() -> handOver(loop, endpoint), () -> loop.execute(() -> gone(endpoint)));
        return endpoint;
    }

    private void gone(ShmEndpoint endpoint) {
        endpoint.setup().accept(null, null, requireRequest());
    }

    private void handOver(IoEventLoop loop, ShmEndpoint endpoint) {
        ControlSocket now = socket;
        end();
        if (now == null) {
            loop.execute(() -> gone(endpoint));
        } else if (loop.inEventLoop()) {
            endpoint.setup().accept(now.channel(), now, requireRequest());
        } else {
            SocketChannel channel = now.channel();
            now.unregister();
            try {
                loop.execute(() -> endpoint.setup().accept(channel, null, requireRequest()));
            } catch (RejectedExecutionException e) {
                // The program has ended the loop, and with it the channel that was to serve the peer.
                LOG.debug("the event loop that should serve {} has ended", remoteAddress(), e);
                ControlSocket.closeQuietly(channel);
            }
        }
    }

    @Override
    public void reject(byte[] privateData) {
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
            listener.loop().execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("the listener's loop has ended", e);
            otherwise.run();
        }
    }

    private void reject0(byte[] reason) {
        ControlSocket now = socket;
        end();
        if (now == null) {
            return;
        }
        try {
            now.send(new Handshake.Reply(false, 0, ShmContext.PID, reason).encode());
        } catch (IOException e) {
            LOG.debug("rejecting {}", remoteAddress(), e);
        }
        now.closeNow();
    }

    @Override
    public void onFailure(Throwable cause) {
        drop("hit an error in the provider: " + cause);
    }

    @Override
    public void onLoopEnding() {
        drop("lost its event loop");
    }
}
