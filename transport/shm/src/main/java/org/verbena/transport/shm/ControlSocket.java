package org.verbena.transport.shm;

import io.netty.channel.IoEvent;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoEvent;
import io.netty.channel.nio.NioIoOps;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The Unix socket of a connection on an event loop: it carries the handshake and wakes a peer that sleeps, and its
 * end is the peer's. One thread: the loop's.
 */
final class ControlSocket implements ShmIoHandler.LoopMember {
    private static final Logger LOG = LoggerFactory.getLogger(ControlSocket.class);

    private final IoEventLoop loop;
    private final SocketChannel channel;
    private Owner owner;
    private @Nullable ShmIoHandler io;
    private @Nullable IoRegistration registration;
    private NioIoOps interest = NioIoOps.NONE;
    /** Null while there is nothing. */
    private @Nullable ArrayDeque<ByteBuffer> unsent;

    private boolean closed;

    /** The owner of a socket. An exception that it throws ends the connection through {@link #onFailure}. */
    interface Owner {
        /** Bytes, or the end, can be read. */
        void onReadable() throws IOException;

        /** Something was thrown. */
        void onFailure(Throwable cause);

        /** The event loop ends: release the socket now. */
        void onLoopEnding();

        /** About a second has passed. */
        default void onTick() {}
    }

    ControlSocket(IoEventLoop loop, SocketChannel channel, Owner owner) {
        this.loop = loop;
        this.channel = channel;
        this.owner = owner;
    }

    /**
     * Enters the loop.
     *
     * @throws IOException the loop cannot take it
     */
    void register() throws IOException {
        var future = loop.register(this);
        if (!future.isSuccess()) {
            throw new IOException("the event loop did not take the socket", future.cause());
        }
        registration = future.getNow();
        await(NioIoOps.READ);
    }

    private void await(NioIoOps ops) {
        IoRegistration now = registration;
        if (now != null && now.isValid() && !interest.equals(ops)) {
            interest = ops;
            now.submit(ops);
        }
    }

    void setOwner(Owner next) {
        owner = next;
    }

    SocketChannel channel() {
        return channel;
    }

    ShmIoHandler io() {
        ShmIoHandler now = io;
        if (now == null) {
            throw new IllegalStateException("not registered");
        }
        return now;
    }

    boolean isClosed() {
        return closed;
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
            channel.write(bytes);
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
            channel.write(next);
            if (next.hasRemaining()) {
                return;
            }
            waiting.remove();
        }
        unsent = null;
        await(NioIoOps.READ);
    }

    @Override
    public SelectableChannel selectableChannel() {
        return channel;
    }

    @Override
    public void handle(IoRegistration from, IoEvent event) {
        int ready = ((NioIoEvent) event).ops().value();
        try {
            if ((ready & NioIoOps.WRITE.value()) != 0) {
                sendMore();
            }
            if (!closed && (ready & NioIoOps.READ.value()) != 0) {
                owner.onReadable();
            }
        } catch (Throwable t) {
            owner.onFailure(t);
        }
    }

    @Override
    public void bind(ShmIoHandler handler) {
        io = handler;
    }

    @Override
    public IoEventLoop loop() {
        return loop;
    }

    @Override
    public void onTick() {
        owner.onTick();
    }

    @Override
    public void onLoopEnding() {
        owner.onLoopEnding();
    }

    /** Called by Netty's NIO handler when the loop ends. */
    @Override
    public void close() {
        if (!closed) {
            owner.onLoopEnding();
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
            closeQuietly(channel);
        }
    }

    static void closeQuietly(SocketChannel channel) {
        try {
            channel.close();
        } catch (IOException e) {
            LOG.debug("closing {}", channel, e);
        }
    }
}
