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
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.software.SoftwareIoHandler;

/**
 * A TCP connection on an event loop. Its owner is first the handshake, then the endpoint. At the end the owner calls
 * {@link #closeGracefully} and gets no more events, while the socket sends what is left, shuts down its output, and for
 * a short time discards what the peer still sends: closing a socket with unread input would reset the connection, and
 * the peer would take an orderly end for a failure. Not thread-safe; confined to the loop's thread.
 */
final class SoftSocket extends LoopSocket {
    private static final Logger LOG = LoggerFactory.getLogger(SoftSocket.class);

    /** How long a closed connection may take to send its last bytes and to receive the peer's end of stream. */
    static final int LINGER_MILLIS = 2_000;

    private Owner owner;
    private @Nullable ScheduledFuture<?> limit;

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

    @Override
    public void handle(IoRegistration from, IoEvent event) {
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
            if (loop().isShuttingDown()) {
                send();
                closeNow();
                return;
            }
            limit = loop().schedule(SoftSocket.this::closeNow, LINGER_MILLIS, TimeUnit.MILLISECONDS);
            send();
            if (!isClosed()) {
                onReadable();
            }
        }

        private void send() {
            try {
                ByteBuffer left = rest;
                if (left != null) {
                    channel().write(left);
                    if (left.hasRemaining()) {
                        await(NioIoOps.READ_AND_WRITE);
                        return;
                    }
                    rest = null;
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
