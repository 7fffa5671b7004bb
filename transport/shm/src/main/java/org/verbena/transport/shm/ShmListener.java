package org.verbena.transport.shm;

import io.netty.channel.IoEvent;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;

/** Listens on a Unix socket and reads the requests of those that connect. One thread: the loop's. */
final class ShmListener implements Listener, ShmIoHandler.LoopMember {
    private static final Logger LOG = LoggerFactory.getLogger(ShmListener.class);

    /** Connections taken in one turn, before others have theirs. */
    private static final int ACCEPTS_PER_TURN = 64;

    /** How long to leave alone a system that has no descriptors left. */
    private static final int PAUSE_MILLIS = 500;

    private final IoEventLoop loop;
    private final ShmContext context;
    private final InetSocketAddress wanted;
    private final ListenOptions options;
    private final ListenerHandler handler;
    private final Set<PendingRequest> pending = new HashSet<>();
    private SocketDirectory.@Nullable Bound bound;
    private @Nullable IoRegistration registration;
    private @Nullable ShmIoHandler io;
    private @Nullable ScheduledFuture<?> pause;
    private boolean closed;

    /** Written by the loop once, read by any thread. */
    private volatile @Nullable InetSocketAddress localAddress;

    ShmListener(
            IoEventLoop loop,
            ShmContext context,
            InetSocketAddress wanted,
            ListenOptions options,
            ListenerHandler handler) {
        this.loop = loop;
        this.context = context;
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
            SocketDirectory.Bound made =
                    SocketDirectory.open(context.options().directory()).bind(wanted, options.backlog());
            bound = made;
            made.channel().configureBlocking(false);
            localAddress = made.address();
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

    private static String hint(Exception refused) {
        String text = String.valueOf(refused.getMessage());
        if (text.contains("already in use")) {
            return " (is another server of this user on that port?)";
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

    ShmContext context() {
        return context;
    }

    @Override
    public void handle(IoRegistration from, IoEvent event) {
        SocketDirectory.Bound from0 = bound;
        if (from0 == null || closed) {
            return;
        }
        try {
            for (int i = 0; i < ACCEPTS_PER_TURN && !closed; i++) {
                if (pending.size() >= context.options().maxHandshakes()) {
                    acceptMore(false);
                    return;
                }
                SocketChannel accepted = from0.channel().accept();
                if (accepted == null) {
                    return;
                }
                begin(accepted);
            }
        } catch (IOException e) {
            LOG.warn(
                    "accepting on {} fails, and pauses for {} ms: {} (does 'ulimit -n' allow enough descriptors?)",
                    localAddress,
                    PAUSE_MILLIS,
                    e.toString());
            acceptMore(false);
            pause = loop.schedule(() -> acceptMore(true), PAUSE_MILLIS, TimeUnit.MILLISECONDS);
        } catch (RuntimeException | Error e) {
            LOG.error("accepting on {}", localAddress, e);
        }
    }

    private void begin(SocketChannel accepted) throws IOException {
        try {
            accepted.configureBlocking(false);
            ShmSetup.checkUser(accepted);
        } catch (IOException | RuntimeException e) {
            LOG.warn("refused a connection to {}: {}", localAddress, e.toString());
            accepted.close();
            return;
        }
        PendingRequest request = new PendingRequest(this);
        pending.add(request);
        request.begin(accepted);
    }

    /** A request has been decided on, or dropped. */
    void ended(PendingRequest request) {
        if (pending.remove(request) && pending.size() == context.options().maxHandshakes() - 1) {
            acceptMore(true);
        }
    }

    /** Gives a complete request to the user; false if nobody listens any more. */
    boolean onRequest(PendingRequest request) {
        if (closed) {
            return false;
        }
        try {
            handler.onConnectRequest(this, request);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at a connect request", this, t);
            return false;
        }
        return true;
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
        try {
            handler.onClosed(this, cause);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at its end", this, t);
        }
    }

    @Override
    public SelectableChannel selectableChannel() {
        SocketDirectory.Bound now = bound;
        if (now == null) {
            throw new IllegalStateException("not open yet");
        }
        return now.channel();
    }

    @Override
    public IoEventLoop loop() {
        return loop;
    }

    @Override
    public void bind(ShmIoHandler to) {
        io = to;
    }

    @Override
    public void onTick() {}

    @Override
    public void onLoopEnding() {
        end(null);
        for (PendingRequest request : List.copyOf(pending)) {
            request.onLoopEnding();
        }
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
        if (io != null) {
            io.remove(this);
        }
        SocketDirectory.Bound now = bound;
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
        return "shm listener on " + (localAddress == null ? wanted : localAddress);
    }
}
