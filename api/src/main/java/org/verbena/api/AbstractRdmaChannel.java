package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.AbstractChannel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelMetadata;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoop;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.channel.CauseMemo;
import org.verbena.api.internal.channel.ChannelConnection;
import org.verbena.api.internal.channel.Connector;
import org.verbena.api.internal.channel.DeferredMessage;
import org.verbena.api.internal.channel.InboundBridge;
import org.verbena.api.internal.channel.OneSidedOperations;
import org.verbena.api.internal.channel.OutboundBridge;
import org.verbena.api.internal.channel.Rejection;
import org.verbena.api.internal.loop.AcceptedUnsafe;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.internal.server.Acceptance;
import org.verbena.api.internal.server.Arrival;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.RdmaProvider;

/**
 * What all channels over one RDMA connection have in common: connecting and closing, writability and back-pressure, and
 * one-sided operations on the peer's memory ({@link RemoteMemoryOperations}). {@link RdmaChannel} carries messages,
 * {@link RdmaSocketChannel} bytes as a socket does.
 *
 * <p><b>Closing</b> sends what was flushed, files of any length included, notifies the peer, and disconnects. It gives
 * up if the peer accepts nothing for {@link RdmaChannelOption#CLOSE_TIMEOUT_MILLIS}. If the connection is lost,
 * everything pending fails with the first cause, {@code exceptionCaught} gets it, and the channel closes. A channel
 * stays on one event loop: {@link #deregister()} closes a connected channel.
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

    /** As much of a name as a row of verbena stat has room for. */
    private static final int MAX_LABEL = 60;

    private final RdmaChannelConfig<?> config;
    private final ChannelHost host = new ChannelHost(this);
    private final ChannelConnection connection = new ChannelConnection(host);
    private final Connector connector;
    private final OneSidedOperations operations = new OneSidedOperations(host);
    private final OutboundBridge outboundBridge = new OutboundBridge(host);
    private final InboundBridge inboundBridge = new InboundBridge(host, METADATA.defaultMaxMessagesPerRead());
    private final Runnable closeWithLoop = this::closeWithLoop0;
    private @Nullable Acceptance incoming;

    private volatile @Nullable String label;

    /** Written by the loop, read by any thread. */
    private volatile State state = State.OPEN;

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
        connector = new Connector(host, config, connection);
        incoming = arrival == null ? null : new Acceptance(arrival);
        if (arrival != null) {
            connection.local(arrival.request().localAddress());
            connection.remote(arrival.request().remoteAddress());
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
        return connection.local();
    }

    @Override
    protected @Nullable SocketAddress remoteAddress0() {
        return connection.remote();
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
        return connection.memory();
    }

    /**
     * Returns the domain in which memory is registered for several peers: <b>anyone who has the token of such a region
     * can use it</b>, over any channel of the device, until the region is closed. All channels of a device share the
     * domain, so a region is registered once for each device. For the clients of one server, a {@link ServerMemory}
     * does that, and keeps other peers out.
     *
     * @return the domain of the device
     * @throws NotYetConnectedException before the channel is active
     */
    public MemoryDomain sharedMemory() {
        return connection.sharedMemory();
    }

    /**
     * Returns what the connection can do.
     *
     * @return its limits and features
     * @throws NotYetConnectedException before the channel is active
     */
    public EndpointCapabilities capabilities() {
        return connection.capabilities();
    }

    /**
     * Returns the counters and current figures of this channel: messages, bytes, credits, stalls. May be called on any
     * thread, also after the channel has closed. {@link RdmaEventLoopGroup#providerStatistics()} sums up all channels.
     *
     * @return a snapshot, weakly consistent: values may lag slightly, and not all by the same amount; all 0 before it
     *     connects
     */
    public MessageStatistics statistics() {
        return connection.statistics();
    }

    /**
     * Names the peer, as a program knows it: the log and {@code verbena stat} show the name beside the address. A
     * server may take it from the metadata of the first request. Any thread, at any time.
     *
     * @param name in place of an earlier one; characters that are not printable are replaced, and of more than 60 the
     *     first are used
     */
    public void label(String name) {
        String shown = ShortForm.printable(name);
        String now = shown.substring(0, Math.min(shown.length(), MAX_LABEL));
        label = now;
        ConnectionStat stat = connection.stat();
        if (stat != null) {
            stat.label(now);
        }
    }

    /**
     * Returns how the program has named the peer.
     *
     * @return null if it has not
     */
    public @Nullable String label() {
        return label;
    }

    /** As {@link AbstractChannel#toString}, with the {@link #label() label}. */
    @Override
    public String toString() {
        String name = label;
        return name == null ? super.toString() : super.toString() + " (" + name + ")";
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

    /** The channel as its parts see it. */
    final ChannelHost host() {
        return host;
    }

    /** Its connection. */
    final ChannelConnection connection() {
        return connection;
    }

    /** The options. */
    final RdmaChannelConfig<?> options() {
        return config;
    }

    /** Whether the options have been read. Any thread. */
    final boolean hasStarted() {
        return connection.hasBegun();
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
            promise.setSuccess(); // a failed one is logged by the bootstrap, with its stack, for each late client
            unsafe().close(unsafe().voidPromise());
            return;
        }
        boolean taken = loop.enter0(this, closeWithLoop, promise);
        Acceptance request = incoming;
        if (taken && request != null && !connection.hasBegun() && isOpen()) {
            accept0(request);
        }
    }

    @Override
    protected void doDeregister() {
        ((RdmaEventLoop) eventLoop()).leave0(this, closeWithLoop);
    }

    @Override
    protected void doBind(SocketAddress localAddress) throws Exception {
        connector.bind0(localAddress);
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
        connector.fail0(new ClosedChannelException());
        connection.close0();
        if (incoming != null) {
            incoming.drop();
        }
        connector.unbind0();
    }

    @Override
    protected void doBeginRead() {
        inboundBridge.read();
        MessageConnection open = connection.open0();
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
        if (message instanceof DeferredMessage) {
            return message;
        }
        if (!(message instanceof ByteBuf buffer)) {
            throw new UnsupportedOperationException("an " + getClass().getSimpleName() + " writes ByteBuf; "
                    + message.getClass().getName() + " needs an encoder in the pipeline");
        }
        if (!buffer.isReadable()) {
            buffer.release();
            return OutboundBridge.EMPTY_MESSAGE;
        }
        return buffer;
    }

    @Override
    protected void doWrite(ChannelOutboundBuffer outbound) throws Exception {
        MessageConnection open = connection.open0();
        if (open == null) {
            throw new ClosedChannelException();
        }
        connection.sending0();
        if (!open.isWritable() && open.queuedBytes() > 0 && !open.isClaimRefused()) {
            return; // onWritabilityChanged comes back here; with nothing under way, the connection may have a refusal
            // to report. A claim waits for memory that what is written here may hold.
        }
        if (outboundBridge.gathers(open) && !flushesAtOnce0() && ((RdmaUnsafe) unsafe()).flushesSoon()) {
            return;
        }
        outboundBridge.handOverFlushed(outbound, open);
        if (flushesAtOnce0()) {
            open.flushNow();
        } else {
            open.flush();
        }
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

    private void accept0(Acceptance request) {
        assert eventLoop().inEventLoop();
        RdmaServerChannel server = parent();
        try {
            Endpoint accepted = request.accept(
                    (IoEventLoop) eventLoop(),
                    server == null ? null : server.reception(),
                    config,
                    data -> pipeline().fireUserEventTriggered(new PrivateDataEvent(data)),
                    (provider, options) -> begin0(provider, Role.ACCEPTOR, options));
            if (accepted == null) {
                unsafe().close(unsafe().voidPromise());
            } else {
                connection.uses0(accepted);
            }
        } catch (RuntimeException cause) {
            connection.giveUp0();
            request.fail(cause);
            unsafe().close(unsafe().voidPromise());
        }
    }

    /** Begins the connection: the channel is connecting from now on. */
    final MessageConnection begin0(RdmaProvider provider, Role role, MessageOptions options) {
        MessageConnection made =
                connection.begin0(eventLoop(), provider, role, options, config.announced(), config.preSharedKeys());
        if (incoming == null) {
            attr(Carrier.ATTRIBUTE).set(new Carrier(provider.name(), LoopGroup.reasonOf(eventLoop())));
        }
        state = State.CONNECTING;
        return made;
    }

    /** Whether a flush sends before it returns. Else it may wait for queued tasks, and the end of a callback. */
    boolean flushesAtOnce0() {
        return false;
    }

    /** The connection, for an operation that goes out after everything flushed so far. */
    final MessageConnection connectionForOperation0() throws ClosedChannelException {
        assert eventLoop().inEventLoop();
        MessageConnection open = connection.begun();
        if (state == State.OPEN || state == State.CONNECTING) {
            throw new NotYetConnectedException();
        }
        if (state != State.ACTIVE || open == null) {
            throw new ClosedChannelException();
        }
        connection.sending0();
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
    final void abortForPromises0(Throwable cause) {
        localFailure = cause;
    }

    // ---- events of the connection

    /** The device is known, and so is its memory. */
    final void onPrepared0(ChannelBuffers buffers) {
        buffers.attach(eventLoop());
        config.registeredAllocator(buffers.allocator());
    }

    /** Both ends have agreed. */
    @SuppressWarnings("deprecation") // the base class remembers the addresses that were asked for
    final void onActive0(MessageConnection active) {
        if (state != State.CONNECTING) {
            return; // closed in the meantime
        }
        Acceptance accepted = incoming;
        if (accepted != null) {
            accepted.handshakeEnded();
            incoming = null; // it holds what the provider knew of the request
        }
        invalidateLocalAddress();
        invalidateRemoteAddress();
        state = State.ACTIVE;
        boolean wanted = accepted != null || connector.succeed0();
        if (wanted && accepted == null && config.framing() == Framing.RAW) {
            pipeline().fireUserEventTriggered(new PrivateDataEvent(active.peerPrivateData()));
        }
        pipeline().fireChannelActive(); // with auto-read on, this reads
        if (!wanted) {
            unsafe().close(voidPromise());
        } else if (inboundBridge.isReadPending() && connection.open0() != null) {
            inboundBridge.resume(active); // reads that were requested before the connection was active
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
        if (!writable && (state != State.ACTIVE || from.queuedBytes() == 0)) {
            return; // nothing waits for credits: the connection is ending, and channelInactive reports that to handlers
        }
        outboundBridge.onCredits(writable);
    }

    /** The connection has ended. */
    final void onInactive0(@Nullable Throwable cause) {
        outboundBridge.abandon();
        if (state == State.CLOSED) {
            return;
        }
        inboundBridge.endBatch();
        Throwable first = cause == null ? null : explain0(cause);
        if (connector.isPending()) {
            connector.fail0(forConnect0(
                    first != null
                            ? first
                            : new ConnectionException.Lost("connect to " + connection.remote()
                                    + ": the peer closed the connection during the handshake")));
        } else if (first != null && !isActive()) {
            RdmaServerChannel server = parent();
            if (server != null) {
                // Anyone who reaches the port can cause these lines, so their number is limited.
                String what =
                        connection.local() + ": the connection of " + connection.remote() + " was not established";
                LOG.debug("{}", what, first);
                server.reception().strangers().warn(what + ": " + first.getMessage());
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

    static ClosedChannelException closedBy(@Nullable Throwable cause) {
        ClosedChannelException closed = new ClosedChannelException();
        if (cause != null) {
            closed.initCause(cause);
        }
        return closed;
    }

    /** Why a connection was not established or ended, as an exception of this API. */
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
        private final Runnable flushGathered = this::flushGathered;
        private boolean flushesSoon;
        private boolean flushesGathered;

        @Override
        public @Nullable RdmaProvider acceptedFrom() {
            return AbstractRdmaChannel.this.acceptedFrom();
        }

        /** If an earlier write fails within this call, what its listener writes and flushes is sent as well. */
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
            if (!promise.isDone() && ensureOpen(promise)) {
                connector.connect0(remoteAddress, localAddress, promise);
            }
        }

        @Override
        public void close(ChannelPromise promise) {
            MessageConnection open = connection.open0();
            int lingerSeconds = config.lingerSeconds();
            if (!isActive() || open == null || lingerSeconds == 0) {
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
                if (lingerSeconds > 0 && !tryLimitLinger0(lingerSeconds)) {
                    closeNow(null);
                    return;
                }
                outboundBridge.end(open, open::close); // onInactive comes back
                if (outboundBridge.isEnding()) {
                    // A peer that waits for this side to read may not accept what is flushed.
                    inboundBridge.resume(open);
                    open.flush();
                    outboundBridge.limitEnding(config.closeTimeoutMillis(), connection.remote());
                }
            }
        }

        private boolean tryLimitLinger0(int seconds) {
            try {
                Future<?> limit = eventLoop().schedule(() -> closeNow(null), seconds, TimeUnit.SECONDS);
                closeFuture().addListener(closed -> limit.cancel(false));
                return true;
            } catch (Throwable refused) { // without a limit its peer could keep it
                pipeline().fireExceptionCaught(refused);
                return false;
            }
        }

        @Override
        public void deregister(ChannelPromise promise) {
            if (connection.hasBegun() && isOpen()) {
                // The connection lives on this loop: it cannot move to another.
                closeNow(null);
            }
            super.deregister(promise);
        }

        void flushAgain0() {
            flush0();
        }

        /** Whether a flush follows behind the tasks that are queued now, once for all until then. */
        boolean flushesSoon() {
            if (!flushesSoon && !flushesGathered) {
                eventLoop().execute(flushGathered);
                flushesSoon = true;
            }
            return flushesSoon;
        }

        private void flushGathered() {
            flushesSoon = false;
            flushesGathered = true;
            try {
                AbstractRdmaChannel.this.flushAgain0();
            } finally {
                flushesGathered = false;
            }
        }

        void closeNow(@Nullable Throwable cause) {
            ClosedChannelException closed = closedBy(cause);
            super.close(voidPromise(), cause == null ? closed : cause, closed);
        }
    }
}
