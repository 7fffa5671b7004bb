package org.verbena.jgroups;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.Lock;
import org.jgroups.Address;
import org.jgroups.blocks.cs.BaseServer;
import org.jgroups.blocks.cs.Connection;
import org.jgroups.stack.IpAddress;
import org.jgroups.util.ThreadFactory;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaLadder;
import org.verbena.api.RdmaServerChannel;
import org.verbena.api.ladder.LadderOptions;

/**
 * A member's port and its connections with the other members. It is used once: from its construction, which binds the
 * port, over {@link #start()}, which accepts connections, to {@link #stop()}, which waits until the port is free.
 */
final class PeerServer extends BaseServer {
    private final Settings settings;
    final RdmaEventLoopGroup loops;
    private final Channel listening;
    private final LongAdder dropped = new LongAdder();

    /**
     * How it works.
     *
     * @param provider names of providers
     * @param eventLoops for each of them
     * @param ports where it listens
     * @param outside where peers find it
     * @param clientAddress what its connections come from; null for whatever the provider takes
     * @param options of all its channels
     * @param maxQueuedBytes what may wait for a peer
     * @param maxBlockMillis how long a send waits for a peer that takes nothing, if that much waits; 0 for not at all
     * @param helloTimeoutMillis how long a peer may take to say which member it is
     */
    record Settings(
            String provider,
            int eventLoops,
            Ports ports,
            Outside outside,
            @Nullable InetSocketAddress clientAddress,
            Map<ChannelOption<?>, @Nullable Object> options,
            int maxQueuedBytes,
            long maxBlockMillis,
            int helloTimeoutMillis) {}

    /**
     * Ports of an address.
     *
     * @param address null for all
     * @param first to be tried; 0 for any that is free
     * @param last to be tried
     */
    record Ports(@Nullable InetAddress address, int first, int last) {}

    /**
     * The address that is translated to this one.
     *
     * @param address null if none is
     * @param port 0 if it stays as it is
     */
    record Outside(@Nullable InetAddress address, int port) {}

    PeerServer(Settings settings, ThreadFactory threads) throws IOException {
        this(settings, threads, new RdmaEventLoopGroup(settings.provider(), settings.eventLoops()));
    }

    /** With loops of its own, which end with it. */
    PeerServer(Settings settings, ThreadFactory threads, RdmaEventLoopGroup loops) throws IOException {
        super(threads, null, 0);
        this.settings = settings;
        this.loops = loops;
        try {
            listening = bind(settings.ports());
        } catch (Throwable failure) {
            loops.close();
            throw failure;
        }
        local_addr = localAddress(
                settings.ports().address(),
                ((InetSocketAddress) listening.localAddress()).getPort(),
                settings.outside().address(),
                settings.outside().port());
        addConnectionListener(this);
    }

    /** Takes the first port that is free. What connects before the start waits in the backlog. */
    private Channel bind(Ports ports) throws IOException {
        ServerBootstrap bootstrap = new ServerBootstrap()
                .group(loops)
                .channel(RdmaServerChannel.class)
                .option(ChannelOption.AUTO_READ, false)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        channel.pipeline().addLast(new PeerConnection(PeerServer.this).traffic());
                    }
                });
        settings.options().forEach((option, value) -> bootstrap.childOption(untyped(option), value));
        List<Throwable> failures = new ArrayList<>();
        for (int port = ports.first(); port <= (ports.first() == 0 ? 0 : ports.last()); port++) {
            ChannelFuture bound =
                    bootstrap.bind(new InetSocketAddress(ports.address(), port)).awaitUninterruptibly();
            if (bound.isSuccess()) {
                return bound.channel();
            }
            failures.add(bound.cause());
        }
        Throwable first = failures.getFirst();
        String which = failures.size() == 1
                ? ""
                : "no port from " + ports.first() + " to " + ports.last() + " is free; the first: ";
        IOException failure = new IOException(which + first.getMessage(), first);
        failures.stream().skip(1).forEach(failure::addSuppressed);
        throw failure;
    }

    @SuppressWarnings("unchecked") // the map's values have their options' types
    private static ChannelOption<@Nullable Object> untyped(ChannelOption<?> option) {
        return (ChannelOption<@Nullable Object>) option;
    }

    int maxQueuedBytes() {
        return settings.maxQueuedBytes();
    }

    long maxBlockMillis() {
        return settings.maxBlockMillis();
    }

    /** Whether the calling thread is one of its loops. */
    boolean inEventLoop() {
        for (EventExecutor loop : loops) {
            if (loop.inEventLoop()) {
                return true;
            }
        }
        return false;
    }

    int helloTimeoutMillis() {
        return settings.helloTimeoutMillis();
    }

    void onDropped() {
        dropped.increment();
    }

    long droppedMessages() {
        return dropped.sum();
    }

    @Override
    public void start() throws Exception {
        if (running.compareAndSet(false, true)) {
            super.start();
            listening.config().setAutoRead(true);
        }
    }

    /** Peers get what is queued for them, and then the message that this end closes, within the loops' time. */
    @Override
    public void stop() {
        running.set(false);
        super.stop();
        loops.close();
    }

    @Override
    protected Connection createConnection(Address dest) {
        return new PeerConnection(this, (IpAddress) dest);
    }

    /** Begins to connect. The channel becomes active, or the future fails. */
    Future<?> connect(IpAddress peer, PeerConnection connection) {
        Bootstrap bootstrap = new Bootstrap().group(loops).handler(connection.traffic());
        settings.options().forEach((option, value) -> bootstrap.option(untyped(option), value));
        InetSocketAddress address = new InetSocketAddress(peer.getIpAddress(), peer.getPort());
        LadderOptions ladder = loops.ladder();
        if (ladder != null) {
            return RdmaLadder.connectMessages(bootstrap, address, ladder);
        }
        InetSocketAddress from = settings.clientAddress();
        bootstrap.channel(RdmaChannel.class);
        return from == null ? bootstrap.connect(address) : bootstrap.connect(address, from);
    }

    /** As in JGroups, and what waits in the one that was there goes to the new one. */
    @Override
    public void replaceConnection(Address peer, Connection connection) {
        if (conns.get(peer) instanceof PeerConnection present && present != connection) {
            present.replaceBy((PeerConnection) connection);
        }
        super.replaceConnection(peer, connection);
    }

    /** The connection with a peer; null if there is none that is open. Any thread. */
    @Nullable PeerConnection openTo(Address peer) {
        return conns.get(peer) instanceof PeerConnection present && !present.isClosed() ? present : null;
    }

    /**
     * A peer has connected. It does so only if it knows of no connection with this end, so its own takes the place of
     * the one that is here; unless both connect at once. Then the one that the higher address makes stays, as with
     * JGroups' other transports. The peer's still brings what the peer has sent by it, until the peer closes it.
     */
    @Override
    public void handleIncomingConnection(Address peer, Connection accepted) {
        Lock lock = getLock(peer);
        lock.lock();
        try {
            Connection present = conns.get(peer);
            boolean bothConnect =
                    connected(present) && present instanceof PeerConnection own && own.isUnknownToItsPeer();
            if (!bothConnect || local_addr.compareTo(peer) < 0) {
                notifyConnectionEstablished(accepted);
                replaceConnection(peer, accepted);
            }
        } finally {
            lock.unlock();
        }
    }
}
