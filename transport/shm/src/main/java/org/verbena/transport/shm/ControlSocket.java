package org.verbena.transport.shm;

import io.netty.channel.IoEvent;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoEvent;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.software.SoftwareIoHandler;

/**
 * The Unix socket of a connection on an event loop: it carries the handshake and wakes a peer that sleeps, and its end
 * shows the end of the peer. Not thread-safe; confined to the loop's thread.
 */
final class ControlSocket extends LoopSocket {
    private static final Logger LOG = LoggerFactory.getLogger(ControlSocket.class);

    /** More than a connection has files and doorbells to say: a peer that leaves so much unread reads nothing. */
    private static final int MAX_UNSENT = 16_384;

    private Owner owner;

    /** How long a peer that does not read may keep a socket open that this side is done with. */
    private static final int LAST_WORDS_MILLIS = 5_000;

    /** Null while there is nothing. */
    private @Nullable ArrayDeque<ByteBuffer> unsent;

    /** This side is done with the socket, which closes when all is sent, or at this task. */
    private @Nullable ScheduledFuture<?> lastMoment;

    /** The owner of a socket. An exception that it throws ends the connection through {@link #onFailure}. */
    interface Owner {
        /** Bytes, or the end, can be read. */
        void onReadable() throws IOException;

        /** Bytes have come after this side was done with the socket, or may go unread with it: it closes then. */
        default void onLateBytes() {}

        /** The peer does not read this socket. */
        default void onUnread() {}

        /** Something was thrown. */
        void onFailure(Throwable cause);

        /** The event loop ends: release the socket now. */
        void onLoopEnding();

        /** Time has passed: see {@link SoftwareIoHandler#tick()}. */
        default void onTick() {}
    }

    ControlSocket(IoEventLoop loop, SocketChannel channel, Owner owner) {
        super(loop, channel);
        this.owner = owner;
    }

    /** Connected, and on the loop: waits for what the peer sends. */
    void begin() {
        await(NioIoOps.READ);
    }

    void setOwner(Owner next) {
        owner = next;
    }

    @Override
    protected ShmIoHandler io() {
        return (ShmIoHandler) super.io();
    }

    /** Whether something waits for the peer to read; a peer in that state is awake, or will wake. */
    boolean hasUnsent() {
        return unsent != null;
    }

    /**
     * Sends bytes, or keeps them until they can be sent. Only reading shows that the peer is gone: what it sent before
     * counts.
     *
     * @param bytes this socket's from now on
     */
    void send(ByteBuffer bytes) {
        ArrayDeque<ByteBuffer> waiting = unsent;
        if (waiting != null) {
            if (waiting.size() < MAX_UNSENT) {
                waiting.add(bytes);
            } else {
                owner.onUnread();
            }
        } else if (!write(bytes)) {
            waiting = new ArrayDeque<>();
            waiting.add(bytes);
            unsent = waiting;
            await(NioIoOps.READ_AND_WRITE);
        }
    }

    /** Writes as much as possible; returns whether nothing is left. */
    private boolean write(ByteBuffer bytes) {
        try {
            channel().write(bytes);
            return !bytes.hasRemaining();
        } catch (IOException e) {
            LOG.debug("nothing more goes to {}: {}", this, e.toString());
            return true;
        }
    }

    private void sendMore() {
        ArrayDeque<ByteBuffer> waiting = unsent;
        while (waiting != null && !waiting.isEmpty()) {
            if (!write(waiting.getFirst())) {
                return;
            }
            waiting.remove();
        }
        unsent = null;
        if (lastMoment == null) {
            await(NioIoOps.READ);
        } else {
            closeNow();
        }
    }

    /**
     * Closes the socket when all is sent, or the peer does not read it in time. The owner is not called again.
     */
    void closeWhenSent() {
        if (unsent == null || loop().isShuttingDown()) {
            closeNow();
        } else if (lastMoment == null) {
            try {
                lastMoment = loop().schedule(this::closeNow, LAST_WORDS_MILLIS, TimeUnit.MILLISECONDS);
            } catch (Throwable refused) { // without a limit its peer could keep it
                LOG.debug("{} closes at once", this, refused);
                closeNow();
                return;
            }
            // It is read as well: the peer may take the loop for woken by what it has written here.
            await(NioIoOps.READ_AND_WRITE);
        }
    }

    private void discard() {
        try {
            if (channel().read(io().controlBuffer()) < 0) {
                closeNow();
            } else {
                owner.onLateBytes();
            }
        } catch (IOException e) {
            LOG.debug("{} ends: {}", this, e.toString());
            closeNow();
        }
    }

    @Override
    protected void onClosing() {
        ScheduledFuture<?> pending = lastMoment;
        if (pending != null) {
            pending.cancel(false);
        }
        owner.onLateBytes();
    }

    @Override
    public void handle(IoRegistration from, IoEvent event) {
        int ready = ((NioIoEvent) event).ops().value();
        try {
            if ((ready & NioIoOps.WRITE.value()) != 0) {
                sendMore();
            }
            if (!isClosed() && (ready & NioIoOps.READ.value()) != 0) {
                if (lastMoment == null) {
                    owner.onReadable();
                } else {
                    discard();
                }
            }
        } catch (Throwable t) {
            owner.onFailure(t);
        }
    }

    @Override
    public void onTick() {
        if (lastMoment == null) {
            owner.onTick();
        }
    }

    @Override
    public void onFailure(Throwable cause) {
        owner.onFailure(cause);
    }

    @Override
    public void onLoopEnding() {
        if (lastMoment == null) {
            owner.onLoopEnding();
        } else {
            closeNow();
        }
    }
}
