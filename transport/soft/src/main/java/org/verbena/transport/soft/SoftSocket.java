package org.verbena.transport.soft;

import io.netty.channel.IoEvent;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoEvent;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A TCP connection on an event loop. Its owner is first the handshake, then the endpoint. At the end the owner calls
 * {@link #closeGracefully} and gets no more events, while the socket sends what is left, shuts down its output, and for
 * a short time discards what the peer still sends: closing a socket with unread input would reset the connection, and
 * the peer would take an orderly end for a failure. One thread: the loop's.
 */
final class SoftSocket implements SoftIoHandler.LoopMember {
    private static final Logger LOG = LoggerFactory.getLogger(SoftSocket.class);

    /** How long a closed connection may take to send its last bytes and to receive the peer's end of stream. */
    static final int LINGER_MILLIS = 2_000;

    private final IoEventLoop loop;
    private final SocketChannel channel;
    private Owner owner;
    private @Nullable SoftIoHandler io;
    private @Nullable IoRegistration registration;
    private NioIoOps interest = NioIoOps.NONE;
    private @Nullable ScheduledFuture<?> limit;
    private boolean closed;
    private int place;

    /**
     * Wraps a channel; {@link #register()} follows.
     *
     * @param loop its thread
     * @param channel non-blocking
     * @param owner notified of its events
     */
    SoftSocket(IoEventLoop loop, SocketChannel channel, Owner owner) {
        this.loop = loop;
        this.channel = channel;
        this.owner = owner;
    }

    /** The owner of a socket. An exception that it throws ends the connection through {@link #onFailure}. */
    interface Owner {
        /** Bytes, or the end, can be read. */
        void onReadable();

        /** It can be written again, or is connected. */
        void onWritable();

        /** Time has passed: see {@link SoftIoHandler#tick()}. */
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

    /**
     * Enters the loop.
     *
     * @throws IOException the loop cannot take it
     */
    void register() throws IOException {
        var future = loop.register(this);
        if (future.isSuccess()) {
            registration = future.getNow();
        } else {
            throw new IOException("the event loop did not take the socket", future.cause());
        }
    }

    @Override
    public void bind(SoftIoHandler handler) {
        io = handler;
    }

    @Override
    public IoEventLoop loop() {
        return loop;
    }

    @Override
    public int place() {
        return place;
    }

    @Override
    public void setPlace(int value) {
        place = value;
    }

    SocketChannel channel() {
        return channel;
    }

    /** The endpoint has reported a completion: the loop counts them. */
    void completed() {
        SoftIoHandler handler = io;
        if (handler != null) {
            handler.completed();
        }
    }

    /** The loop's handler, once registered. */
    SoftIoHandler io() {
        SoftIoHandler handler = io;
        if (handler == null) {
            throw new IllegalStateException("the socket is not registered");
        }
        return handler;
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
     * Sets the operations to wait for.
     *
     * @param ops what
     */
    void await(NioIoOps ops) {
        IoRegistration now = registration;
        if (now != null && !interest.equals(ops) && now.isValid()) {
            interest = ops;
            now.submit(ops);
        }
    }

    @Override
    public SelectableChannel selectableChannel() {
        return channel;
    }

    @Override
    public void handle(IoRegistration from, IoEvent event) {
        int ready = ((NioIoEvent) event).ops().value();
        try {
            if ((ready & (NioIoOps.WRITE.value() | NioIoOps.CONNECT.value())) != 0) {
                owner.onWritable();
            }
            if (!closed && (ready & NioIoOps.READ.value()) != 0) {
                owner.onReadable();
            }
        } catch (Throwable t) {
            owner.onFailure(t);
        }
    }

    @Override
    public void onTick() {
        try {
            owner.onTick();
        } catch (Throwable t) {
            owner.onFailure(t);
        }
    }

    @Override
    public void onLoopEnding() {
        try {
            owner.onLoopEnding();
        } catch (Throwable t) {
            owner.onFailure(t);
        }
    }

    /** Called by Netty's NIO handler when the loop ends, or the channel was closed under it. */
    @Override
    public void close() {
        if (!closed) {
            onLoopEnding();
        }
    }

    /** Leaves the loop with the channel open, for another loop to take. */
    void unregister() {
        closed = true;
        if (registration != null) {
            registration.cancel();
        }
        if (io != null) {
            io.remove(this);
        }
    }

    /** Idempotent. */
    @Override
    public void closeNow() {
        if (!closed) {
            unregister();
            ScheduledFuture<?> waiting = limit;
            if (waiting != null) {
                waiting.cancel(false);
            }
            try {
                channel.close();
            } catch (IOException e) {
                LOG.debug("closing {}", this, e);
            }
        }
    }

    /** Closes the channel so that the peer sees a reset. Idempotent. */
    void reset() {
        if (!closed) {
            try {
                channel.setOption(StandardSocketOptions.SO_LINGER, 0);
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
        if (!closed) {
            new Farewell(lastBytes).begin();
        }
    }

    @Override
    public String toString() {
        return "socket " + channel;
    }

    /** The owner of a socket whose owner has left. */
    private final class Farewell implements Owner {
        private @Nullable ByteBuffer rest;

        Farewell(@Nullable ByteBuffer rest) {
            this.rest = rest;
        }

        void begin() {
            owner = this;
            if (loop.isShuttingDown()) {
                send();
                closeNow();
                return;
            }
            limit = loop.schedule(SoftSocket.this::closeNow, LINGER_MILLIS, TimeUnit.MILLISECONDS);
            send();
            if (!closed) {
                onReadable();
            }
        }

        private void send() {
            try {
                ByteBuffer left = rest;
                if (left != null) {
                    channel.write(left);
                    if (left.hasRemaining()) {
                        await(NioIoOps.READ_AND_WRITE);
                        return;
                    }
                    rest = null;
                }
                await(NioIoOps.READ);
                channel.shutdownOutput();
            } catch (IOException e) {
                // The peer has left already: there is nothing to wait for.
                LOG.debug("closing {}", channel, e);
                closeNow();
            }
        }

        @Override
        public void onReadable() {
            try {
                ByteBuffer sink = io().readBuffer().clear();
                if (channel.read(sink) < 0) {
                    closeNow();
                }
            } catch (IOException e) {
                LOG.debug("closing {}", channel, e);
                closeNow();
            }
        }

        @Override
        public void onWritable() {
            send();
        }

        @Override
        public void onTick() {}

        @Override
        public void onFailure(Throwable cause) {
            LOG.debug("closing {}", channel, cause);
            closeNow();
        }

        @Override
        public void onLoopEnding() {
            closeNow();
        }
    }
}
