package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.IncomingRequest;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;

/**
 * A connection that was taken from the socket, until it is accepted, rejected or dropped.
 *
 * <pre>{@code
 * READING --request complete--> ASKED --accept, reject, or out of time--> ENDED
 *    |                                                                     ^
 *    +--out of time, malformed, closed by the peer-------------------------+
 * }</pre>
 */
final class PendingRequest extends IncomingRequest<ControlSocket, ShmEndpoint> implements ControlSocket.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(PendingRequest.class);

    private final ShmListener listener;
    private Handshake.@Nullable Reader reader = new Handshake.Reader();

    /** Written by the loop before the user knows of this, never again. */
    private Handshake.@Nullable Request request;

    PendingRequest(ShmListener listener) {
        super(listener.loop());
        this.listener = listener;
    }

    /** Begins to read the request; on the listener's loop. */
    void begin(SocketChannel channel) {
        try {
            ControlSocket made = new ControlSocket(listener.loop(), channel, this);
            setSocket(made);
            made.register();
            made.begin();
            startTimeout();
            onReadable();
        } catch (IOException | RuntimeException | Error e) {
            drop(e.toString());
        }
    }

    private void startTimeout() {
        schedule(this::onTimeout, TimeUnit.MILLISECONDS.toNanos(handshakeMillis()));
    }

    private int handshakeMillis() {
        return listener.context().options().handshakeTimeoutMillis();
    }

    @Override
    public void onReadable() {
        ControlSocket now = socket();
        if (isEnded() || now == null) {
            return;
        }
        try {
            Handshake.Reader reading = reader;
            if (reading == null) {
                // Nothing may come before the answer.
                int read = now.channel().read(ByteBuffer.allocate(1));
                if (read != 0) { // else the request itself was reported, and had been read already to make room
                    drop(
                            read < 0
                                    ? "disconnected before it was accepted"
                                    : "sent more than its request before it was answered");
                }
                return;
            }
            ByteBuffer frame = reading.read(now.channel());
            if (frame != null) {
                reader = null;
                request = Handshake.Request.decode(frame);
                listener.complete(this);
                ask();
            } else if (reading.isEnded()) {
                LOG.debug("a client of {} disconnected without a request", listener);
                close();
            }
        } catch (Handshake.VersionException e) {
            // The answer has this side's version in the place that no version moves.
            now.send(Handshake.Reply.refused(Handshake.Verdict.REJECTED, new byte[0])
                    .encode());
            drop(String.valueOf(e.getMessage()));
        } catch (IOException e) {
            drop(String.valueOf(e.getMessage()));
        }
    }

    /** Makes room for another one. */
    void evict() {
        drop("sent no complete request before too many newer clients came");
    }

    /** Its listener has closed. */
    void leave() {
        LOG.debug("{} closed before a client had sent a request", listener);
        close();
    }

    private void onTimeout() {
        if (request == null) {
            drop("sent no complete request within " + handshakeMillis() + " ms");
        } else if (!isEnded() && tryDecide()) {
            listener.context()
                    .local()
                    .warn("the connect request of " + remoteAddress() + " was neither accepted nor rejected within "
                            + handshakeMillis() + " ms; rejecting it");
            reject0(new byte[0]);
        }
    }

    private void ask() {
        startTimeout();
        if (!listener.onRequest(this) && tryDecide()) {
            reject0(new byte[0]);
        }
    }

    private void drop(String why) {
        if (!isEnded()) {
            listener.context().strangers().warn("dropped a client of " + listener + " that " + why);
            close();
        }
    }

    @Override
    protected void onEnded() {
        listener.ended(this);
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
    protected void checkAccept(IoEventLoop loop, EndpointOptions options) {
        ShmProvider.checkLoop(loop);
        ShmEndpoint.checkOptions(options);
    }

    @Override
    protected ShmEndpoint newEndpoint(IoEventLoop loop, EndpointOptions options, EndpointHandler handler) {
        return new ShmEndpoint(loop, listener.context(), options, handler, remoteAddress(), false);
    }

    @Override
    protected void handOver(ShmEndpoint endpoint, @Nullable SocketChannel channel, @Nullable ControlSocket inPlace) {
        endpoint.setup().accept(channel, inPlace, requireRequest());
    }

    @Override
    protected void reject(ControlSocket socket, byte[] reason) {
        socket.send(Handshake.Reply.refused(Handshake.Verdict.REJECTED, reason).encode());
        socket.closeWhenSent();
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
