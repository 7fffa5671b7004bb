package org.verbena.api.queuepair;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaChannelOption;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

/**
 * Exchanges the ends of a connection over TCP, on virtual threads, in one of three {@linkplain Format formats}. One end
 * {@linkplain #connecting connects}, the other {@linkplain #accepting accepts}. The TCP connection is closed when both
 * queue pairs are connected, but for {@link Format#RC_EXAMPLE}, whose programs go on to use it.
 *
 * <p>The channel's connect timeout limits all of it. What the peer sends is checked. Whatever is not an end fails the
 * channel's connect with a {@link ConnectionException}, unless this end is {@linkplain #accepting accepting}: then it
 * goes on to wait for a peer. Nothing is encrypted or authenticated, so use it on a trusted
 * network; with framing MESSAGE or STREAM {@link RdmaChannelOption#PRE_SHARED_KEYS} keep strangers out.
 *
 * <p>Good for one connection. Any thread.
 */
public final class TcpQueuePairExchange implements QueuePairExchange, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TcpQueuePairExchange.class);

    /** What the packets of {@code ibv_rc_pingpong} have at the most without {@code -m}. */
    private static final int PING_PONG_MTU_BYTES = 1024;

    /** What the example sets. */
    private static final int EXAMPLE_MTU_BYTES = 256;

    /** How many reads the queue pairs of both programs serve. */
    private static final int FOREIGN_READS = 1;

    /** Where both programs of the example have connected their queue pairs. */
    private static final char EXAMPLE_CONNECTED = 'Q';

    private static final byte READY = 1;

    /** What goes over the TCP connection. */
    public enum Format {
        /**
         * {@link QueuePairEnd#toBytes()} in both directions, then a byte of 1 from each end whose queue pair is
         * connected. For two programs with Verbena; the one that carries private data, and so the message protocol.
         */
        VERBENA,
        /**
         * As {@code ibv_rc_pingpong}: the client's end and the server's, as text, and the client's "done". Both ends
         * need the same packet size, 1024 bytes unless {@link TcpQueuePairExchange#withMtuBytes} says otherwise.
         * Framing RAW alone.
         */
        PING_PONG,
        /**
         * As RDMA_RC_example of the RDMA Aware Networks Programming manual: a buffer's address and key, and the queue
         * pair, 34 bytes in both directions; then bytes at which both ends wait for each other,
         * {@link TcpQueuePairExchange#synchronize}. Packets of 256 bytes. Framing RAW alone.
         */
        RC_EXAMPLE
    }

    private final Format format;
    private final @Nullable InetSocketAddress server;
    private final @Nullable ServerSocket listener;
    private final @Nullable ExchangeDoor door;
    private final ReentrantLock lock = new ReentrantLock();

    /** Set before it is used. */
    private int mtuBytes = PING_PONG_MTU_BYTES;

    private @Nullable MemorySegment segment;

    // Guarded by the lock.
    private @Nullable Socket socket;
    private @Nullable RegisteredMemory shared;
    private boolean isUsed;
    private boolean isClosed;

    /** What the peer shares; set by the exchange. */
    private volatile ExchangeWire.@Nullable Told peerExample;

    private volatile @Nullable QueuePairEnd own;

    private TcpQueuePairExchange(
            Format format,
            @Nullable InetSocketAddress server,
            @Nullable ServerSocket listener,
            @Nullable Socket socket) {
        this.format = Objects.requireNonNull(format, "the format is null");
        this.server = server;
        this.listener = listener;
        door = listener == null ? null : new ExchangeDoor(listener);
        this.socket = socket;
    }

    /**
     * The end that connects to a peer which accepts: {@link #accepting}, or a server in C.
     *
     * @param server the peer's TCP address, resolved
     * @param format what it speaks
     * @return an exchange, which does nothing yet
     */
    public static TcpQueuePairExchange connecting(InetSocketAddress server, Format format) {
        if (server.isUnresolved()) {
            throw new IllegalArgumentException(server + " is unresolved: look the name up first");
        }
        return new TcpQueuePairExchange(format, server, null, null);
    }

    /**
     * The end that accepts one peer. It listens when this returns, and accepts connections while the channel connects,
     * until the first of them has said what a peer says. Others are closed: a port scanner, a silent connection or a
     * peer of another format costs nothing but a line in the log.
     *
     * @param local the TCP address to listen at; port 0 selects any free port
     * @param format what the peer speaks
     * @return an exchange; close it if no channel is connected with it
     * @throws ConnectionException the address is in use, or not of this machine
     */
    public static TcpQueuePairExchange accepting(InetSocketAddress local, Format format) {
        ServerSocket made = null;
        try {
            made = new ServerSocket();
            made.setReuseAddress(true);
            made.bind(local, ExchangeDoor.MOST_VISITORS);
            return new TcpQueuePairExchange(format, null, made, null);
        } catch (IOException refused) {
            closeQuietly(made);
            throw new ConnectionException.Unreachable(
                    "listen on TCP " + local + " to exchange queue pairs: " + refused.getMessage(), refused);
        }
    }

    /**
     * The end that has accepted a peer's TCP connection, for servers of many peers that do this themselves.
     *
     * @param peer connected; this exchange closes it
     * @param format what the peer speaks
     * @return an exchange
     */
    public static TcpQueuePairExchange accepted(Socket peer, Format format) {
        return new TcpQueuePairExchange(format, null, null, Objects.requireNonNull(peer, "the socket is null"));
    }

    /**
     * Uses another packet size with {@link Format#PING_PONG}: {@code -m} of the C program. Before the channel connects.
     *
     * @param bytes 256, 512, 1024, 2048 or 4096
     * @return this
     */
    public TcpQueuePairExchange withMtuBytes(int bytes) {
        requireFormat(Format.PING_PONG, "another packet size");
        mtuBytes = bytes;
        return this;
    }

    /**
     * Shares memory with the peer by {@link Format#RC_EXAMPLE}: it is registered for the peer's reads and writes when
     * the channel connects, and stays so until this is closed. Before the channel connects.
     *
     * @param memory native, of a shared or global arena
     * @return this
     */
    public TcpQueuePairExchange withMemory(MemorySegment memory) {
        requireFormat(Format.RC_EXAMPLE, "memory");
        segment = memory;
        return this;
    }

    private void requireFormat(Format needed, String what) {
        if (format != needed) {
            throw new IllegalStateException(what + " is exchanged in format " + needed + " only, not in " + format);
        }
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

    /**
     * The memory of {@link #withMemory}, registered.
     *
     * @return valid from the channel's {@code connect} on, until this is closed
     * @throws IllegalStateException there is none
     */
    public RegisteredMemory memory() {
        lock.lock();
        try {
            RegisteredMemory known = shared;
            if (known == null) {
                throw new IllegalStateException("no memory is registered: give it withMemory, and connect the channel");
            }
            return known;
        } finally {
            lock.unlock();
        }
    }

    /**
     * The peer's memory, told by {@link Format#RC_EXAMPLE}, for the channel's reads and writes.
     *
     * @param lengthBytes its length, which the format does not tell
     * @return a token
     * @throws IllegalStateException the channel is not connected, or the format is another one
     */
    public RemoteMemory peerMemory(long lengthBytes) {
        ExchangeWire.Told known = peerExample;
        if (known == null) {
            throw new IllegalStateException(
                    "the peer has told of no memory: with format RC_EXAMPLE it does when the channel connects");
        }
        return new RemoteMemory(
                known.address(), lengthBytes, known.key(), Set.of(Access.REMOTE_READ, Access.REMOTE_WRITE));
    }

    // ---- the exchange

    @Override
    public QueuePairEnd adapt(QueuePairEnd proposed) {
        if (format == Format.VERBENA) {
            return proposed;
        }
        if (proposed.privateData().length > 0) {
            throw new ConnectionException("the format " + format
                    + " has no room for private data, which framings MESSAGE and STREAM need: use framing RAW, without"
                    + " CONNECT_PRIVATE_DATA, or format VERBENA at both ends");
        }
        int fixedBytes = format == Format.PING_PONG ? mtuBytes : EXAMPLE_MTU_BYTES;
        if (proposed.mtuBytes() < fixedBytes) {
            throw new ConnectionException("the peer's packets have " + fixedBytes + " bytes, and this end's port takes "
                    + proposed.mtuBytes() + ": both ends need the same size"
                    + (format == Format.PING_PONG ? ", -m and withMtuBytes" : ""));
        }
        QueuePairEnd adapted = proposed.withMtuBytes(fixedBytes);
        return format == Format.RC_EXAMPLE ? adapted.withPacketSequenceNumber(0) : adapted;
    }

    @Override
    public CompletionStage<QueuePairEnd> exchange(QueuePairEnd mine, MemoryDomain memory) {
        lock.lock();
        try {
            if (isUsed || isClosed) {
                throw new IllegalStateException(this + " was used or closed: make one for each connection");
            }
            isUsed = true;
            MemorySegment given = segment;
            if (given != null) {
                shared = memory.register(
                        given, new HashSet<>(List.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE)));
            }
        } finally {
            lock.unlock();
        }
        own = mine;
        return onThread(() -> meet(mine));
    }

    @Override
    public CompletionStage<Void> ready() {
        return onThread(() -> {
                    confirm();
                    if (format != Format.RC_EXAMPLE) {
                        close();
                    }
                    return true;
                })
                .thenAccept(done -> {});
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
        ExchangeWire.Told its;
        ExchangeDoor waiting = door;
        if (waiting != null) {
            ExchangeDoor.Peer<ExchangeWire.Told> peer = waiting.await(this::read);
            its = peer.said();
            tell(new ExchangeWire(keep(peer.socket())), mine);
        } else {
            ExchangeWire wire = new ExchangeWire(open());
            tell(wire, mine);
            its = read(wire);
        }
        if (format == Format.RC_EXAMPLE) {
            peerExample = its;
        }
        return its.end();
    }

    private ExchangeWire.Told read(ExchangeWire wire) throws IOException {
        return switch (format) {
            case VERBENA -> wire.readEnd();
            case PING_PONG -> wire.readPingPong(mtuBytes, FOREIGN_READS);
            case RC_EXAMPLE -> wire.readExample(EXAMPLE_MTU_BYTES, FOREIGN_READS);
        };
    }

    private void tell(ExchangeWire wire, QueuePairEnd mine) throws IOException {
        switch (format) {
            case VERBENA -> wire.write(mine.toBytes());
            case PING_PONG -> {
                if (!answers()) { // the server's end follows when its queue pair listens
                    wire.writeText(ExchangeWire.textOf(mine));
                }
            }
            case RC_EXAMPLE -> {
                RegisteredMemory told;
                lock.lock();
                try {
                    told = shared;
                } finally {
                    lock.unlock();
                }
                wire.write(ExchangeWire.exampleOf(
                        mine, told == null ? 0 : told.address(), told == null ? 0 : told.remoteKey()));
            }
        }
    }

    private void confirm() throws IOException {
        ExchangeWire wire = new ExchangeWire(open());
        switch (format) {
            case VERBENA -> {
                wire.write(new byte[] {READY});
                wire.expect(READY, "that its queue pair is connected");
            }
            case PING_PONG -> {
                if (answers()) {
                    wire.writeText(ExchangeWire.textOf(Objects.requireNonNull(own)));
                    wire.expectText("done");
                } else {
                    wire.writeText("done");
                }
            }
            case RC_EXAMPLE -> synchronizeNow(wire, EXAMPLE_CONNECTED);
        }
    }

    /**
     * Waits until the peer is at the same point, with {@link Format#RC_EXAMPLE}. For points after the channel is
     * active.
     *
     * @param point a character that both ends have for it
     * @return done when the peer is there; fails with {@link ConnectionException} if it is at another one, or gone
     */
    public CompletableFuture<Void> synchronize(char point) {
        requireFormat(Format.RC_EXAMPLE, "a point");
        return onThread(() -> {
                    synchronizeNow(new ExchangeWire(open()), point);
                    return true;
                })
                .thenAccept(done -> {});
    }

    private static void synchronizeNow(ExchangeWire wire, char point) throws IOException {
        wire.write(String.valueOf(point).getBytes(StandardCharsets.US_ASCII));
        wire.expect((byte) point, "that it is at point " + point);
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
        T call() throws IOException;
    }

    private <T> CompletableFuture<T> onThread(Blocking<T> work) {
        CompletableFuture<T> outcome = new CompletableFuture<>();
        Thread.ofVirtual().name("verbena-exchange").start(() -> {
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

    /** Closes the TCP connection, or stops listening, and gives up shared memory. Idempotent. */
    @Override
    public void close() {
        Socket open;
        RegisteredMemory registered;
        lock.lock();
        try {
            isClosed = true;
            open = socket;
            registered = shared;
            shared = null;
        } finally {
            lock.unlock();
        }
        closeQuietly(listener);
        closeQuietly(open);
        if (registered != null) {
            registered.close();
        }
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
        return (server != null
                        ? "with TCP " + server
                        : listening != null ? "at TCP " + listening.getLocalSocketAddress() : "with an accepted peer")
                + " in format " + format;
    }
}
