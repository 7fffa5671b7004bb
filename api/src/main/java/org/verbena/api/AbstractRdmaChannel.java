package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.EmptyByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.AbstractChannel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelMetadata;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MaxMessagesRecvByteBufAllocator;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.SingleThreadEventExecutor;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.AlreadyConnectedException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ConnectionPendingException;
import java.nio.channels.NotYetConnectedException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageConnection;
import org.verbena.transport.protocol.MessageListener;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.MessageStatistics;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.OperationCallback;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointCapabilities;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.MemoryDomain;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.RegisteredMemory;
import org.verbena.transport.spi.RemoteMemory;

/**
 * What all channels over one RDMA connection have in common: connecting and closing, writability and back-pressure, and one-sided operations on the peer's memory.
 * {@link RdmaChannel} carries messages, {@link RdmaStreamChannel} bytes as a socket does.
 *
 * <p><b>One-sided operations</b> go out at once, after what was flushed before them, and need no {@link #flush()}. The buffers are
 * retained until the outcome, also when the future is cancelled; the caller keeps its own reference and leaves their content alone until then. Bounds and
 * rights of the token are checked before anything goes to the device. More reads than {@link RdmaChannelOption#READ_DEPTH} queue.
 *
 * <p><b>Closing</b> sends what was flushed, says goodbye and lets go, within {@link RdmaChannelOption#CLOSE_TIMEOUT_MILLIS}. When
 * the connection is lost, everything pending fails with the first cause, {@code exceptionCaught} has it, and the channel closes. A channel
 * lives on one event loop: {@link #deregister()} closes it once it is connected.
 *
 * <pre>{@code
 * OPEN --connect, or accepted and registered--> CONNECTING --agreed with the peer--> ACTIVE --close--> CLOSING
 *   |                                               |                                  |                 |
 *   +-----------------------------------------------+---------- failure, peer ---------+-----------------+--> CLOSED
 * }</pre>
 */
public abstract sealed class AbstractRdmaChannel extends AbstractChannel permits RdmaChannel, RdmaStreamChannel {
    private static final Logger LOG = LoggerFactory.getLogger(AbstractRdmaChannel.class);

    /** Like a socket channel's: no separate disconnect, 16 messages a read with auto-read off. */
    private static final ChannelMetadata METADATA = new ChannelMetadata(false, 16);

    /** Which of a {@code ChannelOutboundBuffer}'s flags tells that credits have run out. */
    private static final int CREDIT_FLAG = 1;

    /**
     * Stands for a message without bytes. Netty puts {@link Unpooled#EMPTY_BUFFER} in place of a message that was cancelled; with this one instead, the two
     * can be told apart.
     */
    private static final ByteBuf EMPTY_MESSAGE = new EmptyByteBuf(UnpooledByteBufAllocator.DEFAULT);

    /** How long after the connect timeout the provider may take to say what it was waiting for. */
    private static final long TIMEOUT_GRACE_MILLIS = 200;

    private static final byte[] DROPPED = "the server dropped the connection".getBytes(StandardCharsets.US_ASCII);

    private final RdmaChannelConfig config;
    private final Listener listener = new Listener();
    private final OneSidedOperations operations = new OneSidedOperations(this);
    private final OperationCallback onSent = this::onSent0;
    private final ChannelOutboundBuffer.MessageProcessor handOver = this::handOver0;
    private final Runnable tick = this::tick0;
    private final Runnable useMemory = this::useMemory0;
    private final Runnable deliver = this::deliver0;
    private final Runnable closeWithLoop = this::closeWithLoop0;
    private final @Nullable IncomingConnection incoming;

    // Written by the loop, read by any thread.
    private volatile State state = State.OPEN;
    private volatile boolean started;
    private volatile @Nullable InetSocketAddress local;
    private volatile @Nullable InetSocketAddress remote;
    private volatile @Nullable MemoryDomain memory;
    private volatile @Nullable EndpointCapabilities capabilities;
    private volatile @Nullable MessageConnection connection;

    // The loop's.
    private @Nullable InetSocketAddress requestedLocal;
    private @Nullable ProviderAccount account;
    private Frame.@Nullable Listener frameListener;
    private @Nullable Endpoint endpoint;
    private @Nullable ChannelPromise connectPromise;
    private @Nullable Future<?> connectTimeout;
    private @Nullable Future<?> timer;
    private boolean over;
    private boolean incomingDecided;

    /** Messages of the outbound buffer that the connection has been given and that have no outcome yet. */
    private int handedOver;

    /** How many of those {@link #handOver0} has still to pass over. */
    private int skip;

    /** Messages that the connection refused while it was being given them, by cause. */
    private final ArrayDeque<Throwable> refusals = new ArrayDeque<>(0);

    private boolean handingOver;
    private @Nullable Throwable lastCause;
    private @Nullable Throwable lastTranslation;

    private boolean reading;
    private boolean readPending;
    private boolean inBatch;
    private int messagesInBatch;

    private enum State {
        OPEN,
        CONNECTING,
        ACTIVE,
        CLOSING,
        CLOSED
    }

    /**
     * Makes one.
     *
     * @param parent of a channel that was accepted, else null
     * @param request the connection request; it is accepted when the channel is registered, with the options it has then. Null for a channel to connect with
     */
    AbstractRdmaChannel(@Nullable RdmaServerChannel parent, @Nullable IncomingConnection request) {
        super(parent);
        config = newConfig();
        incoming = request;
        if (request != null) {
            local = request.localAddress();
            remote = request.remoteAddress();
        }
    }

    /** Makes the options; called by the constructor. */
    abstract RdmaChannelConfig newConfig();

    // ---- what anyone may ask
    // -----------------------------------------------------------------------------------------------------------------

    @Override
    public ChannelConfig config() {
        return config;
    }

    @Override
    public ChannelMetadata metadata() {
        return METADATA;
    }

    @Override
    public boolean isOpen() {
        return state != State.CLOSED;
    }

    @Override
    public boolean isActive() {
        State now = state;
        return now == State.ACTIVE || now == State.CLOSING;
    }

    @Override
    public @Nullable RdmaServerChannel parent() {
        return (RdmaServerChannel) super.parent();
    }

    @Override
    public @Nullable InetSocketAddress localAddress() {
        return (InetSocketAddress) super.localAddress();
    }

    @Override
    public @Nullable InetSocketAddress remoteAddress() {
        return (InetSocketAddress) super.remoteAddress();
    }

    @Override
    protected @Nullable SocketAddress localAddress0() {
        return local;
    }

    @Override
    protected @Nullable SocketAddress remoteAddress0() {
        return remote;
    }

    /**
     * The device's memory: where to register what reads, writes and atomics use, on this side or for the peer. It is the same for all channels of a
     * device, and regions outlive the channel.
     *
     * @return the domain
     * @throws NotYetConnectedException before the channel is active
     */
    public MemoryDomain memory() {
        MemoryDomain domain = memory;
        if (domain == null) {
            throw new NotYetConnectedException();
        }
        return domain;
    }

    /**
     * What the connection can do.
     *
     * @return limits and features in force
     * @throws NotYetConnectedException before the channel is active
     */
    public EndpointCapabilities capabilities() {
        EndpointCapabilities known = capabilities;
        if (known == null) {
            throw new NotYetConnectedException();
        }
        return known;
    }

    /**
     * What this channel has done so far, and how it is now: messages, bytes, credits, stalls. Any thread, also when it is closed. See
     * {@link RdmaEventLoopGroup#providerStatistics()} for all channels together.
     *
     * @return a snapshot; each number is from a moment ago at the latest; all 0 before it connects
     */
    public MessageStatistics statistics() {
        MessageConnection begun = connection;
        return begun == null ? MessageStatistics.NONE : begun.statistics();
    }

    // ---- one-sided operations
    // ----------------------------------------------------------------------------------------------------------------

    /**
     * Reads the peer's memory.
     *
     * @param from a token that allows REMOTE_READ
     * @param offsetBytes where to begin, from the start of the token
     * @param into filled in this order, each from its writer index to its capacity; the writer indices move when it has succeeded
     * @return done when all of it is there. Fails with IndexOutOfBoundsException or IllegalArgumentException against the token, with
     *     {@link RemoteAccessException} if the peer refuses
     */
    public Future<Void> read(RemoteMemory from, long offsetBytes, ByteBuf... into) {
        return operations.read(from, offsetBytes, into);
    }

    /**
     * Reads the peer's memory into registered memory of this side.
     *
     * @param from a token that allows REMOTE_READ
     * @param offsetBytes where to begin, from the start of the token
     * @param into registered with LOCAL_WRITE, and with REMOTE_WRITE if {@link EndpointCapabilities#readSinkNeedsRemoteWrite()}
     * @param intoOffsetBytes where to put it
     * @param lengthBytes how much to read
     * @return done when all of it is there; fails as {@link #read(RemoteMemory, long, ByteBuf...)} does
     */
    public Future<Void> read(
            RemoteMemory from, long offsetBytes, RegisteredMemory into, long intoOffsetBytes, int lengthBytes) {
        return operations.read(from, offsetBytes, into, intoOffsetBytes, lengthBytes);
    }

    /**
     * Writes the peer's memory. Success means that the peer's adapter has acknowledged it, not that the peer's program can see it: for that, send a
     * message afterwards, use immediate data, or {@link #flushingWrite}.
     *
     * @param to a token that allows REMOTE_WRITE
     * @param offsetBytes where to begin, from the start of the token
     * @param from gathered in this order, each from its reader index to its writer index; the indices stay
     * @return done when the write has completed. Fails with IndexOutOfBoundsException or IllegalArgumentException against the token, with
     *     {@link RemoteAccessException} if the peer refuses
     */
    public Future<Void> write(RemoteMemory to, long offsetBytes, ByteBuf... from) {
        return operations.write(to, offsetBytes, from);
    }

    /**
     * Writes the peer's memory out of registered memory of this side.
     *
     * @param to a token that allows REMOTE_WRITE
     * @param offsetBytes where to begin, from the start of the token
     * @param from any registered memory
     * @param fromOffsetBytes where it begins
     * @param lengthBytes how much to write
     * @return done when the write has completed; fails as {@link #write(RemoteMemory, long, ByteBuf...)} does
     */
    public Future<Void> write(
            RemoteMemory to, long offsetBytes, RegisteredMemory from, long fromOffsetBytes, int lengthBytes) {
        return operations.write(to, offsetBytes, from, fromOffsetBytes, lengthBytes);
    }

    /**
     * Writes the peer's memory and makes sure that it is there: a write, and a read of its last byte behind it, which the peer's adapter answers only after
     * it has placed what came before. Then the peer's program sees it too.
     *
     * @param to a token that allows REMOTE_WRITE and REMOTE_READ
     * @param offsetBytes where to begin, from the start of the token
     * @param from at least one byte, gathered as in {@link #write(RemoteMemory, long, ByteBuf...)}
     * @return done when the bytes are in the peer's memory
     */
    public Future<Void> flushingWrite(RemoteMemory to, long offsetBytes, ByteBuf... from) {
        return operations.flushingWrite(to, offsetBytes, from);
    }

    /**
     * Writes the peer's memory and tells its pipeline, with an {@link ImmediateDataEvent}, in order with messages.
     *
     * @param to a token that allows REMOTE_WRITE
     * @param offsetBytes where to begin, from the start of the token
     * @param immediateData 32 bits for the peer
     * @param from gathered as in {@link #write(RemoteMemory, long, ByteBuf...)}; may be none
     * @return done when the write has completed; fails with UnsupportedOperationException where adapter or peer have no immediate data (iWARP
     *     without RFC 7306)
     */
    public Future<Void> writeWithImmediate(RemoteMemory to, long offsetBytes, int immediateData, ByteBuf... from) {
        return operations.writeWithImmediate(to, offsetBytes, immediateData, from);
    }

    /**
     * Swaps 8 bytes of the peer's memory if they equal what is expected, atomically towards the adapter's other atomics. The bytes are a number in the
     * peer's byte order.
     *
     * @param at a token that allows REMOTE_ATOMIC
     * @param offsetBytes where, from the start of the token; the address must be a multiple of 8
     * @param expected swap only if the old value equals this
     * @param value the new value
     * @return the old value; fails with UnsupportedOperationException where adapter or peer have no atomics
     */
    public Future<Long> compareAndSwap(RemoteMemory at, long offsetBytes, long expected, long value) {
        return operations.compareAndSwap(at, offsetBytes, expected, value);
    }

    /**
     * Adds to 8 bytes of the peer's memory, atomically towards the adapter's other atomics. The bytes are a number in the peer's byte order.
     *
     * @param at a token that allows REMOTE_ATOMIC
     * @param offsetBytes where, from the start of the token; the address must be a multiple of 8
     * @param add what to add; wraps
     * @return the old value; fails with UnsupportedOperationException where adapter or peer have no atomics
     */
    public Future<Long> fetchAndAdd(RemoteMemory at, long offsetBytes, long add) {
        return operations.fetchAndAdd(at, offsetBytes, add);
    }

    // ---- for this package
    // --------------------------------------------------------------------------------------------------------------------

    /** Has each frame told to someone. The loop's. */
    final void setFrameListener0(Frame.@Nullable Listener value) {
        frameListener = value;
        MessageConnection begun = connection;
        if (begun != null) {
            begun.setFrameListener(value);
        }
    }

    /** Whether the options have been read. Any thread. */
    final boolean hasStarted() {
        return started;
    }

    /** The connection for a one-sided operation that comes after all messages flushed so far. The loop's. */
    MessageConnection connectionForOperation0() throws ClosedChannelException {
        assert eventLoop().inEventLoop();
        MessageConnection open = connection;
        if (state == State.OPEN || state == State.CONNECTING) {
            throw new NotYetConnectedException();
        }
        if (state != State.ACTIVE || open == null) {
            throw new ClosedChannelException();
        }
        ChannelOutboundBuffer outbound = unsafe().outboundBuffer();
        if (outbound != null) {
            handOverFlushed0(outbound, open);
        }
        return open;
    }

    /** A cause as this API tells it: the same exception for the same cause. The loop's. */
    Throwable translate0(Throwable cause) {
        Throwable translation = lastTranslation;
        if (translation == null || !cause.equals(lastCause)) {
            translation = RemoteAccessException.translate(cause);
            lastCause = cause;
            lastTranslation = translation;
        }
        return translation;
    }

    /** Auto-read was switched off. Any thread. */
    void stopReading() {
        if (!isRegistered()) {
            return;
        }
        EventLoop loop = eventLoop();
        if (loop.inEventLoop()) {
            stopReading0();
        } else {
            loop.execute(this::stopReading0);
        }
    }

    // ---- what Netty asks of a channel
    // ------------------------------------------------------------------------------------------------------------

    @Override
    protected AbstractUnsafe newUnsafe() {
        return new RdmaUnsafe();
    }

    @Override
    protected boolean isCompatible(EventLoop loop) {
        return RdmaEventLoopGroup.providerOf(loop) != null;
    }

    @Override
    protected void doRegister(ChannelPromise promise) {
        if (eventLoop() instanceof SingleThreadEventExecutor loop) {
            loop.addShutdownHook(closeWithLoop);
        }
        RdmaEventLoopGroup.add(this);
        promise.setSuccess(); // the handlers are there now
        if (incoming != null && !started && isOpen()) {
            accept0(incoming);
        }
    }

    @Override
    protected void doDeregister() {
        if (eventLoop() instanceof SingleThreadEventExecutor loop) {
            loop.removeShutdownHook(closeWithLoop);
        }
        RdmaEventLoopGroup.remove(this);
    }

    @Override
    protected void doBind(SocketAddress localAddress) {
        if (!(localAddress instanceof InetSocketAddress address) || address.isUnresolved()) {
            throw new ConnectionException.Unreachable(
                    "bind to " + localAddress + ": not an internet address, or its name cannot be resolved");
        }
        if (started) {
            throw new IllegalStateException(
                    "bind to " + localAddress + ": the channel is connecting already; bind first");
        }
        requestedLocal = address;
        local = address;
    }

    @Override
    protected void doDisconnect() {
        doClose();
    }

    @Override
    protected void doClose() {
        if (state == State.CLOSED) {
            return;
        }
        state = State.CLOSED;
        cancel(connectTimeout);
        ChannelPromise promise = connectPromise;
        connectPromise = null;
        if (promise != null) {
            promise.tryFailure(new ClosedChannelException());
        }
        MessageConnection open = connection;
        if (open != null && !over) {
            open.abort(null);
        }
        Endpoint attempt = endpoint;
        if (attempt != null && !over) {
            attempt.disconnect();
        }
        if (over) {
            settle0(true); // there was no endpoint that could have told of its end
        }
        if (incoming != null && !incomingDecided) {
            incomingDecided = true;
            incoming.reject(DROPPED);
        }
    }

    @Override
    protected void doBeginRead() {
        readPending = true;
        MessageConnection open = connection;
        if (!reading && open != null && isActive()) {
            reading = true;
            if (open.setReading(true)) {
                eventLoop().execute(deliver);
            }
        }
    }

    @Override
    protected Object filterOutboundMessage(Object message) throws Exception {
        if (state == State.CLOSING) {
            throw new ClosedChannelException();
        }
        if (!(message instanceof ByteBuf buffer)) {
            throw new UnsupportedOperationException("an " + getClass().getSimpleName() + " writes ByteBuf; "
                    + message.getClass().getName() + " needs an encoder in the pipeline");
        }
        if (!buffer.isReadable()) {
            buffer.release();
            return EMPTY_MESSAGE;
        }
        return buffer;
    }

    @Override
    protected void doWrite(ChannelOutboundBuffer outbound) throws Exception {
        MessageConnection open = connection;
        if (open == null || over) {
            throw new ClosedChannelException();
        }
        if (!open.isWritable() && open.queuedBytes() > 0) {
            return; // onWritabilityChanged comes back here; with nothing under way, the connection may have a refusal
            // to tell
        }
        handOverFlushed0(outbound, open);
        open.flush();
    }

    // ---- the loop's
    // ------------------------------------------------------------------------------------------------------------------------------

    final void handOverFlushed0(ChannelOutboundBuffer outbound, MessageConnection open) {
        if (outbound.size() == handedOver) {
            return;
        }
        skip = handedOver;
        handingOver = true;
        try {
            outbound.forEachFlushedMessage(handOver);
        } catch (Exception cause) {
            open.abort(cause); // handOver0 throws nothing that is checked
        } finally {
            handingOver = false;
        }
        while (!refusals.isEmpty()) {
            onSent0(null, refusals.remove());
        }
    }

    private boolean handOver0(Object message) {
        if (skip > 0) {
            skip--;
            return true;
        }
        MessageConnection open = connection;
        if (open == null) {
            return false;
        }
        if (!(message instanceof ByteBuf buffer)) {
            return handOverOther0(message, open);
        }
        // The outbound buffer lets go of its reference when the promise is done, or when the channel is closed; this
        // one is the connection's.
        open.send(buffer.retain(), onSent, null);
        handedOver++;
        return true;
    }

    /** Something other than a buffer is next to be sent. Returns whether all of it was handed over, so that the next may follow. */
    boolean handOverOther0(Object message, MessageConnection open) {
        throw new IllegalStateException("cannot send a " + message.getClass().getName());
    }

    /** The last part of something that is not one buffer: with its outcome, the outbound buffer's entry is done. */
    final void handOverLast0(ByteBuf part, MessageConnection open) {
        open.send(part, onSent, null);
        handedOver++;
    }

    /** Goes on with what is in the outbound buffer. */
    final void resume0() {
        if (state == State.ACTIVE) {
            ((RdmaUnsafe) unsafe()).flushAgain0();
        }
    }

    private void onSent0(@Nullable Object context, @Nullable Throwable cause) {
        if (handingOver && cause != null) {
            refusals.add(cause); // told from within send: the outbound buffer is being walked through
            return;
        }
        handedOver--;
        ChannelOutboundBuffer outbound = unsafe().outboundBuffer();
        if (outbound == null) {
            return; // closed: all promises have failed
        }
        while (isCancelled(outbound.current())) {
            outbound.remove();
        }
        if (cause == null) {
            outbound.remove();
        } else {
            outbound.remove(forHandlers0(cause));
        }
    }

    /** A cause as this kind of channel tells its handlers. */
    Throwable forHandlers0(Throwable cause) {
        return translate0(cause);
    }

    /** Why connecting failed, as this kind of channel tells it. */
    Throwable forConnect0(Throwable cause) {
        return cause;
    }

    /** The peer has closed its half, and all that it sent has been read. */
    void onEnd0() {
        throw new IllegalStateException("messages have no end");
    }

    /** The peer has closed in good order; the channel is about to close. */
    void onPeerClosed0() {}

    /** Whether what comes is to be thrown away. */
    boolean discardsInbound0() {
        return false;
    }

    /** The connection, once connected and until it is over. */
    final @Nullable MessageConnection connection0() {
        return over ? null : connection;
    }

    /** Tells that what came was read, if anything did. */
    final void endReads0() {
        if (inBatch) {
            endBatch0();
        }
    }

    final boolean isReadPending0() {
        return readPending;
    }

    @SuppressWarnings("ReferenceEquality") // this very buffer, not one that is as empty
    private static boolean isCancelled(@Nullable Object message) {
        return message == Unpooled.EMPTY_BUFFER;
    }

    private void accept0(IncomingConnection request) {
        assert eventLoop().inEventLoop();
        incomingDecided = true;
        try {
            RdmaServerChannel server = parent();
            RdmaProvider provider = RdmaEventLoopGroup.providerOf(eventLoop());
            RdmaProvider listening = server == null ? null : RdmaEventLoopGroup.providerOf(server.eventLoop());
            if (provider == null || !provider.equals(listening)) {
                throw new IllegalStateException("the server's groups have different providers: "
                        + (listening == null ? null : listening.name()) + " and "
                        + (provider == null ? null : provider.name()));
            }
            MessageOptions options = config.messageOptions();
            byte[] rejection = MessageConnection.rejection(options, request.privateData());
            if (rejection != null) {
                LOG.info(
                        "{}: rejected {}: {}",
                        request.localAddress(),
                        request.remoteAddress(),
                        MessageConnection.rejectionReason(rejection));
                request.reject(rejection);
                unsafe().close(unsafe().voidPromise());
                return;
            }
            start0(provider, MessageConnection.Role.ACCEPTOR, options);
            MessageConnection started = connection;
            if (started != null) {
                endpoint = request.accept(
                        (IoEventLoop) eventLoop(),
                        config.endpointOptions(provider, null, MessageConnection.privateData(options)),
                        started);
            }
        } catch (RuntimeException cause) {
            LOG.warn("{}: cannot accept {}", request.localAddress(), request.remoteAddress(), cause);
            over = endpoint == null;
            try {
                request.reject(DROPPED);
            } catch (IllegalStateException decided) {
                LOG.debug("the request of {} had been decided", request.remoteAddress(), decided);
            }
            unsafe().close(unsafe().voidPromise());
        }
    }

    private void closeWithLoop0() {
        unsafe().close(unsafe().voidPromise());
    }

    private void start0(RdmaProvider provider, MessageConnection.Role role, MessageOptions options) {
        MessageConnection made = new MessageConnection(role, options, ChannelBuffers.SOURCE, listener);
        made.setFrameListener(frameListener);
        connection = made;
        ProviderAccount accountant = ProviderAccount.of(provider);
        accountant.began(made);
        account = accountant;
        started = true;
        reading = true;
        state = State.CONNECTING;
    }

    /** The time that the connection has asked for. */
    private void tick0() {
        timer = null;
        MessageConnection open = connection;
        if (!over && open != null) {
            open.onDeadline(System.nanoTime());
        }
    }

    /** Memory that the connection waited for may be there. */
    private void useMemory0() {
        MessageConnection open = connection;
        if (!over && open != null) {
            open.resume();
        }
    }

    /** The connection's figures are final. Idempotent. */
    private void settle0(boolean lost) {
        ProviderAccount accountant = account;
        MessageConnection ended = connection;
        if (accountant != null && ended != null) {
            accountant.ended(ended, lost);
        }
    }

    private void deliver0() {
        MessageConnection open = connection;
        if (open != null && !over && reading) {
            open.deliverPending();
        }
    }

    private void stopReading0() {
        readPending = false;
        pause0();
    }

    private void pause0() {
        MessageConnection open = connection;
        if (reading && open != null && isActive() && !discardsInbound0()) {
            reading = false;
            open.setReading(false);
        }
    }

    private void endBatch0() {
        inBatch = false;
        messagesInBatch = 0;
        pipeline().fireChannelReadComplete(); // with auto-read on, this reads again
        if (!readPending && !config.isAutoRead()) {
            pause0();
        }
    }

    private static void cancel(@Nullable Future<?> scheduled) {
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }

    private static ClosedChannelException closedBy(@Nullable Throwable cause) {
        ClosedChannelException closed = new ClosedChannelException();
        if (cause != null) {
            closed.initCause(cause);
        }
        return closed;
    }

    /** What a rejection says, in words, where the peer is one of ours. */
    private Throwable explain0(Throwable cause) {
        if (cause instanceof ConnectionException.Rejected rejected) {
            String reason = MessageConnection.rejectionReason(rejected.privateData());
            if (reason != null) {
                ConnectionException.Rejected explained =
                        new ConnectionException.Rejected(rejected.getMessage() + ": " + reason, rejected.privateData());
                explained.initCause(rejected);
                return explained;
            }
        }
        return translate0(cause);
    }

    private final class RdmaUnsafe extends AbstractUnsafe {

        @Override
        public void connect(SocketAddress remoteAddress, @Nullable SocketAddress localAddress, ChannelPromise promise) {
            assert eventLoop().inEventLoop();
            if (promise.isDone() || !ensureOpen(promise)) {
                return;
            }
            // The connection that there is, or comes up, is none of this attempt's business.
            if (connectPromise != null) {
                promise.tryFailure(new ConnectionPendingException());
                return;
            }
            if (started) {
                promise.tryFailure(new AlreadyConnectedException());
                return;
            }
            try {
                InetSocketAddress to = resolved(remoteAddress, "connect to ");
                InetSocketAddress from =
                        localAddress == null ? requestedLocal : resolved(localAddress, "connect from ");
                MessageOptions options = config.messageOptions();
                RdmaProvider provider = RdmaEventLoopGroup.providerOf(eventLoop());
                if (provider == null) {
                    throw new IllegalStateException("the channel's event loop is not of an RdmaEventLoopGroup");
                }
                remote = to;
                connectPromise = promise;
                start0(provider, MessageConnection.Role.INITIATOR, options);
                MessageConnection attempt = connection;
                if (attempt != null) {
                    endpoint = provider.connect(
                            (IoEventLoop) eventLoop(),
                            to,
                            config.endpointOptions(provider, from, MessageConnection.privateData(options)),
                            attempt);
                }
                scheduleConnectTimeout0(to);
                promise.addListener((ChannelFuture done) -> {
                    if (done.isCancelled() && done.equals(connectPromise)) {
                        connectPromise = null;
                        close(voidPromise());
                    }
                });
            } catch (Exception cause) {
                boolean attempted = started;
                connectPromise = null;
                promise.tryFailure(forConnect0(cause));
                if (attempted) {
                    over = endpoint == null;
                    close(voidPromise());
                }
            }
        }

        private InetSocketAddress resolved(SocketAddress address, String purpose) {
            if (!(address instanceof InetSocketAddress internet)) {
                throw new IllegalArgumentException(purpose + address + ": not an internet address");
            }
            if (internet.isUnresolved()) {
                throw new ConnectionException.Unreachable(purpose + internet + ": the name cannot be resolved");
            }
            return internet;
        }

        /** The provider's own timeout says more; this one holds if the handshake after it is what takes so long. */
        private void scheduleConnectTimeout0(InetSocketAddress to) {
            int millis = config.getConnectTimeoutMillis();
            if (millis <= 0) {
                return;
            }
            connectTimeout = eventLoop()
                    .schedule(
                            () -> {
                                ChannelPromise pending = connectPromise;
                                if (pending != null) {
                                    MessageConnection attempt = connection;
                                    String step = attempt == null || attempt.endpoint() == null
                                            ? "no answer from the device"
                                            : "the peer has not finished the handshake";
                                    connectPromise = null;
                                    ConnectionException timedOut = new ConnectionException.TimedOut(
                                            "connect to " + to + ": timed out after " + millis + " ms: " + step);
                                    pending.tryFailure(forConnect0(timedOut));
                                    if (attempt != null) {
                                        attempt.abort(timedOut);
                                    }
                                    close(voidPromise());
                                }
                            },
                            millis + TIMEOUT_GRACE_MILLIS,
                            TimeUnit.MILLISECONDS);
        }

        @Override
        public void close(ChannelPromise promise) {
            MessageConnection open = connection;
            if (!isActive() || open == null || over) {
                super.close(promise);
                return;
            }
            if (!promise.setUncancellable()) {
                return;
            }
            if (!(promise instanceof io.netty.channel.VoidChannelPromise)) {
                closeFuture().addListener(closed -> promise.trySuccess());
            }
            if (state == State.ACTIVE) {
                ChannelOutboundBuffer outbound = outboundBuffer();
                if (outbound != null) {
                    handOverFlushed0(outbound, open);
                }
                state = State.CLOSING;
                open.close(); // onInactive comes back
            }
        }

        @Override
        public void deregister(ChannelPromise promise) {
            if (started && isOpen()) {
                // The connection lives on this loop: it cannot move to another.
                closeNow(null);
            }
            super.deregister(promise);
        }

        void flushAgain0() {
            flush0();
        }

        void closeNow(@Nullable Throwable cause) {
            ClosedChannelException closed = closedBy(cause);
            super.close(voidPromise(), cause == null ? closed : cause, closed);
        }
    }

    private final class Listener implements MessageListener {
        private RdmaUnsafe rdmaUnsafe() {
            return (RdmaUnsafe) unsafe();
        }

        @Override
        public void onPrepared(MessageConnection from) {
            learn(from);
        }

        private void learn(MessageConnection from) {
            Endpoint prepared = from.endpoint();
            if (prepared != null) {
                local = prepared.localAddress();
                remote = prepared.remoteAddress();
                capabilities = prepared.capabilities();
                memory = prepared.memoryDomain();
                ChannelBuffers buffers = ChannelBuffers.of(prepared.memoryDomain());
                ProviderAccount accountant = account;
                if (accountant != null) {
                    accountant.uses(prepared.memoryDomain());
                }
                buffers.attach(eventLoop());
                config.registeredAllocator(buffers.allocator());
            }
        }

        @Override
        @SuppressWarnings(
                "deprecation") // the addresses may be other than those asked for; the base class remembers those
        public void onActive(MessageConnection from, Negotiated negotiated) {
            if (state != State.CONNECTING) {
                return; // closed meanwhile
            }
            learn(from);
            invalidateLocalAddress();
            invalidateRemoteAddress();
            cancel(connectTimeout);
            state = State.ACTIVE;
            ChannelPromise promise = connectPromise;
            connectPromise = null;
            boolean wanted = promise == null ? incoming != null : promise.trySuccess();
            pipeline().fireChannelActive(); // with auto-read on, this reads
            if (!wanted) {
                unsafe().close(voidPromise());
            } else if (!readPending && !config.isAutoRead()) {
                pause0();
            }
        }

        /** {@code MAX_MESSAGES_PER_READ}, which Netty keeps there. */
        private int messagesPerRead() {
            return config.getRecvByteBufAllocator() instanceof MaxMessagesRecvByteBufAllocator limits
                    ? limits.maxMessagesPerRead()
                    : METADATA.defaultMaxMessagesPerRead();
        }

        @Override
        public void onMessage(MessageConnection from, ByteBuf message) {
            if (state == State.CLOSED || discardsInbound0()) {
                message.release();
                return;
            }
            readPending = false;
            inBatch = true;
            messagesInBatch++;
            pipeline().fireChannelRead(message);
            if (!readPending && !config.isAutoRead() && messagesInBatch >= messagesPerRead()) {
                pause0();
                endBatch0();
            }
        }

        @Override
        public void onEnd(MessageConnection from) {
            if (state != State.CLOSED) {
                onEnd0();
            }
        }

        @Override
        public void onReadComplete(MessageConnection from) {
            if (inBatch && state != State.CLOSED) {
                endBatch0();
            }
        }

        @Override
        public void onImmediate(MessageConnection from, int immediateData, int lengthBytes) {
            if (state != State.CLOSED) {
                readPending = false;
                inBatch = true;
                pipeline().fireUserEventTriggered(new ImmediateDataEvent(immediateData, lengthBytes));
            }
        }

        @Override
        public void onWritabilityChanged(MessageConnection from, boolean writable) {
            ChannelOutboundBuffer outbound = unsafe().outboundBuffer();
            if (outbound == null) {
                return;
            }
            outbound.setUserDefinedWritability(CREDIT_FLAG, writable);
            if (writable && state == State.ACTIVE) {
                rdmaUnsafe().flushAgain0();
            }
        }

        @Override
        public void onDeadline(MessageConnection from, long deadlineNanos) {
            cancel(timer);
            try {
                timer = eventLoop().schedule(tick, deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
            } catch (RejectedExecutionException shuttingDown) {
                LOG.debug("{}: the loop ends, and with it this connection's clock", this, shuttingDown);
            }
        }

        @Override
        public void onResumable(MessageConnection from) {
            try {
                eventLoop().execute(useMemory);
            } catch (RejectedExecutionException shuttingDown) {
                LOG.debug("{}: the loop ends, and this connection with it", this, shuttingDown);
            }
        }

        @Override
        public void onInactive(MessageConnection from, @Nullable Throwable cause) {
            over = true;
            settle0(cause != null);
            cancel(timer);
            cancel(connectTimeout);
            if (state == State.CLOSED) {
                return;
            }
            if (inBatch) {
                endBatch0();
            }
            Throwable first = cause == null ? null : explain0(cause);
            boolean wasActive = isActive();
            ChannelPromise promise = connectPromise;
            connectPromise = null;
            if (promise != null) {
                promise.tryFailure(forConnect0(
                        first != null
                                ? first
                                : new ConnectionException.Lost("connect to " + remote
                                        + ": the peer closed the connection during the handshake")));
            } else if (first != null && wasActive) {
                pipeline().fireExceptionCaught(forHandlers0(first));
            } else if (first != null) {
                LOG.debug("{}: the connection of {} did not come up", local, remote, first);
            }
            if (cause == null && state == State.ACTIVE) {
                onPeerClosed0();
            }
            rdmaUnsafe().closeNow(first == null ? null : forHandlers0(first));
        }
    }
}
