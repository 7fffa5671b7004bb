package org.verbena.transport.soft;

import io.netty.channel.IoEvent;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoEvent;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.soft.uring.RingLoop;
import org.verbena.transport.soft.uring.RingStream;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * A TCP connection on an event loop. Its owner is first the handshake, then the endpoint. At the end the owner calls
 * {@link #closeGracefully} and gets no more events, while the socket sends what is left, shuts down its output, and for
 * a short time discards what the peer still sends: closing a socket with unread input would reset the connection, and
 * the peer would take an orderly end for a failure. Not thread-safe; confined to the loop's thread.
 */
final class SoftSocket extends LoopSocket {
    private static final Logger LOG = LoggerFactory.getLogger(SoftSocket.class);

    /** Logs the connections that their loop's ring cannot take. */
    private static final RateLimitedLog STAYING = new RateLimitedLog(LOG);

    /** How long a closed connection may take to send its last bytes and to receive the peer's end of stream. */
    static final int LINGER_MILLIS = 2_000;

    private Owner owner;
    private @Nullable ScheduledFuture<?> limit;

    /** The socket's place on the loop's ring, once the connection is set up, if the loop has a ring. */
    private @Nullable RingStream ring;

    /**
     * Wraps a channel; {@link #register()} follows.
     *
     * @param loop its thread
     * @param channel non-blocking
     * @param owner notified of its events
     */
    SoftSocket(IoEventLoop loop, SocketChannel channel, Owner owner) {
        super(loop, channel);
        this.owner = owner;
    }

    /** The owner of a socket. An exception that it throws ends the connection through {@link #onFailure}. */
    interface Owner {
        /** Bytes, or the end, can be read. */
        void onReadable();

        /**
         * Bytes have come by the loop's ring.
         *
         * @param buffer with the bytes, big-endian; valid during the call, and so is what is in front of them
         * @param segment the same memory
         * @param from where they begin
         * @param bytes how many
         */
        default void onReceived(ByteBuffer buffer, MemorySegment segment, int from, int bytes) {}

        /**
         * Nothing more comes by the loop's ring.
         *
         * @param cause null if the peer has ended the stream
         */
        default void onEnded(@Nullable IOException cause) {}

        /** It can be written again, or is connected. */
        void onWritable();

        /** Time has passed: see {@link SoftwareIoHandler#tick()}. */
        void onTick();

        /**
         * Something was thrown.
         *
         * @param cause what
         */
        void onFailure(Throwable cause);

        /** The event loop ends: release the socket now. */
        void onLoopEnding();
    }

    @Override
    protected SoftIoHandler io() {
        return (SoftIoHandler) super.io();
    }

    /**
     * Hands the socket over within its loop.
     *
     * @param next notified of its events from now on
     */
    void setOwner(Owner next) {
        owner = next;
    }

    /**
     * The setup is over: from now on the loop's ring carries the stream, if it has one.
     *
     * @throws IOException it cannot, and nothing else may
     */
    void enterRing() throws IOException {
        RingLoop loopRing = io().ring();
        if (loopRing == null) {
            return;
        }
        try {
            RingStream made = loopRing.add(channel(), new RingEvents());
            ring = made; // which closes it, whatever follows
            super.await(NioIoOps.NONE);
            made.receive();
        } catch (IOException e) {
            if (io().options().io() == SoftOptions.Io.IO_URING) {
                throw e;
            }
            STAYING.warn(this + " stays with NIO: " + e);
        }
    }

    @Override
    public void await(NioIoOps ops) {
        RingStream now = ring;
        if (now == null) {
            super.await(ops);
        } else {
            now.awaitWritable(NioIoOps.WRITE.isIncludedIn(ops.value()));
        }
    }

    /** Whether the ring carries the stream. */
    boolean isOnRing() {
        return ring != null;
    }

    /** Has the owner read the channel, until it says otherwise: for long payload. */
    void readDirectly() {
        RingStream now = ring;
        if (now != null) {
            now.readDirectly();
        }
    }

    /** Whether the owner may read the channel now: what the ring has received comes before. */
    boolean mayRead() {
        RingStream now = ring;
        return now == null || now.mayRead();
    }

    /** The opposite of {@link #readDirectly()}. */
    void receiveByRing() {
        RingStream now = ring;
        if (now != null && now.isDirect()) {
            now.receive();
        }
    }

    /** Gives the kernel now what was written. */
    void push() {
        RingStream now = ring;
        if (now != null) {
            now.push();
        }
    }

    /** Whether bytes that were written are not with TCP yet. */
    boolean isSending() {
        RingStream now = ring;
        return now != null && now.isSending();
    }

    /** A number that changes with each of these times. */
    long sends() {
        RingStream now = ring;
        return now == null ? 0 : now.sends();
    }

    /**
     * Writes what there is room for.
     *
     * @param pieces what to write, in order
     * @param first of them
     * @param count of them
     * @return bytes taken; what the ring has taken is sent, or the connection ends
     * @throws IOException the connection is broken
     */
    long write(ByteBuffer[] pieces, int first, int count) throws IOException {
        RingStream now = ring;
        long taken = now == null ? -1 : now.write(pieces, first, count);
        if (taken >= 0) {
            return taken;
        }
        return count == 1 ? channel().write(pieces[first]) : channel().write(pieces, first, count);
    }

    /** Passes the ring's events to the owner that the socket has at that time. */
    private final class RingEvents implements RingStream.Owner {
        @Override
        public void onReceived(ByteBuffer buffer, MemorySegment segment, int from, int bytes) {
            owner.onReceived(buffer, segment, from, bytes);
        }

        @Override
        public void onEnded(@Nullable IOException cause) {
            owner.onEnded(cause);
        }

        @Override
        public void onReadable() {
            owner.onReadable();
        }

        @Override
        public void onWritable() {
            owner.onWritable();
        }

        @Override
        public void onFailure(Throwable cause) {
            owner.onFailure(cause);
        }
    }

    @Override
    public void handle(IoRegistration from, IoEvent event) {
        if (ring != null) {
            return; // found before the ring had it
        }
        int ready = ((NioIoEvent) event).ops().value();
        try {
            if ((ready & (NioIoOps.WRITE.value() | NioIoOps.CONNECT.value())) != 0) {
                owner.onWritable();
            }
            if (!isClosed() && (ready & NioIoOps.READ.value()) != 0) {
                owner.onReadable();
            }
        } catch (Throwable t) {
            owner.onFailure(t);
        }
    }

    @Override
    public void onTick() {
        owner.onTick();
    }

    @Override
    public void onLoopEnding() {
        owner.onLoopEnding();
    }

    @Override
    public void onFailure(Throwable cause) {
        owner.onFailure(cause);
    }

    @Override
    protected void onClosing() {
        RingStream now = ring;
        if (now != null) {
            now.close();
        }
        ScheduledFuture<?> waiting = limit;
        if (waiting != null) {
            waiting.cancel(false);
        }
    }

    /** Closes the channel so that the peer sees a reset. Idempotent. */
    void reset() {
        if (!isClosed()) {
            try {
                channel().setOption(StandardSocketOptions.SO_LINGER, 0);
            } catch (IOException | UnsupportedOperationException e) {
                LOG.debug("resetting {}", this, e);
            }
            closeNow();
        }
    }

    /**
     * Closes the channel after sending the last bytes and receiving the peer's end of stream, within {@link
     * #LINGER_MILLIS}.
     *
     * @param lastBytes what to send yet; null for nothing
     */
    void closeGracefully(@Nullable ByteBuffer lastBytes) {
        if (!isClosed()) {
            new Farewell(lastBytes).begin();
        }
    }

    /** The owner of a socket whose owner has left. */
    private final class Farewell implements Owner {
        private @Nullable ByteBuffer rest;

        Farewell(@Nullable ByteBuffer rest) {
            this.rest = rest;
        }

        void begin() {
            owner = this;
            if (loop().isShuttingDown() || !tryLimit()) {
                RingStream now = ring;
                if (now != null) {
                    now.settle();
                }
                send();
                closeNow();
                return;
            }
            send();
            if (!isClosed()) {
                onReadable();
            }
        }

        /** Without a limit its peer could keep the socket. */
        private boolean tryLimit() {
            try {
                limit = loop().schedule(SoftSocket.this::closeNow, LINGER_MILLIS, TimeUnit.MILLISECONDS);
                return true;
            } catch (Throwable refused) {
                LOG.debug("{} closes at once", SoftSocket.this, refused);
                return false;
            }
        }

        private void send() {
            try {
                ByteBuffer left = rest;
                if (left != null) {
                    write(new ByteBuffer[] {left}, 0, 1);
                    if (left.hasRemaining()) {
                        await(NioIoOps.READ_AND_WRITE);
                        return;
                    }
                    rest = null;
                }
                if (isSending()) {
                    await(NioIoOps.READ_AND_WRITE);
                    return;
                }
                await(NioIoOps.READ);
                channel().shutdownOutput();
            } catch (IOException e) {
                // The peer has left already: there is nothing to wait for.
                LOG.debug("closing {}", channel(), e);
                closeNow();
            }
        }

        @Override
        public void onReadable() {
            try {
                ByteBuffer sink = io().readBuffer().clear();
                if (channel().read(sink) < 0) {
                    closeNow();
                }
            } catch (IOException e) {
                LOG.debug("closing {}", channel(), e);
                closeNow();
            }
        }

        @Override
        public void onWritable() {
            send();
        }

        @Override
        public void onEnded(@Nullable IOException cause) {
            closeNow();
        }

        @Override
        public void onTick() {}

        @Override
        public void onFailure(Throwable cause) {
            LOG.debug("closing {}", channel(), cause);
            closeNow();
        }

        @Override
        public void onLoopEnding() {
            closeNow();
        }
    }
}
