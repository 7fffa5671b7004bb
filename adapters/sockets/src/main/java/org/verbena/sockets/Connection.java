package org.verbena.sockets;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.ConnectTimeoutException;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.SocketChannel;
import java.io.IOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayDeque;
import java.util.Objects;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;

/**
 * A channel on which threads read and write, and wait. The channel's event loop queues inbound data in the registered
 * buffers that they arrived in, and a reader copies them once, into its array. A writer copies its array into
 * registered buffers, from which the device sends.
 *
 * <p>Neither queue grows without limit: at {@value #MAX_QUEUED_BYTES} bytes the channel stops reading, so that the peer
 * runs out of credits, and a writer waits while as many bytes are not sent yet.
 */
final class Connection extends ChannelInboundHandlerAdapter {

    /** Notified of a connection that a peer has requested. */
    interface Acceptor {
        /** Both ends have agreed on it. Event loop. */
        void onEstablished(Connection connection);
    }

    /** Enough to keep a device busy until a thread has woken up: 20 us at 100 Gbit/s. */
    static final int MAX_QUEUED_BYTES = 256 << 10;

    /** Half, so that neither reader nor writer changes the state of the channel for each of its frames. */
    private static final int RESUME_BYTES = MAX_QUEUED_BYTES / 2;

    /** Less than a frame of a stream carries by default, so that a frame carries one whole part of a long write. */
    private static final int PIECE_BYTES = 60 << 10;

    private final SocketChannel channel;
    private final @Nullable Acceptor acceptor;
    private final ChannelFutureListener onWritten = this::onWritten;
    private final Runnable resumeReading = this::resumeReading0;
    private final BooleanSupplier mayRead = this::mayRead;
    private final BooleanSupplier mayWrite = this::mayWrite;

    /** One reader and one writer at a time, as on a socket. */
    private final ReentrantLock reading = new ReentrantLock();

    private final ReentrantLock writing = new ReentrantLock();

    /** Guards the fields that follow. Held for a few instructions, never while a thread copies. */
    private final ReentrantLock state = new ReentrantLock();

    private final Condition readable = state.newCondition();
    private final Condition writable = state.newCondition();
    private final ArrayDeque<ByteBuf> inbound = new ArrayDeque<>();
    private int inboundBytes;
    private boolean readingPaused;
    private boolean inputShutdown;
    private boolean outputShutdown;

    /** The peer sends no more. */
    private boolean ended;

    /** The channel is closed, by whichever end. */
    private boolean gone;

    private boolean closed;
    private @Nullable Throwable failure;

    /**
     * A reader has got the end of the stream: every later read gets it too, even after close(). Guarded by {@link
     * #reading}.
     */
    private boolean endRead;

    /**
     * Creates the threads' side of a channel.
     *
     * @param channel not registered yet
     * @param acceptor of a channel that a peer has requested, else null
     */
    Connection(SocketChannel channel, @Nullable Acceptor acceptor) {
        this.channel = channel;
        this.acceptor = acceptor;
        ChannelConfig config = channel.config();
        config.setOption(ChannelOption.ALLOW_HALF_CLOSURE, true);
        config.setOption(ChannelOption.TCP_NODELAY, false); // a socket's default
        config.setWriteBufferWaterMark(new WriteBufferWaterMark(RESUME_BYTES, MAX_QUEUED_BYTES));
        channel.pipeline().addLast(this);
    }

    /** Registers the channel with one of a group's loops. */
    void register(RdmaEventLoopGroup group) throws IOException {
        ChannelFuture registered = group.register(channel);
        Blocking.untilDone(registered);
        if (!registered.isSuccess()) {
            throw new SocketException("the event loops take no more channels", registered.cause());
        }
    }

    SocketChannel channel() {
        return channel;
    }

    // ---- before it is connected
    // -------------------------------------------------------------------------------------------------------------

    void bind(InetSocketAddress address) throws IOException {
        ChannelFuture bound = channel.bind(address);
        Blocking.untilDone(bound);
        Throwable cause = bound.cause();
        if (cause instanceof BindException) {
            throw (IOException) new BindException(cause.getMessage()).initCause(cause);
        }
        if (cause != null) {
            throw new SocketException("bind to " + address + ": " + cause.getMessage(), cause);
        }
    }

    /** Connects within the given time; 0 for the provider's own limit. */
    void connect(InetSocketAddress address, int timeoutMillis) throws IOException {
        channel.config().setConnectTimeoutMillis(timeoutMillis);
        ChannelFuture connected = channel.connect(address);
        Blocking.untilDone(connected);
        Throwable cause = connected.cause();
        if (cause instanceof ConnectTimeoutException) {
            throw (IOException) new SocketTimeoutException("Connect timed out").initCause(cause);
        }
        if (cause instanceof ConnectException) {
            throw (IOException) new ConnectException(cause.getMessage()).initCause(cause);
        }
        if (cause instanceof ClosedChannelException) {
            throw socketClosed();
        }
        if (cause != null) {
            throw new SocketException("connect to " + address + ": " + cause.getMessage(), cause);
        }
    }

    // ---- reading
    // -----------------------------------------------------------------------------------------------------------------

    /**
     * Reads bytes that have arrived, or waits for some.
     *
     * @param timeoutMillis for how long; 0 for no limit
     * @return how many bytes, or -1 at the end
     */
    int read(byte[] into, int offset, int length, int timeoutMillis) throws IOException {
        Objects.checkFromIndexSize(offset, length, into.length);
        if (length == 0) {
            return 0;
        }
        long limitNanos = TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
        long startNanos = System.nanoTime();
        if (!Blocking.lock(reading, limitNanos)) {
            throw readTimedOut();
        }
        try {
            if (endRead) {
                return -1;
            }
            ByteBuf first = first(limitNanos == 0 ? 0 : Math.max(1, limitNanos - (System.nanoTime() - startNanos)));
            if (first == null) {
                endRead = true;
                return -1;
            }
            try {
                int count = Math.min(length, first.readableBytes());
                first.readBytes(into, offset, count);
                consumed(first, count);
                return count;
            } finally {
                first.release();
            }
        } finally {
            reading.unlock();
        }
    }

    /** Waits for inbound bytes. Returns a reference to the first of them for the caller, or null at the end. */
    private @Nullable ByteBuf first(long limitNanos) throws IOException {
        state.lock();
        try {
            if (!mayRead()) {
                refuseToBlockTheLoop();
                if (!Blocking.until(readable, mayRead, limitNanos)) {
                    throw readTimedOut();
                }
            }
            if (closed) {
                throw socketClosed();
            }
            ByteBuf first = inbound.peek();
            if (first != null) {
                return first.retain();
            }
            if (failure != null && !inputShutdown) {
                throw new SocketException(failure.getMessage(), failure);
            }
            return null;
        } finally {
            state.unlock();
        }
    }

    private boolean mayRead() {
        return !inbound.isEmpty() || ended || inputShutdown || gone || closed;
    }

    private void consumed(ByteBuf first, int count) {
        boolean resume = false;
        state.lock();
        try {
            if (closed || inputShutdown) {
                return; // the channel has closed: nothing is queued any more
            }
            inboundBytes -= count;
            if (!first.isReadable()) {
                inbound.remove().release();
            }
            resume = readingPaused && inboundBytes <= RESUME_BYTES;
            if (resume) {
                readingPaused = false;
            }
        } finally {
            state.unlock();
        }
        if (resume) {
            try {
                channel.eventLoop().execute(resumeReading);
            } catch (RejectedExecutionException ended) {
                // Nothing more arrives. What has arrived can still be read.
            } catch (Throwable failure) {
                pauseAgain();
                throw failure;
            }
        }
    }

    /** The loop could not be asked to resume: the next read asks again. */
    private void pauseAgain() {
        state.lock();
        try {
            readingPaused = true;
        } finally {
            state.unlock();
        }
    }

    /** How many bytes a read takes without waiting. */
    int available() throws SocketException {
        state.lock();
        try {
            if (closed) {
                throw socketClosed();
            }
            return inboundBytes;
        } finally {
            state.unlock();
        }
    }

    // ---- writing
    // -----------------------------------------------------------------------------------------------------------------

    /** Writes all bytes, and waits while too many are not sent yet. */
    void write(byte[] from, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, from.length);
        if (length == 0) {
            return;
        }
        writing.lock();
        try {
            int end = offset + length;
            for (int at = offset; at < end; at += PIECE_BYTES) {
                int count = Math.min(PIECE_BYTES, end - at);
                awaitWritable();
                ByteBuf piece = channel.alloc().directBuffer(count).writeBytes(from, at, count);
                channel.writeAndFlush(piece).addListener(onWritten);
            }
        } finally {
            writing.unlock();
        }
    }

    private void awaitWritable() throws IOException {
        state.lock();
        try {
            if (!mayWrite()) {
                refuseToBlockTheLoop();
                Blocking.until(writable, mayWrite, 0);
            }
            if (closed) {
                throw socketClosed();
            }
            if (failure != null) {
                throw new SocketException(failure.getMessage(), failure);
            }
            if (gone || outputShutdown) {
                throw new SocketException("Broken pipe");
            }
        } finally {
            state.unlock();
        }
    }

    private boolean mayWrite() {
        return channel.isWritable() || gone || outputShutdown || closed;
    }

    private void onWritten(ChannelFuture written) {
        Throwable cause = written.cause();
        if (cause != null && !(cause instanceof ClosedChannelException)) {
            fail(cause); // a stream cannot continue without some of its bytes
        }
    }

    // ---- the end
    // -----------------------------------------------------------------------------------------------------------------

    void shutdownInput() throws SocketException {
        state.lock();
        try {
            if (closed) {
                throw socketClosed();
            }
            inputShutdown = true;
            discardInbound();
            readable.signalAll();
        } finally {
            state.unlock();
        }
        channel.shutdownInput();
    }

    void shutdownOutput() throws SocketException {
        state.lock();
        try {
            if (closed) {
                throw socketClosed();
            }
            outputShutdown = true;
            writable.signalAll();
        } finally {
            state.unlock();
        }
        channel.shutdownOutput();
    }

    /** Wakes all waiting threads. What was written is still sent; with {@code SO_LINGER} the caller waits for that. */
    void close() {
        state.lock();
        try {
            if (closed) {
                return;
            }
            closed = true;
            discardInbound();
            readable.signalAll();
            writable.signalAll();
        } finally {
            state.unlock();
        }
        Closing.close(channel);
        int lingerSeconds = channel.config().getSoLinger();
        if (lingerSeconds > 0 && !channel.eventLoop().inEventLoop()) {
            channel.closeFuture().awaitUninterruptibly(lingerSeconds, TimeUnit.SECONDS);
        }
    }

    boolean isClosed() {
        state.lock();
        try {
            return closed;
        } finally {
            state.unlock();
        }
    }

    private void discardInbound() {
        for (ByteBuf bytes : inbound) {
            bytes.release();
        }
        inbound.clear();
        inboundBytes = 0;
    }

    private void refuseToBlockTheLoop() {
        if (channel.eventLoop().inEventLoop()) {
            throw new IllegalStateException("a blocking socket is used on the event loop of its own connection, which"
                    + " would wait for itself: use a thread, or a channel's handler");
        }
    }

    static SocketException socketClosed() {
        return new SocketException("Socket closed");
    }

    private static SocketTimeoutException readTimedOut() {
        return new SocketTimeoutException("Read timed out");
    }

    // ---- the event loop's
    // -----------------------------------------------------------------------------------------------------------------

    @Override
    public void channelActive(ChannelHandlerContext context) {
        if (acceptor != null) {
            acceptor.onEstablished(this);
        }
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf bytes = (ByteBuf) message;
        boolean pause;
        state.lock();
        try {
            if (closed || inputShutdown || !bytes.isReadable()) {
                bytes.release();
                return;
            }
            inbound.add(bytes);
            inboundBytes += bytes.readableBytes();
            pause = inboundBytes >= MAX_QUEUED_BYTES;
            readingPaused |= pause;
            readable.signal();
        } finally {
            state.unlock();
        }
        if (pause) {
            channel.config().setAutoRead(false);
        }
    }

    private void resumeReading0() {
        state.lock();
        try {
            if (readingPaused) {
                return; // again
            }
        } finally {
            state.unlock();
        }
        channel.config().setAutoRead(true);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        if (channel.isWritable()) {
            state.lock();
            try {
                writable.signal();
            } finally {
                state.unlock();
            }
        }
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event instanceof ChannelInputShutdownEvent) {
            state.lock();
            try {
                ended = true;
                readable.signalAll();
            } finally {
                state.unlock();
            }
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        fail(cause);
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        state.lock();
        try {
            gone = true;
            readable.signalAll();
            writable.signalAll();
        } finally {
            state.unlock();
        }
    }

    private void fail(Throwable cause) {
        state.lock();
        try {
            if (failure == null) {
                failure = cause;
            }
            gone = true;
            readable.signalAll();
            writable.signalAll();
        } finally {
            state.unlock();
        }
        channel.close();
    }
}
