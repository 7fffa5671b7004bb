package org.verbena.api.queuepair;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.internal.loop.Threads;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.spi.LoopClock;

/**
 * Exchanges the ends of a connection over TCP, on virtual threads, between two programs with Verbena. One end
 * {@linkplain #connecting connects}, the other {@linkplain #accepting accepts}. Each sends {@link
 * QueuePairEnd#toBytes()}, and when its queue pair is connected a byte of 1. Then the TCP connection is closed.
 *
 * <p>The channel's connect timeout covers the exchange. The peer's data are checked: if they are invalid, the channel's
 * connect fails with a {@link ConnectionException}, unless this end is {@linkplain #accepting accepting}: then it
 * continues to wait for a peer. Nothing is encrypted or authenticated, so use it on a trusted network; with framing
 * MESSAGE or STREAM {@link RdmaChannelOption#PRE_SHARED_KEYS} authenticate the peer.
 *
 * <p>Used for one connection. Any thread.
 */
public final class TcpQueuePairExchange implements QueuePairExchange, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TcpQueuePairExchange.class);

    /** The last byte of each end: its queue pair is connected. */
    private static final byte READY = 1;

    private final @Nullable InetSocketAddress server;
    private final @Nullable ServerSocket listener;
    private final @Nullable ExchangeAcceptor door;
    private final ReentrantLock lock = new ReentrantLock();

    // Guarded by the lock.
    private @Nullable Socket socket;
    private boolean isUsed;
    private boolean isClosed;

    private TcpQueuePairExchange(
            @Nullable InetSocketAddress server, @Nullable ServerSocket listener, @Nullable Socket socket) {
        this.server = server;
        this.listener = listener;
        door = listener == null ? null : new ExchangeAcceptor(listener);
        this.socket = socket;
    }

    /**
     * Creates the end that connects to a peer which accepts: {@link #accepting}.
     *
     * @param server the peer's TCP address, resolved
     * @return an exchange, which does nothing yet
     */
    public static TcpQueuePairExchange connecting(InetSocketAddress server) {
        if (server.isUnresolved()) {
            throw new IllegalArgumentException(server + " is unresolved: look the name up first");
        }
        return new TcpQueuePairExchange(server, null, null);
    }

    /**
     * Creates the end that accepts one peer. It listens when this returns, and accepts connections while the channel
     * connects, until one of them sends a valid end. The others are closed: a port scanner, a silent connection or a
     * peer with another protocol costs only a line in the log.
     *
     * @param local the TCP address to listen at; port 0 selects any free port
     * @return an exchange; close it if no channel is connected with it
     * @throws ConnectionException the address is in use, or not of this machine
     */
    public static TcpQueuePairExchange accepting(InetSocketAddress local) {
        ServerSocket made = null;
        try {
            made = new ServerSocket();
            made.setReuseAddress(true);
            made.bind(local, ExchangeAcceptor.MAX_VISITORS);
            return new TcpQueuePairExchange(null, made, null);
        } catch (IOException refused) {
            closeQuietly(made);
            throw new ConnectionException.Unreachable(
                    "listen on TCP " + local + " to exchange queue pairs: " + refused.getMessage(), refused);
        }
    }

    /**
     * Creates the end for a TCP connection that the program has accepted, for servers with many peers.
     *
     * @param peer connected; this exchange closes it
     * @return an exchange
     */
    public static TcpQueuePairExchange accepted(Socket peer) {
        return new TcpQueuePairExchange(null, null, Objects.requireNonNull(peer, "the socket is null"));
    }

    /**
     * The TCP address that it listens at.
     *
     * @return address and port
     * @throws IllegalStateException it does not accept
     */
    public InetSocketAddress localAddress() {
        ServerSocket listening = listener;
        if (listening == null) {
            throw new IllegalStateException(this + " does not listen");
        }
        return (InetSocketAddress) listening.getLocalSocketAddress();
    }

    // ---- the exchange

    @Override
    public CompletionStage<QueuePairEnd> exchange(QueuePairEnd mine, MemoryDomain memory) {
        lock.lock();
        try {
            if (isUsed || isClosed) {
                throw new IllegalStateException(this + " was used or closed: make one for each connection");
            }
            isUsed = true;
        } finally {
            lock.unlock();
        }
        return onThread(() -> meet(mine));
    }

    @Override
    public CompletionStage<Void> ready() {
        return onThread(() -> {
            Socket peer = open();
            write(peer, new byte[] {READY});
            byte said = read(peer, 1)[0];
            if (said != READY) {
                throw new IOException("the peer sent a byte of " + said + " instead of " + READY
                        + ", that its queue pair is connected");
            }
            close();
            return null;
        });
    }

    @Override
    public boolean answers() {
        return server == null;
    }

    @Override
    public void giveUp() {
        close();
    }

    private QueuePairEnd meet(QueuePairEnd mine) throws IOException {
        ExchangeAcceptor waiting = door;
        if (waiting != null) {
            ExchangeAcceptor.Peer peer = waiting.await();
            write(keep(peer.socket()), mine.toBytes());
            return peer.end();
        }
        Socket peer = open();
        write(peer, mine.toBytes());
        return readEnd(peer);
    }

    private static void write(Socket peer, byte[] bytes) throws IOException {
        peer.getOutputStream().write(bytes);
    }

    /** Reads the peer's end. Blocks. */
    static QueuePairEnd readEnd(Socket peer) throws IOException {
        byte[] head = read(peer, QueuePairEnd.LEAST_BYTES);
        byte[] rest = read(peer, QueuePairEnd.privateDataBytes(head));
        return QueuePairEnd.ofBytes(ByteBuffer.allocate(head.length + rest.length)
                .put(head)
                .put(rest)
                .array());
    }

    private static byte[] read(Socket peer, int count) throws IOException {
        byte[] bytes = peer.getInputStream().readNBytes(count);
        if (bytes.length == 0 && count > 0) {
            throw new EOFException("the peer closed the connection; its own output says why");
        }
        if (bytes.length < count) {
            throw new IOException("the peer closed the connection after " + bytes.length + " of " + count
                    + " bytes; its own output says why");
        }
        return bytes;
    }

    /** The TCP connection, made if there is none yet. Blocks. */
    private Socket open() throws IOException {
        Socket made;
        lock.lock();
        try {
            requireOpen();
            Socket known = socket;
            if (known != null) {
                return known;
            }
            made = new Socket();
            socket = made; // so that closing ends the connect
        } finally {
            lock.unlock();
        }
        made.connect(Objects.requireNonNull(server));
        made.setTcpNoDelay(true);
        return made;
    }

    /** The TCP connection, accepted. */
    private Socket keep(Socket peer) throws IOException {
        lock.lock();
        try {
            if (isClosed) {
                closeQuietly(peer);
            }
            requireOpen();
            socket = peer;
        } finally {
            lock.unlock();
        }
        peer.setTcpNoDelay(true);
        return peer;
    }

    private void requireOpen() throws IOException {
        if (isClosed) {
            throw new IOException("it was closed");
        }
    }

    private interface Blocking<T> {
        @Nullable T call() throws IOException;
    }

    private <T> CompletableFuture<T> onThread(Blocking<T> work) {
        CompletableFuture<T> outcome = new CompletableFuture<>();
        Threads.start(LoopClock.system(), "verbena-exchange", () -> {
            try {
                outcome.complete(work.call());
            } catch (Throwable failure) {
                outcome.completeExceptionally(explain(failure));
            }
        });
        return outcome;
    }

    private Throwable explain(Throwable failure) {
        String message = "exchanging queue pairs " + this + ": " + failure.getMessage();
        if (failure instanceof ConnectException refused) {
            ConnectionException.Rejected nobody = new ConnectionException.Rejected(message, new byte[0]);
            nobody.initCause(refused);
            return nobody;
        }
        return failure instanceof IOException || failure instanceof IllegalArgumentException
                ? new ConnectionException(message, failure)
                : failure;
    }

    /** Closes the TCP connection, or stops listening. Idempotent. */
    @Override
    public void close() {
        Socket open;
        lock.lock();
        try {
            isClosed = true;
            open = socket;
        } finally {
            lock.unlock();
        }
        closeQuietly(listener);
        closeQuietly(open);
    }

    static void closeQuietly(@Nullable AutoCloseable resource) {
        if (resource != null) {
            try {
                resource.close();
            } catch (Exception refused) {
                LOG.debug("{} could not be closed", resource, refused);
            }
        }
    }

    @Override
    public String toString() {
        ServerSocket listening = listener;
        return server != null
                ? "with TCP " + server
                : listening != null ? "at TCP " + listening.getLocalSocketAddress() : "with an accepted peer";
    }
}
