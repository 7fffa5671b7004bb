package org.verbena.transport.soft;

import io.netty.channel.IoEvent;
import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.channel.nio.NioIoOps;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
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
 * Listens for TCP connections and reads their MPA requests. It keeps accepting, whatever strangers do: when it has its
 * maximum of unfinished handshakes, the oldest without a complete request is dropped for the next one; an address with
 * more than its share loses its own oldest. It pauses only while its user has to decide on all of them. Connections of
 * other protocols are dropped, or leave with their first bytes for the user ({@link ListenOptions#plainTcp()}): nothing
 * is decided before a byte differs from an MPA request's, and no connection waits for another. One thread: the loop's.
 */
final class SoftListener implements Listener, SoftIoHandler.LoopMember {
    private static final Logger LOG = LoggerFactory.getLogger(SoftListener.class);

    /** Connections taken in one turn, before others have theirs. */
    private static final int ACCEPTS_PER_TURN = 64;

    /** How long to leave alone a system that has no descriptors left. */
    private static final int PAUSE_MILLIS = 500;

    private final IoEventLoop loop;
    private final SoftContext context;
    private final SoftOptions softOptions;
    private final long handshakeNanos;

    /** When a connection that has not told its protocol counts as plain TCP; {@link Long#MAX_VALUE} for never. */
    private final long plainNanos;

    private final Handshakes unfinished = new Handshakes();
    private final InetSocketAddress wanted;
    private final ListenOptions options;
    private final ListenerHandler handler;
    private @Nullable ServerSocketChannel channel;
    private @Nullable IoRegistration registration;
    private @Nullable SoftIoHandler io;
    private @Nullable ScheduledFuture<?> pause;
    private @Nullable ScheduledFuture<?> expiry;
    private @Nullable ScheduledFuture<?> silence;

    /** Unfinished ones, and those that the user has not decided on. */
    private int handshakes;

    private boolean closed;
    private int place;
    private @Nullable Throwable endCause;
    private boolean told;

    /** Written by the loop once, read by any thread. */
    private volatile @Nullable InetSocketAddress localAddress;

    /**
     * Made by the provider.
     *
     * @param loop its thread
     * @param context of the provider
     * @param wanted where to listen
     * @param options how
     * @param handler called with its events
     */
    SoftListener(
            IoEventLoop loop,
            SoftContext context,
            InetSocketAddress wanted,
            ListenOptions options,
            ListenerHandler handler) {
        this.loop = loop;
        this.context = context;
        softOptions = context.options();
        handshakeNanos = TimeUnit.MILLISECONDS.toNanos(softOptions.handshakeTimeoutMillis());
        plainNanos = options.plainTcp() && options.plainTcpAfterMillis() > 0
                ? TimeUnit.MILLISECONDS.toNanos(options.plainTcpAfterMillis())
                : Long.MAX_VALUE;
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
            for (int i = 0; i < ACCEPTS_PER_TURN && !closed; i++) {
                if (isFull()) {
                    // Waits for the local user's decision.
                    acceptMore(false);
                    return;
                }
                SocketChannel accepted = from0.accept();
                if (accepted == null) {
                    return;
                }
                begin(accepted);
            }
        } catch (IOException e) {
            onAcceptFailed(e);
        } catch (RuntimeException | Error e) {
            // Also what cannot be loaded while the process has no descriptors left.
            LOG.error("accepting on {}", localAddress, e);
        }
    }

    /**
     * Whether none can be dropped for another one. There may be one more than the maximum: it was accepted, and the
     * requests of those that should have made room turned out to be complete.
     */
    private boolean isFull() {
        int most = softOptions.maxHandshakes();
        return handshakes > most || (handshakes == most && unfinished.size() == 0);
    }

    /** Mostly the process has no descriptors left: those of unfinished handshakes are the first to spare. */
    private void onAcceptFailed(IOException e) {
        PendingConnection spare = unfinished.oldest();
        context.incidents()
                .report(
                        Incidents.Kind.LOCAL,
                        "accepting on " + localAddress + " fails, and "
                                + (spare == null
                                        ? "pauses for " + PAUSE_MILLIS + " ms"
                                        : "dropping an unfinished handshake")
                                + ": " + e.getMessage() + " (does 'ulimit -n' allow enough descriptors?)");
        if (spare != null) {
            spare.evict();
            return;
        }
        acceptMore(false);
        pause = loop.schedule(() -> acceptMore(true), PAUSE_MILLIS, TimeUnit.MILLISECONDS);
    }

    private void begin(SocketChannel accepted) throws IOException {
        try {
            accepted.configureBlocking(false);
            accepted.setOption(StandardSocketOptions.TCP_NODELAY, true);
            InetSocketAddress local = (InetSocketAddress) accepted.getLocalAddress();
            InetSocketAddress remote = (InetSocketAddress) accepted.getRemoteAddress();
            PendingConnection pending = new PendingConnection(this, local, remote, System.nanoTime());
            makeRoom(pending.network);
            handshakes++;
            unfinished.add(pending);
            pending.begin(accepted);
            watch();
            watchSilent();
        } catch (IOException | RuntimeException e) {
            // The peer has left before it was accepted.
            LOG.debug("a connection to {} ended immediately", localAddress, e);
            accepted.close();
        }
    }

    private void makeRoom(long network) {
        while (handshakes >= softOptions.maxHandshakes()) {
            PendingConnection victim = unfinished.victimFor(network, softOptions.maxHandshakesPerAddress());
            if (victim == null) {
                return;
            }
            // Its request may have come, and the loop has not looked yet.
            victim.onReadable();
            if (victim.listed) {
                victim.evict();
            }
        }
    }

    /** One timer, for the oldest: all have the same time. */
    private void watch() {
        PendingConnection first = unfinished.oldest();
        if (expiry == null && first != null && !loop.isShuttingDown()) {
            expiry = schedule(this::expire, first.beganNanos + handshakeNanos);
        }
    }

    private void expire() {
        expiry = null;
        long now = System.nanoTime();
        PendingConnection first = unfinished.oldest();
        while (first != null && now - first.beganNanos >= handshakeNanos) {
            first.expire();
            first = unfinished.oldest();
        }
        watch();
    }

    /** A timer of its own: one whose protocol is known may be the oldest. */
    private void watchSilent() {
        if (silence == null && plainNanos < handshakeNanos && !loop.isShuttingDown()) {
            PendingConnection first = oldestUntold();
            if (first != null) {
                silence = schedule(this::endSilence, first.beganNanos + plainNanos);
            }
        }
    }

    private void endSilence() {
        silence = null;
        long now = System.nanoTime();
        PendingConnection first = oldestUntold();
        while (first != null && now - first.beganNanos >= plainNanos) {
            first.tellBySilence();
            first = oldestUntold();
        }
        watchSilent();
    }

    /** The oldest that may still be plain TCP. */
    private @Nullable PendingConnection oldestUntold() {
        PendingConnection found = unfinished.oldest();
        while (found != null && !found.isUntold()) {
            found = found.newer;
        }
        return found;
    }

    private ScheduledFuture<?> schedule(Runnable task, long atNanos) {
        return loop.schedule(task, Math.max(0, atNanos - System.nanoTime()), TimeUnit.NANOSECONDS);
    }

    /**
     * The request of a connection is complete: it is the user's turn.
     *
     * @param connection unfinished until now
     */
    void handshakeComplete(PendingConnection connection) {
        unfinished.remove(connection);
    }

    /**
     * A connection has completed its handshake, or was dropped.
     *
     * @param connection begun here
     */
    void handshakeEnded(PendingConnection connection) {
        unfinished.remove(connection);
        if (handshakes-- >= softOptions.maxHandshakes()) {
            acceptMore(true);
        }
    }

    /**
     * A request is complete.
     *
     * @param connection the request
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

    /** Whether connections of other protocols go to the user. */
    boolean takesPlainTcp() {
        return options.plainTcp();
    }

    /**
     * A connection of another protocol has left.
     *
     * @param from open, in no loop
     * @param firstBytes what was read of it
     */
    void onPlain(SocketChannel from, ByteBuffer firstBytes) {
        if (closed) {
            TcpChannels.closeQuietly(from);
            return;
        }
        try {
            handler.onPlainConnection(this, from, firstBytes);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at a plain connection", this, t);
            TcpChannels.closeQuietly(from);
        }
    }

    SoftOptions softOptions() {
        return softOptions;
    }

    SoftContext context() {
        return context;
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
            // The system accepts on the port until the selector has released the channel, which it does when it looks
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
    public int place() {
        return place;
    }

    @Override
    public void setPlace(int value) {
        place = value;
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
