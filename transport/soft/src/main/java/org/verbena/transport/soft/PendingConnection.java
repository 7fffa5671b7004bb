package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import io.netty.channel.nio.NioIoOps;
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
import org.verbena.transport.spi.PeerAddress;

/**
 * An inbound TCP connection, until it is accepted, rejected or dropped.
 *
 * <pre>{@code
 * READING --request complete--> WAITING --its turn--> ASKED --accept, reject, or out of time--> ENDED
 *    |                             | its address tried keys lately                                ^
 *    | out of time, malformed, closed by the peer, had to make room                               |
 *    +-----------------------------+--------------------------------------------------------------+
 *    | another protocol, and the listener takes those: its user has the socket                    |
 *    +--------------------------------------------------------------------------------------------+
 * }</pre>
 *
 * <p>A stranger that sends nothing costs this object, a socket and its registration, but no buffer and no timer.
 */
final class PendingConnection extends IncomingRequest<SoftSocket, SoftEndpoint> implements SoftSocket.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(PendingConnection.class);

    private final SoftListener listener;
    private final InetSocketAddress localAddress;
    private final InetSocketAddress remoteAddress;

    /** The network that its address is counted by. */
    final long network;

    /** When it was accepted, by {@link System#nanoTime()}. */
    final long beganNanos;

    /** From the first byte to the end of the request. */
    private @Nullable MpaFrameReader reader;

    /** Written by the loop before the user knows of this, never again. */
    private @Nullable MpaFrame request;

    /**
     * Made by the listener.
     *
     * @param listener counts it until it has ended
     * @param localAddress ours
     * @param remoteAddress the peer's
     * @param nowNanos of {@link System#nanoTime()}
     */
    PendingConnection(
            SoftListener listener, InetSocketAddress localAddress, InetSocketAddress remoteAddress, long nowNanos) {
        super(listener.loop());
        this.listener = listener;
        this.localAddress = localAddress;
        this.remoteAddress = remoteAddress;
        network = PeerAddress.networkOf(remoteAddress.getAddress());
        beganNanos = nowNanos;
    }

    /**
     * Begins to read the request; on the listener's loop.
     *
     * @param channel connected
     */
    void begin(SocketChannel channel) {
        IoEventLoop loop = listener.loop();
        try {
            SoftSocket made = new SoftSocket(loop, channel, this);
            setSocket(made);
            made.register();
            made.await(NioIoOps.READ);
            // The connecting side sends its request at once: often it has arrived already.
            onReadable();
        } catch (IOException | RuntimeException | Error e) {
            drop("cannot be read: " + e.getMessage());
        }
    }

    /** Drops the connection, whose time for a request is over. */
    void expire() {
        drop("sent no complete MPA request within " + listener.softOptions().handshakeTimeoutMillis() + " ms");
    }

    /** Makes room for another one. */
    void evict() {
        drop("sent no complete MPA request before too many newer connections arrived");
    }

    /** Closes the connection with its listener. */
    void leave() {
        LOG.debug("{} closed before {} had sent a request", listener, remoteAddress);
        close();
    }

    private void onUndecided() {
        if (!isEnded() && tryDecide()) {
            report(
                    PeerErrorLog.Kind.LOCAL,
                    "the connect request of " + remoteAddress + " was neither accepted nor rejected within "
                            + listener.softOptions().handshakeTimeoutMillis() + " ms; rejecting it");
            reject0(new byte[0]);
        }
    }

    private void report(PeerErrorLog.Kind kind, String text) {
        listener.context().incidents().report(kind, text);
    }

    @Override
    public void onReadable() {
        SoftSocket now = socket();
        if (isEnded() || now == null) {
            return;
        }
        try {
            if (request != null) {
                // Nothing may come until we have answered (RFC 5044, 7.1.2): this is the end, or a stranger.
                int read = now.channel().read(ByteBuffer.allocate(1));
                if (read < 0) {
                    drop("disconnected before it was accepted");
                } else if (read > 0) {
                    drop("sent more than its MPA request before it was answered");
                }
                // Otherwise the selector has reported the request itself, which was read before to make room.
                return;
            }
            MpaFrameReader reading = reader;
            if (reading == null) {
                reading = new MpaFrameReader(false);
                reader = reading;
            }
            MpaFrame frame = reading.read(now.channel());
            if (frame != null) {
                onRequest(frame);
            } else if (reading.isOtherProtocol() && listener.takesPlainTcp()) {
                becomePlain(); // the peer has ended its half, and can send no MPA request any more
            } else if (!reading.hasBytes()) {
                reader = null;
                if (reading.isEnded()) {
                    // Probes often connect and disconnect.
                    LOG.debug("{} disconnected without sending anything", remoteAddress);
                    close();
                }
            } else if (reading.isEnded()) {
                drop("disconnected within its MPA request");
            }
        } catch (MpaException e) {
            MpaFrameReader reading = reader;
            if (reading != null && reading.isOtherProtocol() && listener.takesPlainTcp()) {
                becomePlain();
            } else {
                drop("sent a frame that " + e.getMessage());
            }
        } catch (IOException e) {
            drop("is gone: " + e.getMessage());
        }
    }

    /** Whether its bytes may still turn out to be those of another protocol: it is in READING, and has sent little. */
    boolean isUntold() {
        MpaFrameReader reading = reader;
        return listener.isUnfinished(this) && (reading == null || !reading.hasKey());
    }

    /**
     * It has sent too little to recognise its protocol, for as long as the listener's user wants to wait. What has
     * arrived meanwhile is read first.
     */
    void tellBySilence() {
        onReadable();
        if (isUntold()) {
            becomePlain();
        }
    }

    /** It speaks another protocol: leaves the listener and its loop, with the socket open. */
    private void becomePlain() {
        SoftSocket now = socket();
        if (isEnded() || now == null) {
            return;
        }
        tryDecide();
        MpaFrameReader reading = reader;
        reader = null;
        SocketChannel channel = now.channel();
        now.unregister();
        end();
        listener.onPlain(channel, ByteBuffer.wrap(reading == null ? new byte[0] : reading.bytes()));
    }

    private void onRequest(MpaFrame frame) {
        request = frame;
        reader = null;
        listener.handshakeComplete(this);
        if (frame.markers()) {
            report(
                    PeerErrorLog.Kind.HANDSHAKE,
                    remoteAddress + " wants MPA markers, which are not supported; rejecting it");
            tryDecide();
            reject0(new byte[0]);
            return;
        }
        long waitNanos = listener.context().guesses().waitNanos(remoteAddress.getAddress(), System.nanoTime());
        if (waitNanos == 0) {
            ask();
        } else if (waitNanos > 0) {
            schedule(this::ask, waitNanos);
        } else {
            report(
                    PeerErrorLog.Kind.HANDSHAKE,
                    "rejecting " + remoteAddress + ": its address has used many wrong keys (STags) recently");
            tryDecide();
            reject0(new byte[0]);
        }
    }

    private void ask() {
        if (isEnded()) {
            return;
        }
        schedule(
                this::onUndecided,
                TimeUnit.MILLISECONDS.toNanos(listener.softOptions().handshakeTimeoutMillis()));
        if (!listener.onRequest(this) && tryDecide()) {
            reject0(new byte[0]);
        }
    }

    private void drop(String why) {
        if (!isEnded()) {
            report(
                    PeerErrorLog.Kind.HANDSHAKE,
                    "dropped a connection that was not established yet: " + remoteAddress + " " + why);
            close();
        }
    }

    @Override
    protected void onEnded() {
        listener.handshakeEnded(this);
    }

    @Override
    public InetSocketAddress localAddress() {
        return localAddress;
    }

    @Override
    public InetSocketAddress remoteAddress() {
        return remoteAddress;
    }

    @Override
    public byte[] privateData() {
        return requireRequest().privateData().clone();
    }

    private MpaFrame requireRequest() {
        MpaFrame now = request;
        if (now == null) {
            throw new IllegalStateException("the request is not complete");
        }
        return now;
    }

    @Override
    protected void checkAccept(IoEventLoop loop, EndpointOptions options) {
        SoftProvider.checkLoop(loop);
        MpaNegotiation.checkPrivateData(options, true);
        MpaNegotiation.checkTransport(options);
    }

    @Override
    protected SoftEndpoint newEndpoint(IoEventLoop loop, EndpointOptions options, EndpointHandler handler) {
        return new SoftEndpoint(loop, listener.context(), options, handler, remoteAddress, false);
    }

    @Override
    protected void handOver(SoftEndpoint endpoint, @Nullable SocketChannel channel, @Nullable SoftSocket inPlace) {
        if (inPlace != null) {
            inPlace.await(NioIoOps.NONE);
        }
        endpoint.accept(channel, inPlace, requireRequest());
    }

    @Override
    protected void reject(SoftSocket socket, byte[] reason) {
        socket.closeGracefully(
                ByteBuffer.wrap(MpaFrame.rejectionOf(requireRequest(), reason).encode()));
    }

    @Override
    public void onWritable() {}

    @Override
    public void onTick() {}

    @Override
    public void onFailure(Throwable cause) {
        drop("hit an error in the provider: " + cause);
    }

    @Override
    public void onLoopEnding() {
        drop("lost its event loop");
    }
}
