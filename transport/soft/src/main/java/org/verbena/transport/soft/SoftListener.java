package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.software.SoftwareListener;
import org.verbena.transport.spi.Handshakes;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.ListenerHandler;

/**
 * Listens for TCP connections and reads their MPA requests. It keeps accepting, whatever strangers do: when it has its
 * maximum of unfinished handshakes, the oldest without a complete request is dropped for the next one; an address with
 * more than its share loses its own oldest. It pauses only while its user has to decide on all of them. Connections of
 * other protocols are dropped, or leave with their first bytes for the user ({@link ListenOptions#plainTcp()}): nothing
 * is decided before a byte differs from an MPA request's, and no connection waits for another. Not thread-safe;
 * confined to the loop's thread.
 */
final class SoftListener extends SoftwareListener {
    private static final Logger LOG = LoggerFactory.getLogger(SoftListener.class);

    private final SoftContext context;
    private final SoftOptions softOptions;
    private final long handshakeNanos;

    /** When a connection that has not shown its protocol counts as plain TCP; {@link Long#MAX_VALUE} for never. */
    private final long plainNanos;

    private final Handshakes<PendingConnection> unfinished = new Handshakes<>();
    private @Nullable ServerSocketChannel channel;
    private @Nullable ScheduledFuture<?> expiry;
    private @Nullable ScheduledFuture<?> silence;

    /** Unfinished ones, and those that the user has not decided on. */
    private int handshakes;

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
        super(loop, wanted, options, handler);
        this.context = context;
        softOptions = context.options();
        handshakeNanos = TimeUnit.MILLISECONDS.toNanos(softOptions.handshakeTimeoutMillis());
        plainNanos = options.plainTcp() && options.plainTcpAfterMillis() > 0
                ? TimeUnit.MILLISECONDS.toNanos(options.plainTcpAfterMillis())
                : Long.MAX_VALUE;
    }

    @Override
    protected InetSocketAddress openChannel() throws IOException {
        ServerSocketChannel made = LoopSocket.open(ServerSocketChannel::open);
        channel = made;
        made.configureBlocking(false);
        made.setOption(StandardSocketOptions.SO_REUSEADDR, options.reuseAddress());
        made.bind(wanted, options.backlog());
        return (InetSocketAddress) made.getLocalAddress();
    }

    @Override
    protected void closeChannel() throws IOException {
        ServerSocketChannel now = channel;
        if (now != null) {
            now.close();
        }
    }

    @Override
    protected @Nullable SocketChannel acceptNext() throws IOException {
        return selectableChannel().accept();
    }

    /**
     * Whether none can be dropped for another one. There may be one more than the maximum: it was accepted, and the
     * requests of those that should have made room turned out to be complete.
     */
    @Override
    protected boolean isFull() {
        int max = softOptions.maxHandshakes();
        return handshakes > max || (handshakes == max && unfinished.size() == 0);
    }

    /** Mostly the process has no descriptors left: those of unfinished handshakes are the first to spare. */
    @Override
    protected boolean makesRoom(IOException failure) {
        PendingConnection spare = oldest();
        context.incidents()
                .report(
                        PeerErrorLog.Kind.LOCAL,
                        "accepting on " + localAddress() + " fails, and "
                                + (spare == null
                                        ? "pauses for " + PAUSE_MILLIS + " ms"
                                        : "dropping an unfinished handshake")
                                + ": " + failure.getMessage() + LoopSocket.DESCRIPTORS_HINT);
        if (spare == null) {
            return false;
        }
        spare.evict();
        return true;
    }

    @Override
    protected void closeUnfinished() {
        for (PendingConnection first = oldest(); first != null; first = oldest()) {
            first.leave();
        }
    }

    @Override
    protected void begin(SocketChannel accepted) throws IOException {
        try {
            accepted.configureBlocking(false);
            accepted.setOption(StandardSocketOptions.TCP_NODELAY, true);
            InetSocketAddress local = (InetSocketAddress) accepted.getLocalAddress();
            InetSocketAddress remote = (InetSocketAddress) accepted.getRemoteAddress();
            PendingConnection pending = new PendingConnection(this, local, remote, System.nanoTime());
            makeRoom(pending.network);
            handshakes++;
            unfinished.add(pending, pending.network);
            pending.begin(accepted);
            watch();
            watchSilent();
        } catch (IOException | RuntimeException e) {
            // The peer has left before it was accepted.
            LOG.debug("a connection to {} ended immediately", localAddress(), e);
            LoopSocket.closeQuietly(accepted);
        } catch (Error e) {
            LoopSocket.closeQuietly(accepted);
            throw e;
        }
    }

    private void makeRoom(long network) {
        while (handshakes >= softOptions.maxHandshakes()) {
            PendingConnection victim = unfinished.victimFor(network, softOptions.maxHandshakesPerAddress());
            if (victim == null) {
                return;
            }
            // The request of the victim may have arrived without the loop having read it.
            victim.onReadable();
            if (unfinished.contains(victim)) {
                victim.evict();
            }
        }
    }

    /** One timer, for the oldest: all have the same time. */
    private void watch() {
        PendingConnection first = oldest();
        if (expiry == null && first != null && !loop.isShuttingDown()) {
            expiry = schedule(this::expire, first.beganNanos + handshakeNanos);
        }
    }

    private void expire() {
        expiry = null;
        long now = System.nanoTime();
        PendingConnection first = oldest();
        while (first != null && now - first.beganNanos >= handshakeNanos) {
            first.expire();
            first = oldest();
        }
        watch();
    }

    /** A timer of its own: one whose protocol is known may be the oldest. */
    private void watchSilent() {
        if (silence == null && plainNanos < handshakeNanos && !loop.isShuttingDown()) {
            PendingConnection first = unfinished.oldest(PendingConnection::isUntold);
            if (first != null) {
                silence = schedule(this::endSilence, first.beganNanos + plainNanos);
            }
        }
    }

    private void endSilence() {
        silence = null;
        long now = System.nanoTime();
        PendingConnection first = unfinished.oldest(PendingConnection::isUntold);
        while (first != null && now - first.beganNanos >= plainNanos) {
            first.tellBySilence();
            first = unfinished.oldest(PendingConnection::isUntold);
        }
        watchSilent();
    }

    private @Nullable PendingConnection oldest() {
        return unfinished.oldest(any -> true);
    }

    /** Whether a connection's request is not complete. */
    boolean isUnfinished(PendingConnection connection) {
        return unfinished.contains(connection);
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
        if (isClosed()) {
            LoopSocket.closeQuietly(from);
            return;
        }
        try {
            handler.onPlainConnection(this, from, firstBytes);
        } catch (Throwable t) {
            LOG.warn("the handler of {} threw at a plain connection", this, t);
            LoopSocket.closeQuietly(from);
        }
    }

    SoftOptions softOptions() {
        return softOptions;
    }

    SoftContext context() {
        return context;
    }

    @Override
    public ServerSocketChannel selectableChannel() {
        ServerSocketChannel now = channel;
        if (now == null) {
            throw new IllegalStateException("not open yet");
        }
        return now;
    }

    @Override
    public String toString() {
        return "soft " + super.toString();
    }
}
