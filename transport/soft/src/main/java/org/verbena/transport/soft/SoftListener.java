package org.verbena.transport.soft;

import io.netty.channel.IoEvent;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectableChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;

/**
 * Listens for TCP connections and reads their MPA requests. So many may be in handshake at a time; then it pauses, and
 * further ones wait in the backlog until one of them is through or out of time. One thread: the loop's.
 */
final class SoftListener implements Listener, SoftIoHandler.LoopMember {
    private static final Logger LOG = LoggerFactory.getLogger(SoftListener.class);

    /** Connections taken in one turn, before others have theirs. */
    private static final int ACCEPTS_PER_TURN = 64;

    /** How long to leave alone a system that has no descriptors left. */
    private static final int PAUSE_MILLIS = 500;

    private final IoEventLoop loop;
    private final SoftDomain domain;
    private final SoftOptions softOptions;
    private final InetSocketAddress wanted;
    private final ListenOptions options;
    private final ListenerHandler handler;
    private @Nullable ServerSocketChannel channel;
    private @Nullable IoRegistration registration;
    private @Nullable SoftIoHandler io;
    private @Nullable ScheduledFuture<?> pause;
    private int handshakes;
    private boolean closed;
    private @Nullable Throwable endCause;
    private boolean told;

    /** Written by the loop once, read by any thread. */
    private volatile @Nullable InetSocketAddress localAddress;

    /**
     * Made by the provider.
     *
     * @param loop its thread
     * @param domain of the provider
     * @param softOptions of the provider
     * @param wanted where to listen
     * @param options how
     * @param handler hears of it
     */
    SoftListener(
            IoEventLoop loop,
            SoftDomain domain,
            SoftOptions softOptions,
            InetSocketAddress wanted,
            ListenOptions options,
            ListenerHandler handler) {
        this.loop = loop;
        this.domain = domain;
        this.softOptions = softOptions;
        this.wanted = wanted;
        this.options = options;
        this.handler = handler;
    }

    /** Begins to listen; on the loop. */
    void open() {
        assert loop.inEventLoop();
        if (closed) {
            return;
        }
        try {
            ServerSocketChannel made = ServerSocketChannel.open();
            channel = made;
            made.configureBlocking(false);
            made.setOption(StandardSocketOptions.SO_REUSEADDR, options.reuseAddress());
            made.bind(wanted, options.backlog());
            localAddress = (InetSocketAddress) made.getLocalAddress();
            var future = loop.register(this);
            if (!future.isSuccess()) {
                throw new IOException("the event loop did not take the socket", future.cause());
            }
            registration = future.getNow();
        } catch (IOException | RuntimeException e) {
            end(new ConnectionException("listening on " + wanted + ": " + e.getMessage() + hint(e), e));
            return;
        }
        try {
            handler.onListening(this);
        } catch (Throwable t) {
            end(t);
            return;
        }
        acceptMore(true);
    }

    /** Java has one exception for several reasons; their texts are the operating system's. */
    private static String hint(Exception refused) {
        String text = String.valueOf(refused.getMessage());
        if (text.contains("already in use")) {
            return " (is another server on that port?)";
        }
        return text.contains("assign requested address") ? " (this host has no such address)" : "";
    }

    private void acceptMore(boolean more) {
        IoRegistration now = registration;
        if (now != null && now.isValid() && !closed) {
            now.submit(more ? NioIoOps.ACCEPT : NioIoOps.NONE);
        }
    }

    @Override
    public InetSocketAddress localAddress() {
        InetSocketAddress now = localAddress;
        if (now == null) {
            throw new IllegalStateException("the address is known from onListening on");
        }
        return now;
    }

    @Override
    public void handle(IoRegistration from, IoEvent event) {
        ServerSocketChannel from0 = channel;
        if (from0 == null || closed) {
            return;
        }
        try {
            for (int i = 0; i < ACCEPTS_PER_TURN && handshakes < softOptions.maxHandshakes() && !closed; i++) {
                SocketChannel accepted = from0.accept();
                if (accepted == null) {
                    return;
                }
                begin(accepted);
            }
            if (handshakes >= softOptions.maxHandshakes()) {
                acceptMore(false);
            }
        } catch (IOException e) {
            LOG.warn("accepting on {} pauses for {} ms: {}", localAddress, PAUSE_MILLIS, e.getMessage());
            acceptMore(false);
            pause = loop.schedule(() -> acceptMore(true), PAUSE_MILLIS, TimeUnit.MILLISECONDS);
        } catch (RuntimeException e) {
            LOG.error("accepting on {}", localAddress, e);
        }
    }

    private void begin(SocketChannel accepted) throws IOException {
        try {
            accepted.configureBlocking(false);
            accepted.setOption(StandardSocketOptions.TCP_NODELAY, true);
            InetSocketAddress local = (InetSocketAddress) accepted.getLocalAddress();
            InetSocketAddress remote = (InetSocketAddress) accepted.getRemoteAddress();
            PendingConnection pending = new PendingConnection(this, local, remote);
            handshakes++;
            pending.begin(accepted);
        } catch (IOException | RuntimeException e) {
            // The peer is gone before it was welcomed.
            LOG.debug("a connection to {} ended at once", localAddress, e);
            accepted.close();
        }
    }

    /** One connection is through the handshake, or dropped. */
    void handshakeEnded() {
        if (handshakes-- == softOptions.maxHandshakes()) {
            acceptMore(true);
        }
    }

    /**
     * A request is complete.
     *
     * @param connection who asks
     * @return false if nobody listens any more
     */
    boolean onRequest(PendingConnection connection) {
        if (closed) {
            return false;
        }
        try {
            handler.onConnectRequest(this, connection);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at a connect request", this, t);
            return false;
        }
        return true;
    }

    SoftOptions softOptions() {
        return softOptions;
    }

    SoftDomain domain() {
        return domain;
    }

    @Override
    public void close() {
        try {
            // A task on the loop's own thread too: the handler is not called from within a call of its user.
            loop.execute(() -> end(null));
        } catch (RejectedExecutionException e) {
            LOG.debug("closing {} after its loop ended", this, e);
        }
    }

    private void end(@Nullable Throwable cause) {
        if (closed) {
            return;
        }
        closeNow();
        endCause = cause;
        SoftIoHandler loopHandler = io;
        if (loopHandler == null) {
            tellClosed();
        } else {
            // The system accepts on the port until the selector has let go of the channel, which it does when it looks
            // at its sockets again.
            loopHandler.runAfterPoll(this::tellClosed);
        }
    }

    private void tellClosed() {
        if (told) {
            return;
        }
        told = true;
        if (io != null) {
            io.remove(this);
        }
        try {
            handler.onClosed(this, endCause);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at its end", this, t);
        }
    }

    @Override
    public SelectableChannel selectableChannel() {
        ServerSocketChannel now = channel;
        if (now == null) {
            throw new IllegalStateException("not open yet");
        }
        return now;
    }

    @Override
    public IoEventLoop loop() {
        return loop;
    }

    @Override
    public void bind(SoftIoHandler to) {
        io = to;
    }

    @Override
    public void onTick() {}

    @Override
    public void onLoopEnding() {
        end(null);
        tellClosed();
    }

    @Override
    public void closeNow() {
        closed = true;
        ScheduledFuture<?> pausing = pause;
        if (pausing != null) {
            pausing.cancel(false);
        }
        if (registration != null) {
            registration.cancel();
        }
        ServerSocketChannel now = channel;
        if (now != null) {
            try {
                now.close();
            } catch (IOException e) {
                LOG.debug("closing {}", this, e);
            }
        }
    }

    @Override
    public String toString() {
        return "soft listener on " + (localAddress == null ? wanted : localAddress);
    }
}
