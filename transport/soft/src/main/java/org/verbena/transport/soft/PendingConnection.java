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
 * A TCP connection that somebody opened to us, until it is accepted, rejected or dropped.
 *
 * <pre>{@code
 * READING --request complete--> ASKED --accept, reject, or out of time--> ENDED
 *    |  out of time, malformed, closed by the peer                          ^
 *    +----------------------------------------------------------------------+
 * }</pre>
 */
final class PendingConnection implements IncomingConnection, SoftSocket.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(PendingConnection.class);

    private final SoftListener listener;
    private final InetSocketAddress localAddress;
    private final InetSocketAddress remoteAddress;
    private final MpaFrameReader reader = new MpaFrameReader(false);
    private final AtomicBoolean decided = new AtomicBoolean();
    private @Nullable SoftSocket socket;
    private @Nullable ScheduledFuture<?> timeout;

    /** Written by the loop before the user hears of this, never again. */
    private @Nullable MpaFrame request;

    /** Written by the loop, read by any thread. */
    private volatile boolean ended;

    /**
     * Made by the listener.
     *
     * @param listener counts it until it has ended
     * @param localAddress ours
     * @param remoteAddress the peer's
     */
    PendingConnection(SoftListener listener, InetSocketAddress localAddress, InetSocketAddress remoteAddress) {
        this.listener = listener;
        this.localAddress = localAddress;
        this.remoteAddress = remoteAddress;
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
            made.register();
            socket = made;
            timeout = schedule();
            made.await(NioIoOps.READ);
            // Who connects sends its request at once: it is often there already.
            onReadable();
        } catch (IOException | RuntimeException e) {
            drop("cannot be read: " + e.getMessage());
        }
    }

    private ScheduledFuture<?> schedule() {
        return listener.loop()
                .schedule(this::onTimeout, listener.softOptions().handshakeTimeoutMillis(), TimeUnit.MILLISECONDS);
    }

    private void onTimeout() {
        if (ended) {
            return;
        }
        if (request == null) {
            drop("sent no complete MPA request within " + listener.softOptions().handshakeTimeoutMillis() + " ms");
        } else if (decided.compareAndSet(false, true)) {
            LOG.warn(
                    "the connect request of {} was neither accepted nor rejected within {} ms; rejecting it",
                    remoteAddress,
                    listener.softOptions().handshakeTimeoutMillis());
            reject0(new byte[0]);
        }
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
                boolean left = now.channel().read(ByteBuffer.allocate(1)) < 0;
                drop(left ? "left before it was accepted" : "sent more than its MPA request before it was answered");
                return;
            }
            MpaFrame frame = reader.read(now.channel());
            if (frame != null) {
                onRequest(frame);
            } else if (reader.isEnded()) {
                drop(reader.hasBytes() ? "left within its MPA request" : "left without a word");
            }
        } catch (MpaException e) {
            drop("sent a frame that " + e.getMessage());
        } catch (IOException e) {
            drop("is gone: " + e.getMessage());
        }
    }

    private void onRequest(MpaFrame frame) {
        request = frame;
        ScheduledFuture<?> waiting = timeout;
        if (waiting != null) {
            waiting.cancel(false);
        }
        if (frame.markers()) {
            LOG.info("{} wants MPA markers, which are not supported; rejecting it", remoteAddress);
            decided.set(true);
            reject0(new byte[0]);
            return;
        }
        timeout = schedule();
        if (!listener.onRequest(this) && decided.compareAndSet(false, true)) {
            reject0(new byte[0]);
        }
    }

    private void drop(String why) {
        if (ended) {
            return;
        }
        // Probes that connect and leave are everyday life; strangers that talk are worth a line.
        if (reader.hasBytes()) {
            LOG.info("dropping a connection: {} {}", remoteAddress, why);
        } else {
            LOG.debug("dropping a connection: {} {}", remoteAddress, why);
        }
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
            listener.handshakeEnded();
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
                    + " was accepted or rejected before, or waited too long for it");
        }
    }

    @Override
    public boolean isPending() {
        return !ended && !decided.get();
    }

    @Override
    public Endpoint accept(IoEventLoop loop, EndpointOptions options, EndpointHandler handler) {
        SoftProvider.checkLoop(loop);
        decide();
        SoftEndpoint endpoint = new SoftEndpoint(
                loop, listener.domain(), listener.softOptions(), options, handler, remoteAddress, false);
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
                LOG.warn("the event loop that was to serve {} has ended", remoteAddress, e);
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
        MpaFrame from = requireRequest();
        EnhancedSetup asked = from.setup();
        EnhancedSetup answer = asked == null ? null : new EnhancedSetup(0, 0, false, false, false, false);
        MpaFrame frame = new MpaFrame(true, false, from.crc(), true, from.revision(), answer, reason);
        now.closeGracefully(ByteBuffer.wrap(frame.encode()));
    }

    @Override
    public void onWritable() {}

    @Override
    public void onTick() {}

    @Override
    public void onFailure(Throwable cause) {
        drop("ran into an error of the provider: " + cause);
    }

    @Override
    public void onLoopEnding() {
        drop("lost its event loop");
    }
}
