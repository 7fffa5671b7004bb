package org.verbena.transport.shm;

import io.netty.channel.IoEvent;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoEvent;
import io.netty.channel.nio.NioIoOps;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.software.SoftwareIoHandler;

/**
 * The Unix socket of a connection on an event loop: it carries the handshake and wakes a peer that sleeps, and its
 * end is the peer's. One thread: the loop's.
 */
final class ControlSocket extends LoopSocket {
    private Owner owner;

    /** Null while there is nothing. */
    private @Nullable ArrayDeque<ByteBuffer> unsent;

    /** The owner of a socket. An exception that it throws ends the connection through {@link #onFailure}. */
    interface Owner {
        /** Bytes, or the end, can be read. */
        void onReadable() throws IOException;

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

    /** Enters the loop, and waits for what the peer says. */
    void begin() throws IOException {
        register();
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
     * Sends bytes, or keeps them until they can be sent.
     *
     * @param bytes this socket's from now on
     * @throws IOException the peer is gone
     */
    void send(ByteBuffer bytes) throws IOException {
        ArrayDeque<ByteBuffer> waiting = unsent;
        if (waiting == null) {
            channel().write(bytes);
        }
        if (bytes.hasRemaining()) {
            if (waiting == null) {
                waiting = new ArrayDeque<>();
                unsent = waiting;
            }
            waiting.add(bytes);
            await(NioIoOps.READ_AND_WRITE);
        }
    }

    private void sendMore() throws IOException {
        ArrayDeque<ByteBuffer> waiting = unsent;
        while (waiting != null && !waiting.isEmpty()) {
            ByteBuffer next = waiting.getFirst();
            channel().write(next);
            if (next.hasRemaining()) {
                return;
            }
            waiting.remove();
        }
        unsent = null;
        await(NioIoOps.READ);
    }

    @Override
    public void handle(IoRegistration from, IoEvent event) {
        int ready = ((NioIoEvent) event).ops().value();
        try {
            if ((ready & NioIoOps.WRITE.value()) != 0) {
                sendMore();
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
}
