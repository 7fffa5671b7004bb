package org.verbena.api.internal.channel;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import java.net.InetSocketAddress;
import java.nio.channels.NotYetConnectedException;
import java.util.Objects;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.internal.memory.ServerPeers;
import org.verbena.api.internal.memory.ServerRegions;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.api.internal.stat.ProviderAccount;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MessageStatistics;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.protocol.connection.MessageListener;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.RdmaProvider;

/**
 * The one connection of a channel, from its beginning to its end: its addresses, its device, its figures. Forwards its
 * events to the channel, the inbound bridge, or the connection's clock. Event loop only, except where noted.
 */
public final class ChannelConnection implements MessageListener {
    /** The channel, as far as its connection's events concern it. Event loop only. */
    public interface Host {
        boolean isOpen();

        /** The server that accepted the channel, and its other connections; null for one that connects. */
        @Nullable ServerPeers peers();

        /** Delivers inbound messages to the pipeline. */
        InboundBridge inbound0();

        /** The device is known, and so is its memory. */
        void onPrepared0(ChannelBuffers buffers);

        /** Both ends have agreed. */
        void onActive0(MessageConnection active);

        /** The peer has ended its half. */
        void onPeerEnd0();

        /** The peer has written with immediate data. */
        void onImmediate0(int immediateData, int lengthBytes);

        /** The peer has invalidated a key. */
        void onInvalidated0(int remoteKey);

        /** Credits have come back or run out. */
        void onWritability0(MessageConnection from, boolean writable);

        /** What the program calls the peer; null for nothing. Any thread. */
        @Nullable String label();

        /** All that is queued, of which the connection has so many bytes. Any thread. */
        long queuedBytes(long inConnection);

        /** The connection has ended. */
        void onInactive0(@Nullable Throwable cause);
    }

    /** What the endpoint reports once its device is known. */
    private record Device(
            EndpointCapabilities capabilities,
            MemoryDomain memory,
            MemoryDomain sharedMemory,
            @Nullable MemoryDomain serverMemory) {}

    private final Host channel;

    // Written by the loop, read by any thread. Clock and stat are set before the connection can report anything.
    private volatile @Nullable InetSocketAddress local;
    private volatile @Nullable InetSocketAddress remote;
    private volatile @Nullable Device device;
    private volatile @Nullable ConnectionClock clock;

    /** Event loop only; set when it begins. */
    private LoopClock loopClock = LoopClock.system();

    private volatile @Nullable ConnectionStat stat;
    private volatile @Nullable MessageConnection connection;

    // Confined to the event loop.
    private Frame.@Nullable Listener frameListener;
    private @Nullable ProviderAccount account;
    private @Nullable Endpoint endpoint;
    private boolean over;

    /** Whether it counts as a connection of its server. */
    private boolean isCounted;

    public ChannelConnection(Host channel) {
        this.channel = channel;
    }

    // ---- any thread

    /** Whether it has begun, with the options that the channel had then. */
    public boolean hasBegun() {
        return connection != null;
    }

    /** The connection, also after its end; null before it has begun. */
    public @Nullable MessageConnection begun() {
        return connection;
    }

    /** This end's address, as far as it is known. */
    public @Nullable InetSocketAddress local() {
        return local;
    }

    /** The peer's. */
    public @Nullable InetSocketAddress remote() {
        return remote;
    }

    /** The domain of memory for the peer only. */
    public MemoryDomain memory() {
        return device().memory();
    }

    /** The domain of memory for all peers. */
    public MemoryDomain sharedMemory() {
        return device().sharedMemory();
    }

    /**
     * The peer's token for memory of the server that accepted the channel.
     *
     * @throws IllegalArgumentException none has
     */
    public RemoteMemory token(ServerRegions memory) {
        ServerPeers peers = channel.peers();
        Device known = device();
        MemoryDomain domain = known.serverMemory();
        if (peers == null || domain == null) {
            throw new IllegalArgumentException("no server has accepted this channel, it has connected: register the"
                    + " memory with its memory() or sharedMemory()");
        }
        return memory.token(
                peers, known.sharedMemory(), domain, known.capabilities().atomics());
    }

    public EndpointCapabilities capabilities() {
        return device().capabilities();
    }

    private Device device() {
        Device known = device;
        if (known == null) {
            throw new NotYetConnectedException();
        }
        return known;
    }

    public MessageStatistics statistics() {
        MessageConnection begun = connection;
        return begun == null ? MessageStatistics.NONE : begun.statistics();
    }

    /** What {@code verbena stat} shows about it; null if that is switched off, or nothing has begun. */
    public @Nullable ConnectionStat stat() {
        return stat;
    }

    // ---- before it begins

    /** The channel is bound, or was accepted at this address. */
    public void local(InetSocketAddress address) {
        local = address;
    }

    /** The peer to connect to, or that connected. */
    public void remote(InetSocketAddress address) {
        remote = address;
    }

    /** Reports each frame to an observer from now on, or to none. */
    public void observe0(Frame.@Nullable Listener observer) {
        frameListener = observer;
        MessageConnection begun = connection;
        if (begun != null) {
            begun.setFrameListener(observer);
        }
    }

    // ---- from its beginning to its end

    /** Begins, with what this end's program announces. The provider's endpoint is then passed to {@link #uses0}. */
    public MessageConnection begin0(
            EventLoop loop,
            RdmaProvider provider,
            Role role,
            MessageOptions options,
            int announced,
            @Nullable PreSharedKeys keys) {
        loopClock = LoopGroup.clockOf(loop);
        MessageConnection made = new MessageConnection(role, options, ChannelBuffers.SOURCE, this, loopClock);
        made.limitTransfers(((RdmaEventLoop) loop)::transferBudget0);
        made.announce(announced);
        made.queue(channel::queuedBytes);
        made.setFrameListener(frameListener);
        if (keys != null) {
            made.authenticate(keys);
        }
        clock = new ConnectionClock(loop, made);
        ConnectionStat shown = ConnectionStat.begin0(
                ((RdmaEventLoop) loop).stat(), provider, LoopGroup.reasonOf(loop), role, options.framing(), made);
        if (shown != null) {
            shown.addresses0(local, remote);
            shown.label(channel.label());
        }
        stat = shown;
        made.setReading(false); // until the pipeline asks
        connection = made;
        ProviderAccount accountant = ProviderAccount.of(provider);
        accountant.began(made);
        account = accountant;
        return made;
    }

    /** The provider has taken the connection. */
    public void uses0(@Nullable Endpoint made) {
        endpoint = made;
    }

    /** Ends a connection that could not begin. Returns whether a provider has it anyway, and reports its end. */
    public boolean giveUp0() {
        if (endpoint == null && connection != null) {
            over = true;
        }
        return endpoint != null;
    }

    /** The connection; null before it has begun and after its end. */
    public @Nullable MessageConnection open0() {
        return over ? null : connection;
    }

    /** A send is about to be posted, which may cause no completion on the loop. */
    public void sending0() {
        ConnectionStat shown = stat;
        if (shown != null) {
            shown.active0();
        }
    }

    /** Whether the peer has closed, so that it takes nothing more. */
    public boolean hasPeerClosed0() {
        MessageConnection begun = connection;
        return begun != null && begun.hasPeerClosed();
    }

    /** When the first part of the message that is being read arrived, as far as this end knows. */
    public long arrivalNanos0() {
        long turnNanos = channel.inbound0().turnNanos(loopClock);
        MessageConnection begun = connection;
        return begun == null ? turnNanos : begun.arrivalNanos(turnNanos);
    }

    /** The channel is closed. */
    public void close0() {
        MessageConnection open = open0();
        if (open != null) {
            open.abort(null);
        }
        if (over) {
            settle0(true); // there is no endpoint that could report its end
        } else if (endpoint != null) {
            endpoint.disconnect();
        }
        ServerPeers peers = channel.peers();
        if (peers != null && isCounted) {
            isCounted = false;
            peers.leave();
        }
    }

    /** The figures are final. Idempotent. */
    private void settle0(boolean lost) {
        ConnectionClock running = clock;
        if (running != null) {
            running.stop();
        }
        ConnectionStat shown = stat;
        if (shown != null) {
            shown.end0();
        }
        ProviderAccount accountant = account;
        MessageConnection ended = connection;
        if (accountant != null && ended != null) {
            ended.queue(LongUnaryOperator.identity()); // it keeps nothing
            accountant.ended(ended, lost);
        }
    }

    // ---- its events

    /** The addresses may differ from the requested ones. */
    @Override
    public void onPrepared(MessageConnection from) {
        Endpoint prepared = from.endpoint();
        if (prepared == null) {
            return;
        }
        local = prepared.localAddress();
        remote = prepared.remoteAddress();
        MemoryDomain domain = prepared.memoryDomain();
        ServerPeers peers = channel.peers();
        MemoryDomain ofServer = peers == null ? null : prepared.join(peers.group());
        device = new Device(prepared.capabilities(), prepared.connectionMemory(), domain, ofServer);
        if (peers != null && !isCounted && channel.isOpen()) {
            isCounted = peers.enter();
        }
        Objects.requireNonNull(account).uses(domain);
        channel.onPrepared0(ChannelBuffers.of(domain));
        ConnectionStat shown = stat;
        if (shown != null) {
            shown.addresses0(local, remote);
        }
    }

    @Override
    public void onActive(MessageConnection from, Negotiated negotiated) {
        ConnectionStat shown = stat;
        if (shown != null) {
            shown.agreed0(negotiated);
        }
        if (channel.isOpen()) {
            onPrepared(from);
            channel.onActive0(from);
        }
    }

    @Override
    public void onMessage(MessageConnection from, ByteBuf message) {
        channel.inbound0().onMessage(message);
    }

    @Override
    public void onEnd(MessageConnection from) {
        channel.onPeerEnd0();
    }

    @Override
    public void onReadComplete(MessageConnection from) {
        if (channel.isOpen()) {
            channel.inbound0().endTurn();
        }
    }

    @Override
    public void onImmediate(MessageConnection from, int immediateData, int lengthBytes) {
        channel.onImmediate0(immediateData, lengthBytes);
    }

    @Override
    public void onInvalidated(MessageConnection from, int remoteKey) {
        channel.onInvalidated0(remoteKey);
    }

    @Override
    public void onWritabilityChanged(MessageConnection from, boolean writable) {
        channel.onWritability0(from, writable);
    }

    @Override
    public void onDeadline(MessageConnection from, long deadlineNanos) {
        Objects.requireNonNull(clock).wakeAt(deadlineNanos);
    }

    /** Any thread. */
    @Override
    public void onResumable(MessageConnection from) {
        Objects.requireNonNull(clock).resumeSoon();
    }

    @Override
    public void onInactive(MessageConnection from, @Nullable Throwable cause) {
        ConnectionStat shown = stat;
        if (shown != null && cause != null) {
            shown.lost0(cause);
        }
        over = true;
        settle0(cause != null);
        channel.onInactive0(cause);
    }
}
