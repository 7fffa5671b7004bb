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
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.AlreadyConnectedException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ConnectionPendingException;
import java.nio.channels.NotYetConnectedException;
import java.util.Objects;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.channel.CauseMemo;
import org.verbena.api.internal.channel.CheckedExchange;
import org.verbena.api.internal.channel.ConnectAttempt;
import org.verbena.api.internal.channel.ConnectionListener;
import org.verbena.api.internal.channel.InboundBridge;
import org.verbena.api.internal.channel.OneSidedOperations;
import org.verbena.api.internal.channel.OutboundBridge;
import org.verbena.api.internal.channel.Rejection;
import org.verbena.api.internal.loop.AcceptedUnsafe;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.internal.server.Acceptance;
import org.verbena.api.internal.server.Arrival;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.api.internal.stat.ProviderAccount;
import org.verbena.api.queuepair.QueuePairExchangeAddress;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.RdmaProvider;

/**
 * What all channels over one RDMA connection have in common: connecting and closing, writability and back-pressure, and
 * one-sided operations on the peer's memory ({@link RemoteMemoryOperations}). {@link RdmaChannel} carries messages,
 * {@link RdmaSocketChannel} bytes as a socket does.
 *
 * <p><b>Closing</b> sends what was flushed, files of any length included, tells the peer, and disconnects. It gives up
 * if the peer accepts nothing for {@link RdmaChannelOption#CLOSE_TIMEOUT_MILLIS}. If the connection is lost, everything
 * pending fails with the first cause, {@code exceptionCaught} gets it, and the channel closes. A channel stays on one
 * event loop: {@link #deregister()} closes a connected channel.
 *
 * <pre>{@code
 * OPEN --connect, or accepted and registered--> CONNECTING --agreed with the peer--> ACTIVE --close--> CLOSING
 *   |                                               |                                  |                 |
 *   +-----------------------------------------------+---------- failure, peer ---------+-----------------+--> CLOSED
 * }</pre>
 */
public abstract sealed class AbstractRdmaChannel extends AbstractChannel implements RemoteMemoryOperations
        permits RdmaChannel, RdmaSocketChannel {
    private static final Logger LOG = LoggerFactory.getLogger(AbstractRdmaChannel.class);

    /** Like a socket channel's: no separate disconnect, 16 messages between two {@code channelReadComplete}s. */
    private static final ChannelMetadata METADATA = new ChannelMetadata(false, 16);

    /** Which of a {@code ChannelOutboundBuffer}'s flags tells that credits have run out. */
    static final int CREDIT_FLAG = 1;

    /**
     * Stands for a message without bytes. Netty puts {@link Unpooled#EMPTY_BUFFER} in place of a message that was
     * cancelled; with this one instead, the two can be told apart.
     */
    static final ByteBuf EMPTY_MESSAGE = new EmptyByteBuf(UnpooledByteBufAllocator.DEFAULT);

    private final RdmaChannelConfig<?> config;
    private final ChannelHost host = new ChannelHost(this);
    private final ConnectionListener listener = new ConnectionListener(host);
    private final OneSidedOperations operations = new OneSidedOperations(host);
    private final OutboundBridge outboundBridge = new OutboundBridge(host);
    private final InboundBridge inboundBridge = new InboundBridge(host, METADATA.defaultMaxMessagesPerRead());
    private final Runnable closeWithLoop = this::closeWithLoop0;
    private final @Nullable Acceptance incoming;

    // Written by the loop, read by any thread.
    private volatile State state = State.OPEN;
    private volatile boolean started;
    private volatile @Nullable InetSocketAddress local;
    private volatile @Nullable InetSocketAddress remote;
    private volatile @Nullable MemoryDomain memory;
    private volatile @Nullable MemoryDomain sharedMemory;
    private volatile @Nullable EndpointCapabilities capabilities;
    private volatile @Nullable MessageConnection connection;

    // Confined to the event loop.
    private @Nullable LocalBinding binding;
    private @Nullable ProviderAccount account;
    private Frame.@Nullable Listener frameListener;
    private @Nullable Endpoint endpoint;
    private @Nullable ConnectAttempt attempt;
    private boolean over;
    private int announced;

    private final CauseMemo translations = new CauseMemo(RemoteAccessException::translate);

    /** A failure that is reported to promises only, not to the pipeline as well. */
    private @Nullable Throwable localFailure;

    private enum State {
        OPEN,
        CONNECTING,
        ACTIVE,
        CLOSING,
        CLOSED
    }

    /**
     * Creates a channel.
     *
     * @param parent of a channel that was accepted, else null
     * @param arrival the connection request; it is accepted when the channel is registered, with the options it has
     *     then. Null for a channel to connect with
     */
    AbstractRdmaChannel(@Nullable RdmaServerChannel parent, Arrival.@Nullable Rdma arrival) {
        super(parent);
        config = newConfig();
        incoming = arrival == null ? null : new Acceptance(arrival);
        if (arrival != null) {
            local = arrival.request().localAddress();
            remote = arrival.request().remoteAddress();
            attr(Carrier.ATTRIBUTE)
                    .set(new Carrier(arrival.provider().name(), "the listener that its peer connected to"));
        }
    }

    /** Creates the options; called by the constructor. */
    abstract RdmaChannelConfig<?> newConfig();

    // ---- accessors

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
     * Returns the domain in which memory is registered for this channel: for its own reads, writes and atomics, and for
     * those of its peer. Only this channel's peer can use the token of such a region, and nobody once the channel is
     * closed. The region stays registered until it is closed. On devices that cannot bind memory to a connection
     * ({@link EndpointCapabilities#connectionMemory()} is false) this is {@link #sharedMemory()}.
     *
     * @return the domain of this channel
     * @throws NotYetConnectedException before the channel is active
     */
    public MemoryDomain memory() {
        return known(memory);
    }

    /**
     * Returns the domain in which memory is registered for several peers: <b>whoever has the token of such a region can
     * use it</b>, over any channel of the device, until the region is closed. All channels of a device share the
     * domain, so a region is registered once for each device.
     *
     * @return the domain of the device
     * @throws NotYetConnectedException before the channel is active
     */
    public MemoryDomain sharedMemory() {
        return known(sharedMemory);
    }

    private static MemoryDomain known(@Nullable MemoryDomain domain) {
        if (domain == null) {
            throw new NotYetConnectedException();
        }
        return domain;
    }

    /**
     * Returns what the connection can do.
     *
     * @return its limits and features
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
     * Returns the counters and current figures of this channel: messages, bytes, credits, stalls. May be called on any
     * thread, also after the channel has closed. {@link RdmaEventLoopGroup#providerStatistics()} sums up all channels.
     *
     * @return a snapshot, weakly consistent: values may lag slightly, and not all by the same amount; all 0 before it
     *     connects
     */
    public MessageStatistics statistics() {
        MessageConnection begun = connection;
        return begun == null ? MessageStatistics.NONE : begun.statistics();
    }

    // ---- one-sided operations

    @Override
    public Future<Void> read(RemoteMemory from, long offsetBytes, ByteBuf... into) {
        return operations.read(from, offsetBytes, into);
    }

    @Override
    public Future<Void> read(
            RemoteMemory from, long offsetBytes, RegisteredMemory into, long intoOffsetBytes, int lengthBytes) {
        return operations.read(from, offsetBytes, into, intoOffsetBytes, lengthBytes);
    }

    @Override
    public Future<Void> write(RemoteMemory to, long offsetBytes, ByteBuf... from) {
        return operations.write(to, offsetBytes, from);
    }

    @Override
    public Future<Void> write(
            RemoteMemory to, long offsetBytes, RegisteredMemory from, long fromOffsetBytes, int lengthBytes) {
        return operations.write(to, offsetBytes, from, fromOffsetBytes, lengthBytes);
    }

    @Override
    public Future<Void> flushingWrite(RemoteMemory to, long offsetBytes, ByteBuf... from) {
        return operations.flushingWrite(to, offsetBytes, from);
    }

    @Override
    public Future<Void> writeWithImmediate(RemoteMemory to, long offsetBytes, int immediateData, ByteBuf... from) {
        return operations.writeWithImmediate(to, offsetBytes, immediateData, from);
    }

    @Override
    public Future<Long> compareAndSwap(RemoteMemory at, long offsetBytes, long expected, long value) {
        return operations.compareAndSwap(at, offsetBytes, expected, value);
    }

    @Override
    public Future<Long> fetchAndAdd(RemoteMemory at, long offsetBytes, long add) {
        return operations.fetchAndAdd(at, offsetBytes, add);
    }

    // ---- for this package

    /** The provider of the request that this channel is to accept, whose loop it needs; null for one that connects. */
    final @Nullable RdmaProvider acceptedFrom() {
        return incoming == null ? null : incoming.from();
    }

    /** Reports each frame to an observer. Event loop only. */
    final void setFrameListener0(Frame.@Nullable Listener value) {
        frameListener = value;
        MessageConnection begun = connection;
        if (begun != null) {
            begun.setFrameListener(value);
        }
    }

    /** What this end's program tells the peer's in the handshake. Event loop only, before the connection is made. */
    final void announce0(int features) {
        announced = features;
    }

    /** The channel as its parts see it. */
    final ChannelHost host() {
        return host;
    }

    /** The options. */
    final RdmaChannelConfig<?> options() {
        return config;
    }

    /** Whether the peer's program announced this feature. Event loop only, once active. */
    final boolean peerTakes0(int feature) {
        MessageConnection open = connection;
        return open != null && (open.peerAnnounced() & feature) != 0;
    }

    /** When the message began to come that is being read, as far as this end can tell. Event loop only. */
    final long arrivalNanos0() {
        long turnNanos = inboundBridge.turnNanos();
        MessageConnection open = connection;
        return open == null ? turnNanos : open.arrivalNanos(turnNanos);
    }

    /** Whether the options have been read. Any thread. */
    final boolean hasStarted() {
        return started;
    }

    /** What {@code verbena stat} shows of this channel; null if nothing. Any thread. */
    final @Nullable ConnectionStat stat() {
        return listener.stat();
    }

    /** This end's address, as far as it is known. Any thread. */
    final @Nullable InetSocketAddress local0() {
        return local;
    }

    /** The peer's. */
    final @Nullable InetSocketAddress remote0() {
        return remote;
    }

    /** Translates a cause into an exception of this API: the same exception for the same cause. Event loop only. */
    Throwable translate0(Throwable cause) {
        return translations.of(cause);
    }

    /** Auto-read was switched off. Any thread. */
    void stopReading() {
        if (!isRegistered()) {
            return;
        }
        EventLoop loop = eventLoop();
        if (loop.inEventLoop()) {
            inboundBridge.stop();
        } else {
            try {
                loop.execute(() -> inboundBridge.stop());
            } catch (RejectedExecutionException ended) {
                LOG.trace("{} ends with its loop", this, ended);
            }
        }
    }

    // ---- methods that Netty calls

    @Override
    protected AbstractUnsafe newUnsafe() {
        return new RdmaUnsafe();
    }

    @Override
    protected boolean isCompatible(EventLoop loop) {
        return LoopGroup.providerOf(loop) != null;
    }

    @Override
    protected void doRegister(ChannelPromise promise) {
        RdmaEventLoop loop = (RdmaEventLoop) eventLoop();
        if (incoming != null && loop.isEnding()) {
            promise.setSuccess(); // the bootstrap logs what fails, with its stack, for each client that comes meanwhile
            unsafe().close(unsafe().voidPromise());
            return;
        }
        boolean taken = loop.enter0(this, closeWithLoop, promise);
        if (taken && incoming != null && !started && isOpen()) {
            accept0(incoming);
        }
    }

    @Override
    protected void doDeregister() {
        ((RdmaEventLoop) eventLoop()).leave0(this, closeWithLoop);
    }

    @Override
    protected void doBind(SocketAddress localAddress) throws Exception {
        if (started) {
            throw new IllegalStateException(
                    "bind to " + localAddress + ": the channel is connecting already; bind first");
        }
        if (binding != null) {
            throw new IllegalStateException("bind to " + localAddress + ": the channel is bound to " + local);
        }
        try {
            LocalBinding made = provider0().bind(ConnectAttempt.resolved(localAddress, "bind to "));
            binding = made;
            local = made.localAddress();
        } catch (RdmaException cause) {
            throw forBind0(cause);
        }
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
        if (attempt != null) {
            attempt.fail(new ClosedChannelException());
        }
        MessageConnection open = connection;
        if (open != null && !over) {
            open.abort(null);
        }
        Endpoint connected = endpoint;
        if (connected != null && !over) {
            connected.disconnect();
        }
        if (over) {
            settle0(true); // there is no endpoint that could report its end
        }
        if (incoming != null) {
            incoming.drop();
        }
        LocalBinding bound = binding;
        if (bound != null) {
            bound.close();
        }
    }

    @Override
    protected void doBeginRead() {
        inboundBridge.read();
        MessageConnection open = connection0();
        if (open != null && isActive()) {
            inboundBridge.resume(open);
        }
    }

    @Override
    protected Object filterOutboundMessage(Object message) throws Exception {
        if (state == State.CLOSING) {
            throw new ClosedChannelException();
        }
        if (message instanceof RawMessage) {
            if (config.framing() != Framing.RAW) {
                throw new UnsupportedOperationException("a RawMessage is one SEND, which needs framing RAW; this "
                        + getClass().getSimpleName() + " has framing " + config.framing() + ": write its content");
            }
            return message;
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
        listener.active0();
        if (!open.isWritable() && open.queuedBytes() > 0) {
            return; // onWritabilityChanged comes back here; with nothing under way, the connection may have a refusal
            // to tell
        }
        outboundBridge.handOverFlushed(outbound, open);
        send0(open);
    }

    /** Sends what was handed over to the connection: from within a callback, when that returns. */
    void send0(MessageConnection open) {
        open.flush();
    }

    // ---- event loop only

    /** Takes what was written to the connection. */
    final OutboundBridge outboundBridge0() {
        return outboundBridge;
    }

    /** Takes what arrives to the pipeline. */
    final InboundBridge inboundBridge0() {
        return inboundBridge;
    }

    /** Translates a cause into the exception that this kind of channel reports to its handlers. */
    Throwable forHandlers0(Throwable cause) {
        return translate0(cause);
    }

    /** Translates the reason why binding failed into the exception that this kind of channel reports. */
    Exception forBind0(RdmaException cause) {
        return cause;
    }

    /** Translates the reason why connecting failed into the exception that this kind of channel reports. */
    Throwable forConnect0(Throwable cause) {
        return cause;
    }

    /** The peer has closed its half, and all that it sent has been read. */
    void onEnd0() {
        throw new IllegalStateException("messages have no end");
    }

    /** The peer has closed in good order; the channel is about to close. */
    void onPeerClosed0() {}

    /** Whether inbound messages are to be discarded. */
    boolean discardsInbound0() {
        return false;
    }

    /** The connection; null before it is connected and after it has ended. */
    final @Nullable MessageConnection connection0() {
        return over ? null : connection;
    }

    private void accept0(Acceptance request) {
        assert eventLoop().inEventLoop();
        RdmaServerChannel server = parent();
        try {
            endpoint = request.accept(
                    (IoEventLoop) eventLoop(),
                    server == null ? null : server.reception(),
                    host,
                    data -> pipeline().fireUserEventTriggered(new PrivateDataEvent(data)),
                    (provider, options) -> start0(provider, Role.ACCEPTOR, options));
            if (endpoint == null) {
                unsafe().close(unsafe().voidPromise());
            }
        } catch (RuntimeException cause) {
            over = endpoint == null;
            request.fail(cause);
            unsafe().close(unsafe().voidPromise());
        }
    }

    /** The connection, for an operation that goes out after everything flushed so far. */
    final MessageConnection connectionForOperation0() throws ClosedChannelException {
        assert eventLoop().inEventLoop();
        MessageConnection open = connection;
        if (state == State.OPEN || state == State.CONNECTING) {
            throw new NotYetConnectedException();
        }
        if (state != State.ACTIVE || open == null) {
            throw new ClosedChannelException();
        }
        listener.active0();
        ChannelOutboundBuffer outbound = unsafe().outboundBuffer();
        if (outbound != null) {
            outboundBridge.handOverFlushed(outbound, open);
        }
        return open;
    }

    /** Whether inbound messages go to the pipeline. */
    final boolean wantsInbound0() {
        return state == State.ACTIVE && !discardsInbound0();
    }

    /** Writes what is flushed, as {@code flush} does. */
    final void flushAgain0() {
        if (state == State.ACTIVE || state == State.CLOSING) {
            ((RdmaUnsafe) unsafe()).flushAgain0();
        }
    }

    /** Ends the connection for a failure that is reported to promises, not to the pipeline as well. */
    final void tellPromisesAlone0(Throwable cause) {
        localFailure = cause;
    }

    // ---- events of the connection

    /** The endpoint is known; its addresses may differ from the requested ones. */
    final void onPrepared0(Endpoint prepared) {
        local = prepared.localAddress();
        remote = prepared.remoteAddress();
        capabilities = prepared.capabilities();
        memory = prepared.connectionMemory();
        sharedMemory = prepared.memoryDomain();
        ProviderAccount accountant = account;
        if (accountant != null) {
            accountant.uses(prepared.memoryDomain());
        }
        ChannelBuffers buffers = ChannelBuffers.of(prepared.memoryDomain());
        buffers.attach(eventLoop());
        config.registeredAllocator(buffers.allocator());
    }

    /** Both ends have agreed. */
    @SuppressWarnings("deprecation") // the base class remembers the addresses that were asked for
    final void onActive0(MessageConnection active) {
        if (state != State.CONNECTING) {
            return; // closed meanwhile
        }
        if (incoming != null) {
            incoming.handshakeEnded();
        }
        Endpoint prepared = active.endpoint();
        if (prepared != null) {
            onPrepared0(prepared);
        }
        invalidateLocalAddress();
        invalidateRemoteAddress();
        state = State.ACTIVE;
        boolean wanted = attempt == null ? incoming != null : attempt.succeed();
        if (wanted && incoming == null && config.framing() == Framing.RAW) {
            pipeline().fireUserEventTriggered(new PrivateDataEvent(active.peerPrivateData()));
        }
        pipeline().fireChannelActive(); // with auto-read on, this reads
        if (!wanted) {
            unsafe().close(voidPromise());
        } else if (inboundBridge.isReadPending() && connection0() != null) {
            inboundBridge.resume(active); // what was asked for before it was up
        }
    }

    /** The peer has ended its half. */
    final void onPeerEnd0() {
        if (state == State.ACTIVE) {
            onEnd0();
        }
    }

    /** Credits have come back or run out. */
    final void onWritability0(MessageConnection from, boolean writable) {
        ChannelOutboundBuffer outbound = unsafe().outboundBuffer();
        if (outbound == null) {
            return;
        }
        if (!writable && (state != State.ACTIVE || from.queuedBytes() == 0)) {
            return; // nothing waits for credits: the connection is ending, and handlers learn that from channelInactive
        }
        outbound.setUserDefinedWritability(CREDIT_FLAG, writable);
        if (writable) {
            flushAgain0();
        }
    }

    /** The connection has ended. */
    final void onInactive0(@Nullable Throwable cause) {
        over = true;
        outboundBridge.abandon();
        settle0(cause != null);
        if (state == State.CLOSED) {
            return;
        }
        inboundBridge.endBatch();
        Throwable first = cause == null ? null : explain0(cause);
        if (attempt != null && attempt.isPending()) {
            attempt.fail(forConnect0(
                    first != null
                            ? first
                            : new ConnectionException.Lost(
                                    "connect to " + remote + ": the peer closed the connection during the handshake")));
        } else if (first != null && !isActive()) {
            RdmaServerChannel server = parent();
            if (server != null) {
                // Anyone who reaches the port can cause these lines, so their number is limited.
                LOG.debug("{}: the connection of {} did not come up", local, remote, first);
                server.reception()
                        .strangers()
                        .warn(local + ": the connection of " + remote + " did not come up: " + first.getMessage());
            }
        } else if (first != null && !first.equals(localFailure)) {
            pipeline().fireExceptionCaught(forHandlers0(first));
        }
        if (cause == null && state == State.ACTIVE) {
            onPeerClosed0();
        }
        ((RdmaUnsafe) unsafe()).closeNow(first == null ? null : forHandlers0(first));
    }

    /** Also if it is closing already, and waits for its peer. */
    private void closeWithLoop0() {
        ((RdmaUnsafe) unsafe()).closeNow(null);
    }

    private RdmaProvider provider0() {
        RdmaProvider provider = LoopGroup.providerOf(eventLoop());
        if (provider == null) {
            throw new IllegalStateException("the channel's event loop is not of an RdmaEventLoopGroup");
        }
        return provider;
    }

    private MessageConnection start0(RdmaProvider provider, Role role, MessageOptions options) {
        MessageConnection made = new MessageConnection(role, options, ChannelBuffers.SOURCE, listener);
        made.limitTransfers(((RdmaEventLoop) eventLoop())::transferBudget0);
        made.announce(announced);
        made.setFrameListener(frameListener);
        PreSharedKeys keys = config.preSharedKeys();
        if (keys != null) {
            made.authenticate(keys);
        }
        listener.begin(eventLoop(), provider, role, options.framing(), made);
        made.setReading(false); // until the pipeline asks
        connection = made;
        ProviderAccount accountant = ProviderAccount.of(provider);
        accountant.began(made);
        account = accountant;
        if (incoming == null) {
            attr(Carrier.ATTRIBUTE).set(new Carrier(provider.name(), LoopGroup.reasonOf(eventLoop())));
        }
        started = true;
        state = State.CONNECTING;
        return made;
    }

    /** The connection's figures are final. Idempotent. */
    private void settle0(boolean lost) {
        listener.end();
        ProviderAccount accountant = account;
        MessageConnection ended = connection;
        if (accountant != null && ended != null) {
            accountant.ended(ended, lost);
        }
    }

    static ClosedChannelException closedBy(@Nullable Throwable cause) {
        ClosedChannelException closed = new ClosedChannelException();
        if (cause != null) {
            closed.initCause(cause);
        }
        return closed;
    }

    /** Why a connection did not come up or ended, as an exception of this API. */
    private Throwable explain0(Throwable cause) {
        if (cause instanceof ConnectionException.Rejected rejected) {
            return Rejection.explain(rejected, config.framing());
        }
        if (cause instanceof IllegalArgumentException complaint) {
            return RdmaChannelConfig.byOptionName(complaint);
        }
        return translate0(cause);
    }

    private final class RdmaUnsafe extends AbstractUnsafe implements AcceptedUnsafe {
        private boolean inFlush;
        private boolean flushesAgain;

        @Override
        public @Nullable RdmaProvider acceptedFrom() {
            return AbstractRdmaChannel.this.acceptedFrom();
        }

        /** What a listener writes and flushes when an earlier write fails within this call goes out as well. */
        @Override
        protected void flush0() {
            if (inFlush) {
                flushesAgain = true;
                return;
            }
            inFlush = true;
            try {
                do {
                    flushesAgain = false;
                    super.flush0();
                } while (flushesAgain);
            } finally {
                inFlush = false;
            }
        }

        @Override
        public void connect(SocketAddress remoteAddress, @Nullable SocketAddress localAddress, ChannelPromise promise) {
            assert eventLoop().inEventLoop();
            if (promise.isDone() || !ensureOpen(promise)) {
                return;
            }
            // This attempt must not affect the connection that is up or coming up.
            if (attempt != null && attempt.isPending()) {
                promise.tryFailure(new ConnectionPendingException());
                return;
            }
            if (started) {
                promise.tryFailure(new AlreadyConnectedException());
                return;
            }
            ConnectAttempt made = new ConnectAttempt(promise);
            QueuePairExchangeAddress byHand =
                    remoteAddress instanceof QueuePairExchangeAddress exchanged ? exchanged : null;
            QueuePairExchange exchange = byHand == null ? null : byHand.exchange();
            try {
                InetSocketAddress to = byHand == null ? ConnectAttempt.resolved(remoteAddress, "connect to ") : null;
                MessageOptions options = config.messageOptions();
                if (byHand != null && (localAddress != null || binding != null)) {
                    throw new IllegalArgumentException("connect to " + byHand
                            + ": its route has the local end, so do not bind the channel, nor give a local address");
                }
                if (localAddress != null) {
                    doBind(localAddress);
                }
                RdmaProvider provider = provider0();
                remote = to;
                attempt = made;
                MessageConnection connecting =
                        start0(provider, exchange == null ? Role.INITIATOR : CheckedExchange.roleOf(exchange), options);
                byte[] privateData =
                        config.privateData(RdmaChannelOption.CONNECT_PRIVATE_DATA, connecting.privateData());
                EndpointOptions wanted = config.endpointOptions(provider, privateData);
                IoEventLoop loop = (IoEventLoop) eventLoop();
                LocalBinding from = binding;
                if (byHand != null && exchange != null) {
                    endpoint = provider.connectByHand(
                            loop,
                            byHand.route(),
                            CheckedExchange.of(exchange, options, config.preSharedKeys()),
                            wanted,
                            connecting);
                } else if (from == null) {
                    endpoint = provider.connect(loop, Objects.requireNonNull(to), wanted, connecting);
                } else {
                    endpoint = from.connect(loop, Objects.requireNonNull(to), wanted, connecting);
                }
                int millis = config.getConnectTimeoutMillis();
                made.limit(eventLoop(), millis, () -> timedOut0(made, connecting, remoteAddress, millis));
                promise.addListener((ChannelFuture done) -> {
                    if (done.isCancelled() && made.isPending()) {
                        made.forget();
                        close(voidPromise());
                    }
                });
            } catch (Exception cause) {
                // Before the promise, whose listeners may close the channel.
                over = started && endpoint == null;
                made.fail(forConnect0(cause));
                if (started) {
                    close(voidPromise());
                }
                if (exchange != null && endpoint == null) {
                    CheckedExchange.giveUp(exchange);
                }
            }
        }

        private void timedOut0(ConnectAttempt made, MessageConnection connecting, SocketAddress to, int timeoutMillis) {
            String step = connecting.endpoint() == null
                    ? "no answer from the device"
                    : "the peer has not finished the handshake";
            ConnectionException timedOut = new ConnectionException.TimedOut(
                    "connect to " + to + ": timed out after " + timeoutMillis + " ms: " + step);
            made.fail(forConnect0(timedOut));
            connecting.abort(timedOut);
            close(voidPromise());
        }

        @Override
        public void close(ChannelPromise promise) {
            MessageConnection open = connection;
            int lingerSeconds = config.lingerSeconds();
            if (!isActive() || open == null || over || lingerSeconds == 0) {
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
                state = State.CLOSING;
                if (lingerSeconds > 0) {
                    limitLinger0(lingerSeconds);
                }
                outboundBridge.end(open, open::close); // onInactive comes back
                if (outboundBridge.isEnding()) {
                    // A peer that waits for this side to read may not accept what is flushed.
                    inboundBridge.resume(open);
                    open.flush();
                    outboundBridge.limitEnding(config.closeTimeoutMillis(), remote);
                }
            }
        }

        private void limitLinger0(int seconds) {
            Future<?> limit = eventLoop().schedule(() -> closeNow(null), seconds, TimeUnit.SECONDS);
            closeFuture().addListener(closed -> limit.cancel(false));
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
}
