package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPromise;
import io.netty.channel.ConnectTimeoutException;
import io.netty.channel.EventLoop;
import io.netty.channel.FileRegion;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.ChannelInputShutdownReadComplete;
import io.netty.channel.socket.ChannelOutputShutdownException;
import io.netty.channel.socket.DuplexChannel;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.nio.channels.WritableByteChannel;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.MessageConnection;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.RdmaException;

/**
 * A Netty channel that is to handlers what a socket channel is, over an RDMA connection: bytes without boundaries, in order, with half close. It takes the
 * place of TCP under gRPC, HTTP and {@code SslHandler}; a program changes the channel class and the event loop group and nothing else.
 *
 * <p><b>Writing.</b> {@code ByteBuf} and {@link FileRegion}. The small writes of one flush share one frame; large ones fill frame after frame, or with
 * {@link RdmaChannelOption#RENDEZVOUS_THRESHOLD_BYTES} are read by the peer out of this side's memory. A write's promise is its send's completion, as for {@link RdmaChannel}. Reads bring what has come, in
 * buffers of registered memory.
 *
 * <p><b>Half close.</b> {@link #shutdownOutput()} sends what was flushed and tells the peer that nothing follows. A peer's end closes the channel, or with
 * {@code ALLOW_HALF_CLOSURE} fires {@link ChannelInputShutdownEvent} and leaves this side's half open. A peer that closes altogether ends both halves: the
 * channel closes then.
 *
 * <p><b>Failures</b> are those of sockets, with the RDMA failure as their cause: {@link ConnectException}, {@link ConnectTimeoutException} or
 * {@link SocketException}. Options that only TCP has ({@code TCP_NODELAY}, {@code SO_KEEPALIVE}, {@code SO_LINGER} ...) are accepted and do nothing.
 */
public final class RdmaStreamChannel extends AbstractRdmaChannel implements DuplexChannel {
    /** How much of a file is read at a time. */
    private static final int FILE_CHUNK_BYTES = 64 << 10;
    /** Chunks of a file under way at once: enough to keep the connection busy while the next is read. */
    private static final int MAX_FILE_CHUNKS = 8;

    private final OperationCallback onFileChunk = this::onFileChunk0;

    // Written by the loop, read by any thread.
    private volatile boolean inputShutdown;
    private volatile boolean outputShutdown;

    // The loop's.
    private boolean inputShutdownReadTold;
    private int fileChunksOut;
    private boolean fileFailed;
    private @Nullable Runnable afterFile;
    private @Nullable Throwable lastCause;
    private @Nullable Throwable lastTold;

    /** Makes one to connect with, for a bootstrap. */
    public RdmaStreamChannel() {
        super(null, null);
    }

    /** Makes one for a connection request. */
    RdmaStreamChannel(RdmaStreamServerChannel parent, IncomingConnection request) {
        super(parent, request);
    }

    @Override
    RdmaChannelConfig newConfig() {
        return new RdmaStreamChannelConfig(this);
    }

    private boolean isAllowHalfClosure() {
        return ((RdmaStreamChannelConfig) config()).isAllowHalfClosure();
    }

    // ---- half close
    // --------------------------------------------------------------------------------------------------------------------------

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
     * Reads nothing more: what still comes is thrown away, so that the peer is not held up by it.
     *
     * @param promise done at once
     * @return the promise
     */
    @Override
    public ChannelFuture shutdownInput(ChannelPromise promise) {
        onLoop(() -> shutdownInput0(promise));
        return promise;
    }

    @Override
    public ChannelFuture shutdownOutput() {
        return shutdownOutput(newPromise());
    }

    /**
     * Closes this side's half when what was flushed has been sent; what was written and not flushed fails.
     *
     * @param promise done when the peer will see the end
     * @return the promise
     */
    @Override
    public ChannelFuture shutdownOutput(ChannelPromise promise) {
        onLoop(() -> shutdownOutput0(promise));
        return promise;
    }

    @Override
    public ChannelFuture shutdown() {
        return shutdown(newPromise());
    }

    @Override
    public ChannelFuture shutdown(ChannelPromise promise) {
        shutdownOutput()
                .addListener(ended -> onLoop(() -> {
                    if (ended.isSuccess()) {
                        shutdownInput0(promise);
                    } else {
                        shutdownInput0(newPromise());
                        promise.tryFailure(ended.cause());
                    }
                }));
        return promise;
    }

    private void onLoop(Runnable task) {
        EventLoop loop = eventLoop();
        if (loop.inEventLoop()) {
            task.run();
        } else {
            loop.execute(task);
        }
    }

    private void shutdownInput0(ChannelPromise promise) {
        assert eventLoop().inEventLoop();
        MessageConnection open = connection0();
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
        MessageConnection open = connection0();
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
        outputShutdown = true; // from now on nothing is taken
        handOverFlushed0(outbound, open);
        endWhenSent0(promise);
    }

    /** A file may have to be sent first, which goes chunk by chunk. */
    private void endWhenSent0(ChannelPromise promise) {
        MessageConnection open = connection0();
        if (open == null) {
            promise.tryFailure(new ClosedChannelException());
            return;
        }
        if (fileChunksOut > 0) {
            afterFile = () -> endWhenSent0(promise);
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
        if (inputShutdown && !inputShutdownReadTold) {
            inputShutdownReadTold = true;
            eventLoop().execute(() -> {
                if (isOpen()) {
                    pipeline().fireUserEventTriggered(ChannelInputShutdownReadComplete.INSTANCE);
                }
            });
        }
    }

    @Override
    void onEnd0() {
        endReads0();
        if (inputShutdown) {
            return; // this side did not want to know
        }
        if (isAllowHalfClosure()) {
            tellInputShutdown0();
            if (isReadPending0() && isOpen()) {
                doBeginRead();
            }
        } else {
            unsafe().close(unsafe().voidPromise());
        }
    }

    @Override
    void onPeerClosed0() {
        if (isAllowHalfClosure() && !inputShutdown) {
            tellInputShutdown0();
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
    // -------------------------------------------------------------------------------------------------------------------------------

    @Override
    protected Object filterOutboundMessage(Object message) throws Exception {
        if (outputShutdown) {
            throw new ChannelOutputShutdownException("Channel output shutdown");
        }
        return message instanceof FileRegion ? message : super.filterOutboundMessage(message);
    }

    /** Sends a file's next chunks, as many as may be under way. */
    @Override
    boolean handOverOther0(Object message, MessageConnection open) {
        FileRegion file = (FileRegion) message;
        while (fileChunksOut < MAX_FILE_CHUNKS && !fileFailed) {
            long left = file.count() - file.transferred();
            int length = (int) Math.min(left, FILE_CHUNK_BYTES);
            ByteBuf chunk = alloc().directBuffer(Math.max(1, length));
            try {
                fill(chunk, file, length);
            } catch (IOException cause) {
                chunk.release();
                // Some of it may have been sent: what would follow is not what the peer expects.
                fileFailed = true;
                open.abort(cause);
                return false;
            }
            if (length == left) {
                handOverLast0(chunk, open);
                return true;
            }
            fileChunksOut++;
            open.send(chunk, onFileChunk, length);
        }
        return false;
    }

    private static void fill(ByteBuf chunk, FileRegion file, int lengthBytes) throws IOException {
        Sink sink = new Sink(chunk, lengthBytes);
        while (chunk.readableBytes() < lengthBytes) {
            if (file.transferTo(sink, file.transferred()) <= 0) {
                throw new IOException("a file ends at " + file.transferred() + " bytes of the region of " + file.count()
                        + " bytes that is to be sent: it must have become shorter");
            }
        }
    }

    private void onFileChunk0(@Nullable Object context, @Nullable Throwable cause) {
        fileChunksOut--;
        ChannelOutboundBuffer outbound = unsafe().outboundBuffer();
        if (cause == null && outbound != null && context instanceof Integer length) {
            outbound.progress(length);
        }
        if (cause != null) {
            fileFailed = true;
            MessageConnection open = connection0();
            if (open != null) {
                open.abort(cause); // half a file is no file
            }
        } else {
            resume0();
        }
        Runnable next = afterFile;
        if (next != null && fileChunksOut == 0) {
            afterFile = null;
            next.run();
        }
    }

    /** Takes so many bytes and no more. */
    private record Sink(ByteBuf chunk, int lengthBytes) implements WritableByteChannel {
        @Override
        public int write(ByteBuffer bytes) {
            int length = Math.min(bytes.remaining(), lengthBytes - chunk.readableBytes());
            ByteBuffer part = bytes.slice().limit(length);
            chunk.writeBytes(part);
            bytes.position(bytes.position() + length);
            return length;
        }

        @Override
        public boolean isOpen() {
            return true;
        }

        @Override
        public void close() {
            // Its memory is the caller's.
        }
    }

    // ---- failures
    // ----------------------------------------------------------------------------------------------------------------------------

    @Override
    Throwable forConnect0(Throwable cause) {
        if (!(cause instanceof RdmaException)) {
            return cause;
        }
        ConnectException told = cause instanceof ConnectionException.TimedOut
                ? new ConnectTimeoutException(cause.getMessage())
                : new ConnectException(cause.getMessage());
        told.initCause(cause);
        return told;
    }

    @Override
    Throwable forHandlers0(Throwable cause) {
        Throwable translated = translate0(cause);
        if (!(translated instanceof RdmaException)) {
            return translated;
        }
        Throwable told = lastTold;
        if (told == null || !translated.equals(lastCause)) {
            told = new SocketException(translated.getMessage(), translated);
            lastCause = translated;
            lastTold = told;
        }
        return told;
    }
}
