package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import io.netty.channel.nio.NioIoOps;
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
final class PendingConnection implements IncomingConnection, SoftSocket.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(PendingConnection.class);

    private final SoftListener listener;
    private final InetSocketAddress localAddress;
    private final InetSocketAddress remoteAddress;

    /** What its address is counted by. */
    final long network;

    /** When it was accepted, by {@link System#nanoTime()}. */
    final long beganNanos;

    /** Its place among the unfinished ones: used by {@link Handshakes} only. */
    @Nullable PendingConnection older;

    @Nullable PendingConnection newer;

    boolean listed;

    private final AtomicBoolean decided = new AtomicBoolean();
    private @Nullable SoftSocket socket;
    private @Nullable ScheduledFuture<?> timeout;

    /** From the first byte to the end of the request. */
    private @Nullable MpaFrameReader reader;

    /** Written by the loop before the user knows of this, never again. */
    private @Nullable MpaFrame request;

    /** Written by the loop, read by any thread. */
    private volatile boolean ended;

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
            socket = made;
            made.register();
            made.await(NioIoOps.READ);
            // The connecting side sends its request at once: often it has arrived already.
            onReadable();
        } catch (IOException | RuntimeException | Error e) {
            drop("cannot be read: " + e.getMessage());
        }
    }

    /** Its time for a request is over. */
    void expire() {
        drop("sent no complete MPA request within " + listener.softOptions().handshakeTimeoutMillis() + " ms");
    }

    /** Makes room for another one. */
    void evict() {
        drop("sent no complete MPA request before too many newer connections arrived");
    }

    private void onUndecided() {
        if (!ended && decided.compareAndSet(false, true)) {
            report(
                    Incidents.Kind.LOCAL,
                    "the connect request of " + remoteAddress + " was neither accepted nor rejected within "
                            + listener.softOptions().handshakeTimeoutMillis() + " ms; rejecting it");
            reject0(new byte[0]);
        }
    }

    private void report(Incidents.Kind kind, String text) {
        listener.context().incidents().report(kind, text);
    }

    @Override
    public void onReadable() {
        SoftSocket now = socket;
        if (ended || now == null) {
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
                // Else the request itself was reported, and had been read already to make room.
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

    /** Whether its bytes may still turn out to be those of another protocol: it is in READING, and not far. */
    boolean isUntold() {
        MpaFrameReader reading = reader;
        return listed && (reading == null || !reading.hasKey());
    }

    /**
     * It has sent too little to tell its protocol, for as long as the listener's user wants to wait. What has arrived
     * meanwhile is read first.
     */
    void tellBySilence() {
        onReadable();
        if (isUntold()) {
            becomePlain();
        }
    }

    /** It speaks another protocol: leaves the listener and its loop, with the socket open. */
    private void becomePlain() {
        SoftSocket now = socket;
        if (ended || now == null) {
            return;
        }
        decided.set(true);
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
                    Incidents.Kind.HANDSHAKE,
                    remoteAddress + " wants MPA markers, which are not supported; rejecting it");
            decided.set(true);
            reject0(new byte[0]);
            return;
        }
        long waitNanos = listener.context().guesses().waitNanos(remoteAddress.getAddress(), System.nanoTime());
        if (waitNanos == 0) {
            ask();
        } else if (waitNanos > 0) {
            timeout = listener.loop().schedule(this::ask, waitNanos, TimeUnit.NANOSECONDS);
        } else {
            report(
                    Incidents.Kind.HANDSHAKE,
                    "rejecting " + remoteAddress + ": its address has used many wrong keys (STags) recently");
            decided.set(true);
            reject0(new byte[0]);
        }
    }

    private void ask() {
        if (ended) {
            return;
        }
        timeout = listener.loop()
                .schedule(this::onUndecided, listener.softOptions().handshakeTimeoutMillis(), TimeUnit.MILLISECONDS);
        if (!listener.onRequest(this) && decided.compareAndSet(false, true)) {
            reject0(new byte[0]);
        }
    }

    private void drop(String why) {
        if (!ended) {
            report(
                    Incidents.Kind.HANDSHAKE,
                    "dropped a connection that was not established yet: " + remoteAddress + " " + why);
            close();
        }
    }

    private void close() {
        SoftSocket now = socket;
        end();
        if (now != null) {
            now.closeNow();
        }
    }

    private void end() {
        if (!ended) {
            ended = true;
            socket = null;
            ScheduledFuture<?> waiting = timeout;
            if (waiting != null) {
                timeout = null;
                waiting.cancel(false);
            }
            listener.handshakeEnded(this);
        }
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

    private void decide() {
        if (!decided.compareAndSet(false, true)) {
            throw new IllegalStateException("the connect request of " + remoteAddress
                    + " was already accepted or rejected, or has waited too long");
        }
    }

    @Override
    public boolean isPending() {
        return !ended && !decided.get();
    }

    @Override
    public Endpoint accept(IoEventLoop loop, EndpointOptions options, EndpointHandler handler) {
        SoftProvider.checkLoop(loop);
        MpaNegotiation.checkPrivateData(options, true);
        MpaNegotiation.checkTransport(options);
        decide();
        SoftEndpoint endpoint = new SoftEndpoint(loop, listener.context(), options, handler, remoteAddress, false);
        execute(
                () -> handOver(loop, endpoint),
                () -> loop.execute(() -> endpoint.accept(null, null, requireRequest())));
        return endpoint;
    }

    private void handOver(IoEventLoop loop, SoftEndpoint endpoint) {
        SoftSocket now = socket;
        end();
        if (now == null) {
            loop.execute(() -> endpoint.accept(null, null, requireRequest()));
        } else if (loop.inEventLoop()) {
            now.await(NioIoOps.NONE);
            endpoint.accept(now.channel(), now, requireRequest());
        } else {
            SocketChannel channel = now.channel();
            now.unregister();
            try {
                loop.execute(() -> endpoint.accept(channel, null, requireRequest()));
            } catch (RejectedExecutionException e) {
                // The program has ended the loop, and with it the channel that was to serve the peer.
                LOG.debug("the event loop that should serve {} has ended", remoteAddress, e);
                closeQuietly(channel);
            }
        }
    }

    private static void closeQuietly(SocketChannel channel) {
        try {
            channel.close();
        } catch (IOException e) {
            LOG.debug("closing {}", channel, e);
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
        SoftSocket now = socket;
        end();
        if (now == null) {
            return;
        }
        now.closeGracefully(
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
