package org.verbena.transport.software;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoOps;
import java.io.IOException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A connected socket on an event loop. Not thread-safe; confined to the loop's thread. */
public abstract class LoopSocket implements LoopMember {
    /**
     * A hint for failures whose usual reason is that the process has no descriptor left. Java has no exception for
     * that.
     */
    public static final String DESCRIPTORS_HINT = " (does 'ulimit -n' allow enough descriptors?)";

    private static final Logger LOG = LoggerFactory.getLogger(LoopSocket.class);

    private final IoEventLoop loop;
    private final SocketChannel channel;
    private @Nullable SoftwareIoHandler io;
    private @Nullable IoRegistration registration;
    private NioIoOps interest = NioIoOps.NONE;
    private boolean closed;
    private int place;

    /**
     * Wraps a channel; {@link #register()} follows.
     *
     * @param loop its thread
     * @param channel non-blocking
     */
    protected LoopSocket(IoEventLoop loop, SocketChannel channel) {
        this.loop = loop;
        this.channel = channel;
    }

    /**
     * Enters the loop.
     *
     * @throws IOException the loop cannot take it
     */
    public final void register() throws IOException {
        var future = loop.register(this);
        if (!future.isSuccess()) {
            throw new IOException("the event loop did not take the socket", future.cause());
        }
        registration = future.getNow();
    }

    /** Sets the operations to wait for. */
    public void await(NioIoOps ops) {
        IoRegistration now = registration;
        if (now != null && !interest.equals(ops) && now.isValid()) {
            interest = ops;
            now.submit(ops);
        }
    }

    @Override
    public final void bind(SoftwareIoHandler handler) {
        io = handler;
    }

    /** The loop's handler, once registered. */
    protected SoftwareIoHandler io() {
        SoftwareIoHandler handler = io;
        if (handler == null) {
            throw new IllegalStateException("the socket is not registered");
        }
        return handler;
    }

    /** As {@link #io}; null until it is registered. */
    public final @Nullable SoftwareIoHandler ioOrNull() {
        return io;
    }

    @Override
    public final IoEventLoop loop() {
        return loop;
    }

    public final SocketChannel channel() {
        return channel;
    }

    @Override
    public final SelectableChannel selectableChannel() {
        return channel;
    }

    @Override
    public final int place() {
        return place;
    }

    @Override
    public final void setPlace(int value) {
        place = value;
    }

    public final boolean isClosed() {
        return closed;
    }

    /** Called by Netty's NIO handler when the loop ends, or the channel was closed under it. */
    @Override
    public final void close() {
        if (!closed) {
            onLoopEnding();
        }
    }

    /** Leaves the loop with the channel open, for another loop to take. */
    public final void unregister() {
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
    public final void closeNow() {
        if (!closed) {
            unregister();
            onClosing();
            closeQuietly(channel);
        }
    }

    /** It is being closed. */
    protected void onClosing() {}

    /** Opens a channel, which takes a descriptor. */
    @FunctionalInterface
    public interface Opening<C> {
        C open() throws IOException;
    }

    /**
     * Opens a channel.
     *
     * @param opening of the JDK
     * @return what it gives
     * @throws IOException it refuses; the message says what to do
     */
    public static <C> C open(Opening<C> opening) throws IOException {
        try {
            return opening.open();
        } catch (IOException e) {
            throw new IOException("no socket can be opened: " + e.getMessage() + DESCRIPTORS_HINT, e);
        }
    }

    /** Closes a channel; a failure is only logged. */
    public static void closeQuietly(SocketChannel channel) {
        try {
            channel.close();
        } catch (IOException e) {
            LOG.debug("closing {}", channel, e);
        }
    }

    @Override
    public String toString() {
        return "socket " + channel;
    }
}
