package org.verbena.api.datagram;

import static java.util.Objects.requireNonNull;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelMetadata;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoop;
import io.netty.channel.socket.DatagramChannel;
import io.netty.channel.socket.DatagramChannelConfig;
import io.netty.channel.socket.DatagramPacket;
import io.netty.util.ReferenceCountUtil;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketAddress;
import java.net.SocketException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.util.ArrayDeque;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.internal.channel.DelegatingUnsafe;
import org.verbena.api.internal.datagram.DatagramConnector;
import org.verbena.api.internal.datagram.DatagramCounters;
import org.verbena.api.internal.datagram.DatagramDestinations;
import org.verbena.api.internal.datagram.DatagramGroups;
import org.verbena.api.internal.datagram.DatagramInbound;
import org.verbena.api.internal.datagram.DatagramOutbound;
import org.verbena.api.internal.datagram.DatagramReader;
import org.verbena.api.internal.datagram.Outgoing;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.DatagramArrival;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.transport.spi.DatagramEndpoint;
import org.verbena.transport.spi.DatagramHandler;
import org.verbena.transport.spi.RdmaProvider;

/**
 * A Netty {@link DatagramChannel} over an unreliable-datagram (UD) queue pair, for a {@code Bootstrap} whose group is
 * an {@link RdmaEventLoopGroup} of the provider verbs with a RoCE or InfiniBand device. A datagram has at most {@link
 * #maxDatagramBytes()}, the MTU. As over UDP, it may be lost; it is lost if it arrives while the program holds all
 * receives.
 *
 * <p>A bound channel has a queue pair, and a port of rdma_cm at which peers look it up: {@code udaddy}, for instance.
 * It looks up each recipient when it first writes to it, and again every 30 s while it keeps writing. The first write
 * waits for the look-up, and fails with {@link ConnectionException} if nobody listens there. A queue pair belongs to
 * one device: bind to the device's address. A wildcard address works if only one device has datagrams; {@link #connect}
 * without a bind takes the device on the route to the peer.
 *
 * <p>RDMA's packets name the queue pair that sent them and no port. So the channel delivers an {@link
 * RdmaDatagramPacket} whose sender is an {@link RdmaDatagramAddress}; a write to that address reaches the queue pair
 * without a look-up. Plain datagrams are sent with the number of this channel's queue pair as immediate data, as {@code
 * udaddy} and {@code mckey} do and expect.
 *
 * <p>A write's promise completes when the datagram has left. {@code close} waits at most a second for the sends that
 * the device has taken, and then fails the rest. Operations without a meaning on RDMA fail with {@link
 * UnsupportedOperationException}.
 *
 * <pre>{@code
 *         bind                      opened
 * OPEN ---------> OPENING -----------------------------> ACTIVE --close, or the device is lost--> CLOSED
 *         connect            and, of connect, the peer     |  connect, disconnect: stays ACTIVE
 *                            was found
 * }</pre>
 */
public final class RdmaDatagramChannel extends AbstractDatagramChannel {
    private static final ChannelMetadata METADATA = new ChannelMetadata(true, 16);

    /** A device sends what it has taken within microseconds. */
    private static final long CLOSE_MILLIS = 1_000;

    /** The user-defined writability flag of Netty's outbound buffer that stands for look-ups. */
    private static final int WAITING_FOR_LOOK_UPS = 1;

    private enum State {
        OPEN,
        OPENING,
        ACTIVE,
        CLOSED
    }

    private final RdmaDatagramChannelConfig config = new RdmaDatagramChannelConfig(this);
    private final DatagramCounters counters = new DatagramCounters();
    private final Handler handler = new Handler();
    private final DatagramDestinations destinations = new DatagramDestinations(handler, System::nanoTime);
    private final DatagramConnector connector = new DatagramConnector(handler, destinations);
    private final DatagramGroups groups = new DatagramGroups();
    private final DatagramReader reader = new DatagramReader(this, METADATA.defaultMaxMessagesPerRead());
    private final Runnable closeWithLoop = this::closeWithLoop0;
    private final ArrayDeque<ChannelPromise> closing = new ArrayDeque<>(1);

    // Written by the loop, read by any thread.
    private volatile State state = State.OPEN;
    private volatile @Nullable InetSocketAddress boundAddress;
    private volatile @Nullable InetSocketAddress remoteAddress;
    private volatile @Nullable DatagramPeer self;
    private volatile int maxDatagramBytes;

    // Confined to the event loop.
    private @Nullable DatagramEndpoint endpoint;
    private @Nullable DatagramInbound inbound;
    private @Nullable DatagramOutbound outbound;
    /** The only queue pair whose datagrams are read; null for all. */
    private @Nullable DatagramPeer connectedPeer;

    private boolean isEndpointClosed;

    /** Why the endpoint ended, for the writes that it did not send. */
    private @Nullable Throwable failure;

    /** The end of a close that waits for the endpoint's. */
    private @Nullable Runnable whenClosed;

    /** Made while the base class is being constructed, before the fields above: so it has no initializer. */
    @SuppressWarnings("NullAway.Init")
    private Channel.@Nullable Unsafe datagramUnsafe;

    /** Creates a channel, for a bootstrap. */
    public RdmaDatagramChannel() {}

    // ---- properties

    @Override
    public DatagramChannelConfig config() {
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
        return state == State.ACTIVE;
    }

    @Override
    public boolean isConnected() {
        return isActive() && remoteAddress != null;
    }

    /** The address that peers look up; null before the channel is bound. */
    @Override
    public @Nullable InetSocketAddress localAddress() {
        return boundAddress;
    }

    /** The peer that it is connected to; null if there is none. */
    @Override
    public @Nullable InetSocketAddress remoteAddress() {
        return remoteAddress;
    }

    @Override
    protected @Nullable SocketAddress localAddress0() {
        return boundAddress;
    }

    @Override
    protected @Nullable SocketAddress remoteAddress0() {
        return remoteAddress;
    }

    /**
     * The longest datagram that can be sent: the MTU of the device's port.
     *
     * @return bytes; 0 before the channel is bound
     */
    public int maxDatagramBytes() {
        return maxDatagramBytes;
    }

    /**
     * The channel's queue pair, as peers see it.
     *
     * @return null before the channel is bound
     */
    public @Nullable RdmaDatagramAddress queuePairAddress() {
        DatagramPeer own = self;
        InetSocketAddress bound = boundAddress;
        return own == null || bound == null ? null : new RdmaDatagramAddress(own, bound.getPort());
    }

    /**
     * The counters of this channel.
     *
     * @return a snapshot, weakly consistent
     */
    public DatagramStatistics statistics() {
        return DatagramStatistics.of(counters);
    }

    /**
     * Forgets the look-up of a recipient, so that the next write looks it up again: for a peer that is known to have
     * restarted.
     *
     * @param recipient the address that was written to
     */
    public void forget(InetSocketAddress recipient) {
        run(() -> destinations.forget(recipient), ended -> {});
    }

    @Override
    protected boolean isCompatible(EventLoop loop) {
        return LoopGroup.providerOf(loop) != null;
    }

    @Override
    public Channel.Unsafe unsafe() {
        Channel.Unsafe unsafe = datagramUnsafe;
        if (unsafe == null) {
            unsafe = new DatagramUnsafe(super.unsafe());
            datagramUnsafe = unsafe;
        }
        return unsafe;
    }

    @Override
    protected AbstractUnsafe newUnsafe() {
        return new ClosingUnsafe();
    }

    private void run(Runnable action, Consumer<RejectedExecutionException> whenEnded) {
        if (eventLoop().inEventLoop()) {
            action.run();
            return;
        }
        try {
            eventLoop().execute(action);
        } catch (RejectedExecutionException ended) {
            whenEnded.accept(ended);
        }
    }

    // ---- the loop

    @Override
    protected void doRegister(ChannelPromise promise) {
        ((RdmaEventLoop) eventLoop()).enter0(this, closeWithLoop, promise);
    }

    @Override
    protected void doDeregister() {
        ((RdmaEventLoop) eventLoop()).leave0(this, closeWithLoop);
        if (isOpen()) {
            // The queue pair lives on this loop: it cannot move.
            unsafe().close(unsafe().voidPromise());
        }
    }

    /** Also if it is closing already, and waits for its sends. */
    private void closeWithLoop0() {
        unsafe().close(unsafe().voidPromise());
        finishClosing0(super.unsafe());
    }

    // ---- bind and connect

    /** Never called: {@link DatagramUnsafe} binds. */
    @Override
    protected void doBind(SocketAddress localAddress) {
        throw new UnsupportedOperationException("binding takes time");
    }

    private void activate0(ChannelPromise promise) {
        boolean wasActive = isActive();
        state = State.ACTIVE;
        promise.trySuccess();
        if (!wasActive && isActive()) {
            pipeline().fireChannelActive();
        }
    }

    /** From now on, datagrams of other peers are dropped. */
    private void listenTo0(@Nullable DatagramPeer peer) {
        // A group sends nothing itself: all who are in it may answer.
        connectedPeer = peer == null || peer.queuePairNumber() == DatagramPeer.MULTICAST ? null : peer;
        DatagramInbound receives = inbound;
        if (receives != null) {
            receives.forgetAddresses0();
        }
    }

    private void opened0(DatagramEndpoint open) {
        if (state != State.OPENING) {
            return; // closed in the meantime
        }
        ChannelBuffers pools = ChannelBuffers.of(open.memoryDomain());
        pools.attach(eventLoop());
        MessageBuffers buffers = ChannelBuffers.SOURCE.forDomain(open.memoryDomain());
        DatagramInbound receives = new DatagramInbound(handler, eventLoop(), open, buffers, counters);
        inbound = receives;
        reader.begin0(receives);
        outbound = new DatagramOutbound(open, buffers, counters);
        config.registeredAllocator(pools.allocator());
        boundAddress = open.localAddress();
        self = open.self();
        maxDatagramBytes = open.capabilities().maxDatagramBytes();
        receives.replenish0();
        connector.onOpened0();
    }

    @Override
    protected void doDisconnect() {
        remoteAddress = null;
        listenTo0(null);
    }

    // ---- groups

    @Override
    ChannelFuture join(
            InetAddress group,
            @Nullable NetworkInterface networkInterface,
            @Nullable InetAddress source,
            ChannelPromise promise) {
        return inGroup(
                group,
                networkInterface,
                promise,
                () -> groups.join(requireNonNull(endpoint), group, source, handler.timeoutMillis0(), promise));
    }

    @Override
    ChannelFuture leave(
            InetAddress group,
            @Nullable NetworkInterface networkInterface,
            @Nullable InetAddress source,
            ChannelPromise promise) {
        return inGroup(group, networkInterface, promise, () -> groups.leave(group, source, promise));
    }

    @Override
    ChannelFuture drop(
            InetAddress group,
            @Nullable NetworkInterface networkInterface,
            InetAddress source,
            ChannelPromise promise) {
        return inGroup(group, networkInterface, promise, () -> groups.block(group, source, promise));
    }

    private ChannelFuture inGroup(
            InetAddress group, @Nullable NetworkInterface networkInterface, ChannelPromise promise, Runnable action) {
        run(
                () -> {
                    try {
                        DatagramGroups.requireMulticast(group);
                        requireActive0();
                        DatagramGroups.requireInterface(
                                group,
                                networkInterface,
                                requireNonNull(boundAddress).getAddress());
                    } catch (RuntimeException | SocketException | ClosedChannelException refused) {
                        promise.tryFailure(refused);
                        return;
                    }
                    action.run();
                },
                promise::tryFailure);
        return promise;
    }

    private void requireActive0() throws ClosedChannelException {
        if (state == State.CLOSED || !closing.isEmpty()) {
            throw new ClosedChannelException();
        }
        if (state != State.ACTIVE) {
            throw new NotYetConnectedException();
        }
    }

    // ---- reading

    @Override
    protected void doBeginRead() {
        reader.read0();
    }

    /** Auto-read was switched off. */
    void stopReading() {
        if (isRegistered()) {
            run(reader::stop0, ended -> {});
        }
    }

    // ---- writing

    private void write0(Channel.Unsafe netty, Object message, ChannelPromise promise) {
        assert eventLoop().inEventLoop();
        Outgoing outgoing;
        DatagramDestinations.Entry recipient;
        try {
            requireActive0();
            ByteBuf content = Outgoing.contentOf(message, maxDatagramBytes);
            recipient = destinations.find(Outgoing.recipientOf(message, remoteAddress));
            outgoing = message instanceof RdmaDatagramPacket own
                    ? new Outgoing(content, recipient, own.hasImmediateData(), own.immediateData())
                    : new Outgoing(
                            content, recipient, true, requireNonNull(self).queuePairNumber());
            if (recipient.ready() == null) {
                destinations.await(recipient, outgoing, promise);
                return;
            }
        } catch (RuntimeException | ClosedChannelException refused) {
            counters.add(DatagramCounters.FAILED, 1);
            ReferenceCountUtil.release(message);
            promise.tryFailure(refused);
            return;
        }
        netty.write(outgoing.use(), promise);
    }

    /** Only what {@link #write0} has made comes here. */
    @Override
    protected Object filterOutboundMessage(Object message) {
        if (message instanceof Outgoing) {
            return message;
        }
        throw new UnsupportedOperationException(
                "a datagram channel does not write a " + message.getClass().getName());
    }

    @Override
    protected void doWrite(ChannelOutboundBuffer flushed) {
        DatagramOutbound sends = outbound;
        if (sends != null) {
            sends.handOverFlushed(flushed);
        }
    }

    // ---- the end

    private void close0(Channel.Unsafe netty, ChannelPromise promise) {
        assert eventLoop().inEventLoop();
        DatagramOutbound sends = outbound;
        if (state == State.CLOSED || sends == null || sends.isIdle() || isEndpointClosed) {
            netty.close(promise);
            return;
        }
        if (!promise.setUncancellable()) {
            return;
        }
        closing.add(promise);
        if (closing.size() == 1) {
            destinations.close(new ClosedChannelException());
            try {
                eventLoop().schedule(() -> finishClosing0(netty), CLOSE_MILLIS, TimeUnit.MILLISECONDS);
            } catch (Throwable refused) { // no later close would wait for a time either
                pipeline().fireExceptionCaught(refused);
                finishClosing0(netty);
            }
        }
    }

    private void finishClosing0(Channel.Unsafe netty) {
        ChannelPromise promise;
        while ((promise = closing.poll()) != null) {
            netty.close(promise);
        }
    }

    @Override
    protected void doClose() {
        if (state != State.CLOSED) {
            end0();
        }
    }

    private void end0() {
        state = State.CLOSED;
        Throwable cause = failure == null ? new ClosedChannelException() : failure;
        DatagramOutbound sends = outbound;
        if (sends != null) {
            sends.stop();
        }
        destinations.close(cause);
        groups.close(cause);
        connector.fail0(cause);
        DatagramEndpoint open = endpoint;
        if (open != null) {
            open.close();
        }
    }

    private final class DatagramUnsafe extends DelegatingUnsafe {
        private final Channel.Unsafe netty;

        DatagramUnsafe(Channel.Unsafe netty) {
            super(netty);
            this.netty = netty;
        }

        @Override
        public void bind(SocketAddress local, ChannelPromise promise) {
            assert eventLoop().inEventLoop();
            connector.bind0(local, promise);
        }

        @Override
        public void connect(SocketAddress remote, @Nullable SocketAddress local, ChannelPromise promise) {
            assert eventLoop().inEventLoop();
            connector.connect0(remote, local, promise);
        }

        @Override
        public void write(Object message, ChannelPromise promise) {
            write0(netty, message, promise);
        }

        @Override
        public void flush() {
            destinations.flush();
            netty.flush();
        }

        @Override
        public void close(ChannelPromise promise) {
            close0(netty, promise);
        }
    }

    /** Completes close() when the endpoint is closed: then the port is free. */
    private final class ClosingUnsafe extends AbstractUnsafe {
        @Override
        public void connect(SocketAddress remote, SocketAddress local, ChannelPromise promise) {
            assert eventLoop().inEventLoop();
            connector.connect0(remote, local, promise);
        }

        @Override
        protected @Nullable Executor prepareToClose() {
            // A loop that ends may take no task after the endpoint's end.
            if (endpoint == null || isEndpointClosed || eventLoop().isShuttingDown()) {
                return null;
            }
            return rest -> {
                whenClosed = rest;
                end0();
            };
        }
    }

    private final class Handler
            implements DatagramHandler, DatagramConnector.Host, DatagramDestinations.Host, DatagramInbound.Host {

        // ---- the endpoint's events

        @Override
        public void onOpened(DatagramEndpoint open) {
            opened0(open);
        }

        @Override
        public void onResolved(DatagramEndpoint from, DatagramDestination destination, @Nullable Throwable cause) {
            DatagramInbound receives = inbound;
            if (receives != null) {
                receives.forgetAddresses0();
            }
            if (connector.onResolved0(destination, cause)) {
                return;
            }
            if (destinations.onResolved(destination, cause)) {
                InetSocketAddress connected = remoteAddress;
                DatagramPeer peer = connected == null ? null : destinations.peerOf(connected);
                if (peer != null) {
                    listenTo0(peer); // it may be another one if the peer has restarted
                }
            } else if (!groups.onOutcome(destination, cause)) {
                destination.close();
            }
        }

        @Override
        public void onGroupLost(DatagramEndpoint from, DatagramDestination destination, Throwable cause) {
            if (groups.onOutcome(destination, cause)) {
                pipeline().fireExceptionCaught(cause);
            } else {
                destinations.onLost(destination);
            }
        }

        @Override
        public void onSendCompletion(DatagramEndpoint from, long workId, WorkStatus status) {
            DatagramOutbound sends = outbound;
            if (sends != null) {
                sends.onSent(status, unsafe().outboundBuffer());
            }
        }

        @Override
        public void onReceiveCompletion(
                DatagramEndpoint from, long workId, WorkStatus status, DatagramArrival arrival) {
            DatagramInbound receives = inbound;
            if (receives == null) {
                return;
            }
            if (status == WorkStatus.SUCCESS) {
                receives.onArrival0(arrival);
            } else {
                receives.onFlushed0();
            }
        }

        @Override
        public void onCompletionsHandled(DatagramEndpoint from) {
            DatagramInbound receives = inbound;
            if (receives != null && isOpen()) {
                reader.deliver0();
                receives.replenish0();
            }
            ChannelOutboundBuffer flushed = unsafe().outboundBuffer();
            DatagramOutbound sends = outbound;
            if (flushed != null && sends != null) {
                sends.handOverFlushed(flushed);
                if (sends.isIdle() && !closing.isEmpty() && datagramUnsafe instanceof DatagramUnsafe own) {
                    finishClosing0(own.netty);
                }
            }
        }

        @Override
        public void onClosed(DatagramEndpoint from, @Nullable Throwable cause) {
            isEndpointClosed = true;
            DatagramInbound receives = inbound;
            if (receives != null) {
                receives.close0();
            }
            Runnable rest = whenClosed;
            whenClosed = null;
            if (rest != null) {
                rest.run();
                return;
            }
            if (state == State.CLOSED) {
                return;
            }
            failure = cause;
            DatagramOutbound sends = outbound;
            ChannelOutboundBuffer flushed = unsafe().outboundBuffer();
            if (sends != null && flushed != null && cause != null) {
                sends.failRest(flushed, cause);
            }
            if (cause != null && !connector.fail0(cause)) {
                pipeline().fireExceptionCaught(cause);
            }
            unsafe().close(unsafe().voidPromise());
        }

        // ---- the parts' view of the channel

        @Override
        public boolean isOpen() {
            return RdmaDatagramChannel.this.isOpen();
        }

        @Override
        public boolean isActive() {
            return RdmaDatagramChannel.this.isActive();
        }

        @Override
        public boolean isConnected() {
            return RdmaDatagramChannel.this.isConnected();
        }

        @Override
        public void open0(InetSocketAddress local, @Nullable InetSocketAddress toward) {
            RdmaProvider provider = requireNonNull(LoopGroup.providerOf(eventLoop()));
            endpoint = provider.openDatagrams((IoEventLoop) eventLoop(), local, toward, config.datagramOptions(), this);
            state = State.OPENING;
        }

        @Override
        public void onConnected0(InetSocketAddress address, DatagramDestination found) {
            remoteAddress = address;
            listenTo0(found.peer());
        }

        @Override
        public void activate0(ChannelPromise promise) {
            RdmaDatagramChannel.this.activate0(promise);
        }

        @Override
        public void close0() {
            unsafe().close(unsafe().voidPromise());
        }

        @Override
        public DatagramEndpoint endpoint0() {
            return requireNonNull(endpoint);
        }

        @Override
        public int timeoutMillis0() {
            int millis = config.getConnectTimeoutMillis();
            return millis > 0 ? millis : Integer.MAX_VALUE;
        }

        @Override
        public void writeReady0(Outgoing outgoing, ChannelPromise promise, boolean isFlushed) {
            if (datagramUnsafe instanceof DatagramUnsafe own) {
                own.netty.write(outgoing.use(), promise);
                if (isFlushed) {
                    own.netty.flush(); // writes that are not flushed yet go too, which does no harm
                }
            }
        }

        @Override
        public void onWaiting0(long bytes) {
            ChannelOutboundBuffer buffer = unsafe().outboundBuffer();
            if (buffer != null) {
                buffer.setUserDefinedWritability(WAITING_FOR_LOOK_UPS, bytes <= config.getWriteBufferHighWaterMark());
            }
        }

        @Override
        public boolean accepts0(DatagramPeer sender, long destinationHigh, long destinationLow) {
            DatagramPeer only = connectedPeer;
            return (only == null || only.isSameQueuePair(sender))
                    && groups.accepts(sender, destinationHigh, destinationLow);
        }

        @Override
        public @Nullable DatagramPeer named0(InetSocketAddress address) {
            return address instanceof RdmaDatagramAddress known ? known.peer() : null;
        }

        @Override
        public InetSocketAddress addressOf0(DatagramPeer sender) {
            InetSocketAddress connected = remoteAddress;
            if (connectedPeer != null && connected != null) {
                return new RdmaDatagramAddress(sender, connected.getPort());
            }
            int port = destinations.portOf(sender);
            return new RdmaDatagramAddress(port == 0 ? sender : DatagramDestinations.sourceOf(sender), port);
        }

        @Override
        public DatagramPacket packet0(
                ByteBuf content, InetSocketAddress sender, boolean hasImmediateData, int immediateData) {
            return new RdmaDatagramPacket(content, boundAddress, sender, hasImmediateData, immediateData);
        }
    }
}
