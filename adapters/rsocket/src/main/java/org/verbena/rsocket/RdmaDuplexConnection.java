package org.verbena.rsocket;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.rsocket.DuplexConnection;
import io.rsocket.RSocketErrorException;
import io.rsocket.frame.ErrorFrameCodec;
import java.net.SocketAddress;
import java.nio.channels.ClosedChannelException;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * RSocket's connection on a channel: a frame is a message. Any thread queues frames, and the event loop writes as many
 * as the channel takes with one flush. RSocket sends only what its peer has requested, so the queue has no limit of its
 * own, as in all of its transports.
 */
final class RdmaDuplexConnection extends ChannelInboundHandlerAdapter implements DuplexConnection {
    private static final Logger LOG = LoggerFactory.getLogger(RdmaDuplexConnection.class);

    private final Consumer<RdmaDuplexConnection> onConnected;
    private final Sinks.Empty<Void> closed = Sinks.empty();
    private final ChannelFutureListener onWritten = this::onWritten0;
    private final Runnable write = this::write0;

    /** Frames of the connection itself, such as its keepalive, are sent first. */
    private final Queue<ByteBuf> urgent = new ConcurrentLinkedQueue<>();

    private final Queue<ByteBuf> frames = new ConcurrentLinkedQueue<>();

    /** A write is about to happen on the event loop. */
    private final AtomicBoolean writing = new AtomicBoolean();

    /** Set by the event loop before RSocket sees the connection. */
    @SuppressWarnings("NullAway.Init")
    private volatile Channel channel;

    @SuppressWarnings("NullAway.Init")
    private volatile Inbound inbound;

    /** Sent when all other frames are; then the connection closes. */
    private final AtomicReference<@Nullable ByteBuf> last = new AtomicReference<>();

    private volatile boolean disposed;
    private volatile boolean gone;

    /** Confined to the event loop. */
    private @Nullable Throwable failure;

    RdmaDuplexConnection(Consumer<RdmaDuplexConnection> onConnected) {
        this.onConnected = onConnected;
    }

    // ---- RSocket's, on any thread
    // ----------------------------------------------------------------------------------------------------------------

    @Override
    public void sendFrame(int streamId, ByteBuf frame) {
        if (disposed) {
            frame.release();
            return;
        }
        (streamId == 0 ? urgent : frames).add(frame);
        writeSoon();
    }

    @Override
    public void sendErrorAndClose(RSocketErrorException error) {
        if (!disposed) {
            last.set(ErrorFrameCodec.encode(alloc(), 0, error));
            disposed = true;
            writeSoon();
        }
    }

    private void writeSoon() {
        if (gone) {
            discard();
        } else if (writing.compareAndSet(false, true)) {
            try {
                channel.eventLoop().execute(write);
            } catch (RejectedExecutionException ended) {
                discard(); // the loop has closed the channel
            } catch (Throwable failure) {
                writing.set(false); // the next frame tries again
                throw failure;
            }
        }
    }

    @Override
    public Flux<ByteBuf> receive() {
        return inbound;
    }

    @Override
    public ByteBufAllocator alloc() {
        return channel.alloc();
    }

    @Override
    public SocketAddress remoteAddress() {
        return channel.remoteAddress();
    }

    @Override
    public Mono<Void> onClose() {
        return closed.asMono();
    }

    /** Closes the connection, after the frames that the channel has taken. */
    @Override
    public void dispose() {
        disposed = true;
        channel.close();
    }

    @Override
    public boolean isDisposed() {
        return disposed || gone;
    }

    @Override
    public String toString() {
        return "RdmaDuplexConnection[" + channel + "]";
    }

    // ---- the event loop's
    // -----------------------------------------------------------------------------------------------------------------

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        channel = context.channel();
        inbound = new Inbound(channel);
        channel.config().setAutoRead(false); // until RSocket requests frames
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        onConnected.accept(this);
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        inbound.onFrame0((ByteBuf) message);
    }

    private void write0() {
        writing.set(false);
        boolean written = false;
        while (channel.isWritable()) {
            ByteBuf frame = urgent.poll();
            if (frame == null) {
                frame = frames.poll();
            }
            if (frame == null) {
                break;
            }
            channel.write(frame).addListener(onWritten);
            written = true;
        }
        ByteBuf error = urgent.isEmpty() && frames.isEmpty() ? last.getAndSet(null) : null;
        if (error != null) {
            channel.writeAndFlush(error);
            channel.close();
        } else if (written) {
            channel.flush();
        }
        if (gone) {
            discard();
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        if (channel.isWritable()) {
            write0();
        }
    }

    /**
     * If a frame was not sent, because it is longer than the peer accepts for example, closes the connection: the other
     * frames mean nothing without it.
     */
    private void onWritten0(ChannelFuture written) {
        Throwable cause = written.cause();
        if (cause != null && !(cause instanceof ClosedChannelException)) {
            fail0(cause);
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        fail0(cause);
    }

    private void fail0(Throwable cause) {
        if (failure == null) {
            failure = cause;
            if (cause instanceof ConnectionException) {
                LOG.debug("{}: the connection has ended", channel, cause);
            } else {
                LOG.warn("{}: closing the connection", channel, cause);
            }
        }
        channel.close();
    }

    /** Also when the channel never became active. */
    @Override
    public void channelUnregistered(ChannelHandlerContext context) {
        gone = true;
        disposed = true;
        discard();
        inbound.discard0();
        ClosedChannelException end = new ClosedChannelException();
        if (failure != null) {
            end.initCause(failure);
        }
        inbound.onEnd0(end);
        closed.tryEmitEmpty(); // never an error: RSocket's own subscribers do not expect one
    }

    /** Releases what will not be sent. Any thread, and several at once. */
    private void discard() {
        discard(urgent);
        discard(frames);
        ByteBuf error = last.getAndSet(null);
        if (error != null) {
            error.release();
        }
    }

    private static void discard(Queue<ByteBuf> queue) {
        for (ByteBuf frame = queue.poll(); frame != null; frame = queue.poll()) {
            frame.release();
        }
    }
}
