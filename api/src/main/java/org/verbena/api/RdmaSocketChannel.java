package org.verbena.api;

import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPromise;
import io.netty.channel.ConnectTimeoutException;
import io.netty.channel.EventLoop;
import io.netty.channel.FileRegion;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.ChannelInputShutdownReadComplete;
import io.netty.channel.socket.ChannelOutputShutdownException;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.SocketChannelConfig;
import java.net.ConnectException;
import java.net.SocketException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.channel.CauseMemo;
import org.verbena.api.internal.channel.HalfClose;
import org.verbena.api.internal.channel.SocketExceptions;
import org.verbena.api.internal.server.Arrival;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RdmaException;
import org.verbena.transport.protocol.connection.MessageConnection;

/**
 * A Netty {@link SocketChannel} over an RDMA connection: a stream of bytes, in order, with half close. It replaces TCP
 * under gRPC, HTTP and {@code SslHandler}; a program changes only the channel class and the event loop group.
 *
 * <p><b>Writing.</b> {@code ByteBuf} and {@link FileRegion}. The small writes of one flush share a frame; large ones
 * fill frame after frame, or, with {@link RdmaChannelOption#RENDEZVOUS_THRESHOLD_BYTES}, the peer reads them from this
 * end's memory. A write's promise completes with its send, as for {@link RdmaChannel}. Inbound buffers hold what has
 * arrived, in registered memory.
 *
 * <p><b>Half close.</b> {@link #shutdownOutput()} sends what was flushed and then ends the stream. When the peer shuts
 * down its output, the channel closes, or, with {@code ALLOW_HALF_CLOSURE}, fires {@link ChannelInputShutdownEvent} and
 * stays open for output. When the peer closes both halves, the channel closes.
 *
 * <p><b>Closing</b> first sends what was flushed, and so waits for a peer that does not read. It gives up when the peer
 * has accepted nothing for {@link RdmaChannelOption#CLOSE_TIMEOUT_MILLIS}, 10 s by default, or after {@code SO_LINGER}
 * seconds in all if that is set. With {@code SO_LINGER} 0, {@code close()} drops unsent data and resets the connection.
 *
 * <p><b>Failures</b> are those of sockets, with the RDMA failure as their cause: {@link java.net.BindException}, {@link
 * ConnectException}, {@link ConnectTimeoutException} or {@link SocketException}. Options that only TCP has ({@code
 * TCP_NODELAY}, {@code SO_KEEPALIVE}, {@code SO_RCVBUF} ...) are kept, and have no effect.
 */
public final class RdmaSocketChannel extends AbstractRdmaChannel implements SocketChannel {
    // Written by the loop, read by any thread.
    private volatile boolean inputShutdown;
    private volatile boolean outputShutdown;

    // Confined to the event loop.
    private boolean inputShutdownReadFired;
    private final CauseMemo translations = new CauseMemo(RdmaSocketChannel::asSocketsSay);

    /** Creates a channel to connect with, for a bootstrap. */
    public RdmaSocketChannel() {
        super(null, null);
    }

    /** Creates a channel for a connection request. */
    RdmaSocketChannel(RdmaServerSocketChannel parent, Arrival.Rdma arrival) {
        super(parent, arrival);
    }

    @Override
    RdmaChannelConfig<?> newConfig() {
        return new RdmaSocketChannelConfig(this);
    }

    @Override
    public SocketChannelConfig config() {
        return (SocketChannelConfig) super.config();
    }

    @Override
    public @Nullable RdmaServerSocketChannel parent() {
        return (RdmaServerSocketChannel) super.parent();
    }

    // ---- half close

    @Override
    public boolean isInputShutdown() {
        return inputShutdown || !isActive();
    }

    @Override
    public boolean isOutputShutdown() {
        return outputShutdown || !isActive();
    }

    @Override
    public boolean isShutdown() {
        return isInputShutdown() && isOutputShutdown();
    }

    @Override
    public ChannelFuture shutdownInput() {
        return shutdownInput(newPromise());
    }

    /**
     * Stops reading: data that still arrive are discarded, so that the peer is not blocked.
     *
     * @param promise completes at once
     * @return the promise
     */
    @Override
    public ChannelFuture shutdownInput(ChannelPromise promise) {
        onLoop(promise, () -> shutdownInput0(promise));
        return promise;
    }

    @Override
    public ChannelFuture shutdownOutput() {
        return shutdownOutput(newPromise());
    }

    /**
     * Closes the output once everything flushed has been sent. Writes that were not flushed fail.
     *
     * @param promise completes when the end of the stream has been sent
     * @return the promise
     */
    @Override
    public ChannelFuture shutdownOutput(ChannelPromise promise) {
        onLoop(promise, () -> shutdownOutput0(promise));
        return promise;
    }

    @Override
    public ChannelFuture shutdown() {
        return shutdown(newPromise());
    }

    @Override
    public ChannelFuture shutdown(ChannelPromise promise) {
        return HalfClose.shutdown(this, promise);
    }

    private void onLoop(ChannelPromise promise, Runnable task) {
        EventLoop loop = eventLoop();
        if (loop.inEventLoop()) {
            task.run();
            return;
        }
        try {
            loop.execute(task);
        } catch (RejectedExecutionException ended) {
            promise.tryFailure(closedBy(ended));
        }
    }

    private void shutdownInput0(ChannelPromise promise) {
        assert eventLoop().inEventLoop();
        MessageConnection open = connection().open0();
        if (!isActive() || open == null) {
            promise.tryFailure(isOpen() ? new NotYetConnectedException() : new ClosedChannelException());
            return;
        }
        inputShutdown = true;
        try {
            doBeginRead();
        } finally {
            promise.trySuccess();
        }
    }

    private void shutdownOutput0(ChannelPromise promise) {
        assert eventLoop().inEventLoop();
        MessageConnection open = connection().open0();
        ChannelOutboundBuffer outbound = unsafe().outboundBuffer();
        if (!isActive() || open == null || outbound == null) {
            promise.tryFailure(
                    isOpen() && !outputShutdown ? new NotYetConnectedException() : new ClosedChannelException());
            return;
        }
        if (outputShutdown) {
            promise.trySuccess();
            return;
        }
        outputShutdown = true; // from now on no write is accepted
        outboundBridge0().end(open, () -> endOutput0(promise));
        open.flush();
    }

    private void endOutput0(ChannelPromise promise) {
        MessageConnection open = connection().open0();
        if (open == null) {
            promise.tryFailure(new ClosedChannelException());
            return;
        }
        open.shutdownOutput(
                (context, cause) -> {
                    if (cause != null) {
                        promise.tryFailure(forHandlers0(cause));
                    } else if (unsafe() instanceof AbstractUnsafe netty) {
                        netty.shutdownOutput(
                                promise); // fails what was not flushed, and fires ChannelOutputShutdownEvent
                    }
                },
                null);
    }

    @Override
    protected void doShutdownOutput() {
        outputShutdown = true;
    }

    @Override
    protected void doBeginRead() {
        super.doBeginRead();
        if (inputShutdown && !inputShutdownReadFired) {
            inputShutdownReadFired = true;
            eventLoop().execute(() -> {
                if (isOpen()) {
                    pipeline().fireUserEventTriggered(ChannelInputShutdownReadComplete.INSTANCE);
                }
            });
        }
    }

    @Override
    void onEnd0() {
        inboundBridge0().endBatch();
        if (inputShutdown) {
            return; // this end has closed its input
        }
        if (config().isAllowHalfClosure()) {
            tellInputShutdown0();
            if (inboundBridge0().isReadPending() && isOpen()) {
                doBeginRead();
            }
        } else {
            unsafe().close(unsafe().voidPromise());
        }
    }

    @Override
    void onPeerClosed0() {
        if (config().isAllowHalfClosure()) {
            if (!inputShutdown) {
                tellInputShutdown0();
            }
            if (!inputShutdownReadFired) { // what a socket's next read would report, before this channel closes
                inputShutdownReadFired = true;
                pipeline().fireUserEventTriggered(ChannelInputShutdownReadComplete.INSTANCE);
            }
        }
    }

    private void tellInputShutdown0() {
        inputShutdown = true;
        pipeline().fireUserEventTriggered(ChannelInputShutdownEvent.INSTANCE);
    }

    @Override
    boolean discardsInbound0() {
        return inputShutdown;
    }

    // ---- files

    @Override
    protected Object filterOutboundMessage(Object message) throws Exception {
        if (outputShutdown) {
            throw new ChannelOutputShutdownException("Channel output shutdown");
        }
        return message instanceof FileRegion ? message : super.filterOutboundMessage(message);
    }

    /** As sockets do: a handler may wait for the answer to what it has flushed. */
    @Override
    boolean flushesAtOnce0() {
        return true;
    }

    // ---- failures

    @Override
    Exception forBind0(RdmaException cause) {
        return SocketExceptions.bind(cause);
    }

    @Override
    Throwable forConnect0(Throwable cause) {
        if (!(cause instanceof RdmaException)) {
            return cause;
        }
        ConnectException translated = cause instanceof ConnectionException.TimedOut
                ? new ConnectTimeoutException(cause.getMessage())
                : new ConnectException(cause.getMessage());
        translated.initCause(cause);
        return translated;
    }

    @Override
    Throwable forHandlers0(Throwable cause) {
        return translations.of(translate0(cause));
    }

    /** A connection that ended without CLOSE counts as reset; programs look for that word in the message. */
    private static Throwable asSocketsSay(Throwable translated) {
        if (!(translated instanceof RdmaException)) {
            return translated;
        }
        String reset = translated instanceof ConnectionException.Lost ? "Connection reset: " : "";
        return new SocketException(reset + translated.getMessage(), translated);
    }
}
