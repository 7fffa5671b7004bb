package org.verbena.api;

import io.netty.channel.AbstractServerChannel;
import io.netty.channel.Channel;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MaxMessagesRecvByteBufAllocator;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.channel.DelegatingUnsafe;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.memory.ServerPeers;
import org.verbena.api.internal.server.AcceptedHandshakes;
import org.verbena.api.internal.server.Arrival;
import org.verbena.api.internal.server.HandshakeContext;
import org.verbena.api.internal.server.PortListeners;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * A Netty server channel that listens for RDMA connections, for a {@code ServerBootstrap} whose groups are {@link
 * RdmaEventLoopGroup}s of the same providers. With several providers it listens with each of them, on one address and
 * port, and all connections wait in one backlog; {@link Carrier} names the provider of a channel. Each {@link
 * RdmaChannel} that it accepts becomes active once both ends have agreed on the protocol.
 *
 * <p>Options: {@code SO_BACKLOG} (how many connection requests may wait), {@code SO_REUSEADDR}, {@code AUTO_READ}. With
 * auto-read off, requests wait for {@link #read()}, which accepts up to {@code MAX_MESSAGES_PER_READ} of them; requests
 * beyond the backlog are rejected. Requests of peers that have given up are dropped.
 *
 * <pre>{@code
 * OPEN --bind--> BINDING --listening--> ACTIVE --close--> CLOSED
 *   |               | failed: closed, the promise has the cause   ^
 *   +---------------+---------------------------------------------+
 * }</pre>
 */
public sealed class RdmaServerChannel extends AbstractServerChannel permits RdmaServerSocketChannel {
    private static final Logger LOG = LoggerFactory.getLogger(RdmaServerChannel.class);

    /** For a peer that is no longer there to receive it. */
    private static final byte[] GONE = {};

    private static final byte[] BUSY = "the server's backlog is full; try again".getBytes(StandardCharsets.US_ASCII);

    /** Why a plain connection was closed, for the log. */
    static final String KEYS_WITHOUT_PLAIN = "the server's clients prove pre-shared keys, which plain TCP cannot do:"
            + " switch RdmaChannelOption.PLAIN_TCP off, or use TLS with certificates instead of PRE_SHARED_KEYS";

    private final RdmaServerChannelConfig<?> config = newConfig();
    private final Runnable closeWithLoop = this::closeWithLoop0;

    private final ServerPeers peers = new ServerPeers();

    private final HandshakeContext reception = new HandshakeContext(new RateLimitedLog(LOG), new AcceptedHandshakes());

    /** Requests that wait for a read. Event loop only. */
    private final ArrayDeque<Arrival> waiting = new ArrayDeque<>();

    // Written by the loop, read by any thread.
    private volatile State state = State.OPEN;
    private volatile @Nullable InetSocketAddress boundAddress;
    private volatile List<String> listening = List.of();

    /** Whether plain connections are refused, since children require keys. Written by children's loops. */
    private volatile boolean refusesPlain;

    // Confined to the event loop.
    private @Nullable PortListeners listeners;
    private @Nullable ChannelPromise bindPromise;
    private @Nullable InetSocketAddress requestedAddress;
    private boolean readPending;

    /** The end of a close that waits for the listener's. */
    private @Nullable Runnable whenClosed;

    /** Made while the base class is being constructed, before the fields above: so it has no initializer. */
    @SuppressWarnings("NullAway.Init")
    private Channel.@Nullable Unsafe bindingUnsafe;

    private enum State {
        OPEN,
        BINDING,
        ACTIVE,
        CLOSED
    }

    /** Creates a channel, for a bootstrap. */
    public RdmaServerChannel() {}

    /** Creates the options; called by the constructor. */
    RdmaServerChannelConfig<?> newConfig() {
        return new RdmaServerChannelConfig<ChannelConfig>(this);
    }

    /**
     * Returns the names of the providers that it listens with. With {@code all} these may be fewer than the group has.
     *
     * @return in the order in which they were bound; empty unless it is active
     */
    public List<String> providers() {
        return listening;
    }

    /** The children require keys of their peers: no plain connection is accepted from now on. Any thread. */
    void refusePlain(String peer) {
        refusesPlain = true;
        reception
                .strangers()
                .warn(boundAddress + ": refused the plain TCP connection of " + peer + ": " + KEYS_WITHOUT_PLAIN);
    }

    /** The connections that share its memory. */
    ServerPeers peers() {
        return peers;
    }

    /** What its connections share until they are active. */
    HandshakeContext reception() {
        return reception;
    }

    @Override
    public ChannelConfig config() {
        return config;
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
    public @Nullable InetSocketAddress localAddress() {
        return (InetSocketAddress) super.localAddress();
    }

    @Override
    protected @Nullable SocketAddress localAddress0() {
        return boundAddress;
    }

    @Override
    protected boolean isCompatible(EventLoop loop) {
        return LoopGroup.providerOf(loop) != null;
    }

    @Override
    public Channel.Unsafe unsafe() {
        Channel.Unsafe unsafe = bindingUnsafe;
        if (unsafe == null) {
            unsafe = new BindingUnsafe(super.unsafe());
            bindingUnsafe = unsafe;
        }
        return unsafe;
    }

    @Override
    protected void doRegister(ChannelPromise promise) {
        ((RdmaEventLoop) eventLoop()).enter0(this, closeWithLoop, promise);
    }

    @Override
    protected void doDeregister() {
        ((RdmaEventLoop) eventLoop()).leave0(this, closeWithLoop);
        if (isOpen()) {
            // The listener lives on this loop: it cannot move.
            unsafe().close(unsafe().voidPromise());
        }
    }

    /** Never called: {@link BindingUnsafe} binds. */
    @Override
    protected void doBind(SocketAddress localAddress) {
        throw new UnsupportedOperationException("binding takes time");
    }

    @Override
    protected void doBeginRead() {
        readPending = true;
        if (!waiting.isEmpty()) {
            eventLoop().execute(this::deliver0);
        }
    }

    /** Auto-read was switched off: requests wait from now on. */
    void stopReading() {
        if (isRegistered()) {
            EventLoop loop = eventLoop();
            if (loop.inEventLoop()) {
                readPending = false;
            } else {
                try {
                    loop.execute(() -> readPending = false);
                } catch (RejectedExecutionException ended) {
                    LOG.trace("{} ends with its loop", this, ended);
                }
            }
        }
    }

    @Override
    protected AbstractUnsafe newUnsafe() {
        return new ClosingUnsafe();
    }

    @Override
    protected void doClose() {
        if (state != State.CLOSED) {
            close0();
        }
    }

    private void close0() {
        state = State.CLOSED;
        listening = List.of();
        Arrival arrival = waiting.poll();
        while (arrival != null) {
            arrival.reject(PortListeners.CLOSING);
            arrival = waiting.poll();
        }
        ChannelPromise promise = bindPromise;
        if (promise != null) {
            bindPromise = null;
            promise.tryFailure(new ConnectionException.Unreachable(
                    "listen on " + requestedAddress + ": the channel was closed before it listened"));
        }
        PortListeners open = listeners;
        if (open != null) {
            open.close0();
        }
        peers.leave();
    }

    /** Translates the reason why listening failed into the exception that this kind of channel reports. */
    Throwable forBind0(Throwable cause) {
        return cause;
    }

    private void bind0(SocketAddress localAddress, ChannelPromise promise) {
        assert eventLoop().inEventLoop();
        if (!promise.setUncancellable()) {
            return;
        }
        if (state != State.OPEN) {
            // This attempt must not affect what is bound or being bound.
            promise.tryFailure(new IllegalStateException("listen on " + localAddress + ": the channel is "
                    + (state == State.CLOSED ? "closed" : "bound to " + requestedAddress + " already")));
            return;
        }
        try {
            if (!(localAddress instanceof InetSocketAddress address)) {
                throw new IllegalArgumentException("listen on " + localAddress + ": not an internet address");
            }
            if (address.isUnresolved()) {
                throw new ConnectionException.Unreachable("listen on " + address + ": the name cannot be resolved");
            }
            state = State.BINDING;
            requestedAddress = address;
            bindPromise = promise;
            ProviderSet providers = Objects.requireNonNull(LoopGroup.providersOf(eventLoop()));
            ListenOptions options = config.listenOptions();
            checkPlain(options, providers);
            PortListeners made =
                    new PortListeners((IoEventLoop) eventLoop(), providers, options, address, new ListenersOwner());
            listeners = made;
            made.begin0();
        } catch (RuntimeException cause) {
            bindPromise = null;
            promise.tryFailure(forBind0(cause));
            if (state == State.BINDING) {
                unsafe().close(unsafe().voidPromise());
            }
        }
    }

    private static void checkPlain(ListenOptions options, ProviderSet providers) {
        if (options.plainTcp()
                && providers.choices().stream()
                        .noneMatch(choice -> choice.provider().takesPlainTcp())) {
            throw new IllegalArgumentException("RdmaChannelOption.PLAIN_TCP needs a provider that listens on TCP, and "
                    + providers.names() + " does not: use " + providers.names() + "+soft, or all");
        }
    }

    /** The channel for a connection request. */
    AbstractRdmaChannel newChild0(Arrival.Rdma arrival) {
        return new RdmaChannel(this, arrival);
    }

    /** Also if it is closing already, and waits for its listeners. */
    private void closeWithLoop0() {
        unsafe().close(unsafe().voidPromise());
        finishClosing0();
    }

    private void finishClosing0() {
        Runnable rest = whenClosed;
        whenClosed = null;
        if (rest != null) {
            rest.run();
        }
    }

    private void deliver0() {
        assert eventLoop().inEventLoop();
        int max = connectionsPerRead();
        int delivered = 0;
        while (readPending && state == State.ACTIVE && delivered < max && !isEnding0()) {
            Arrival arrival = waiting.poll();
            if (arrival == null) {
                break;
            }
            if (arrival.isPending()) {
                Channel child = childOf0(arrival);
                if (child != null) {
                    delivered++;
                    pipeline().fireChannelRead(child);
                }
            } else {
                arrival.reject(GONE);
            }
        }
        if (delivered > 0) {
            readPending = false;
            pipeline().fireChannelReadComplete(); // with auto-read on, this asks for more
        }
    }

    /**
     * Its loop is ending, usually with the whole group, so no loop takes a new channel. The close rejects waiting
     * requests.
     */
    private boolean isEnding0() {
        return ((RdmaEventLoop) eventLoop()).isEnding();
    }

    /** The channel of a peer; null if it has none. */
    private @Nullable Channel childOf0(Arrival arrival) {
        if (arrival instanceof Arrival.Plain plain && refusesPlain) {
            refusePlain(String.valueOf(plain.socket().socket().getRemoteSocketAddress()));
            plain.reject(GONE);
            return null;
        }
        try {
            return switch (arrival) {
                case Arrival.Rdma rdma -> newChild0(rdma);
                case Arrival.Plain plain -> new PlainSocketChannel(this, plain);
            };
        } catch (RuntimeException failure) {
            LOG.warn("{}: no channel can be made for a connection", boundAddress, failure);
            arrival.reject(GONE);
            return null;
        }
    }

    /** {@code MAX_MESSAGES_PER_READ}, which Netty keeps there. */
    private int connectionsPerRead() {
        return config.getRecvByteBufAllocator() instanceof MaxMessagesRecvByteBufAllocator limits
                ? limits.maxMessagesPerRead()
                : metadata().defaultMaxMessagesPerRead();
    }

    /** Drops requests that have waited too long or whose peers have left, so that they take up no room. */
    private void forgetGone0() {
        waiting.removeIf(arrival -> {
            boolean gone = !arrival.isPending();
            if (gone) {
                arrival.reject(GONE);
            }
            return gone;
        });
    }

    /** How many peers wait to be accepted. Event loop only. */
    int waiting0() {
        forgetGone0();
        return waiting.size();
    }

    private final class BindingUnsafe extends DelegatingUnsafe {
        BindingUnsafe(Channel.Unsafe unsafe) {
            super(unsafe);
        }

        @Override
        public void bind(SocketAddress localAddress, ChannelPromise promise) {
            bind0(localAddress, promise);
        }
    }

    /** Completes close() when all listeners are closed: then the port is free. */
    private final class ClosingUnsafe extends AbstractUnsafe {
        @Override
        public void connect(SocketAddress remoteAddress, SocketAddress localAddress, ChannelPromise promise) {
            safeSetFailure(promise, new UnsupportedOperationException("a server does not connect"));
        }

        @Override
        protected @Nullable Executor prepareToClose() {
            // A loop that ends may take no task after the listeners' end.
            PortListeners open = listeners;
            if (open == null || !open.isOpen0() || eventLoop().isShuttingDown()) {
                return null;
            }
            return rest -> {
                whenClosed = rest;
                close0();
            };
        }
    }

    private final class ListenersOwner implements PortListeners.Owner {
        @Override
        public void onListening0(InetSocketAddress address) {
            boundAddress = address;
            listening = names0();
            state = State.ACTIVE;
            ChannelPromise promise = bindPromise;
            bindPromise = null;
            if (promise != null) {
                promise.trySuccess();
            }
            if (isActive()) {
                pipeline().fireChannelActive();
            }
            deliver0(); // what arrived at the first listener before the last one was ready
        }

        private List<String> names0() {
            PortListeners open = listeners;
            return open == null ? List.of() : open.names0();
        }

        @Override
        public void onArrival0(Arrival arrival) {
            if ((state != State.ACTIVE && state != State.BINDING) || isEnding0()) {
                arrival.reject(PortListeners.CLOSING);
                return;
            }
            if (waiting.size() >= config.getBacklog()) {
                forgetGone0();
            }
            if (waiting.size() >= config.getBacklog()) {
                arrival.reject(BUSY);
            } else {
                waiting.add(arrival);
                deliver0();
            }
        }

        @Override
        public void onLost0(Throwable cause) {
            if (state == State.ACTIVE) {
                listening = names0();
                pipeline().fireExceptionCaught(cause);
            }
        }

        @Override
        public void onClosed0(@Nullable Throwable cause) {
            if (state == State.CLOSED) {
                finishClosing0();
                return;
            }
            ChannelPromise promise = bindPromise;
            bindPromise = null;
            if (promise != null) {
                promise.tryFailure(forBind0(
                        cause != null
                                ? cause
                                : new ConnectionException.Unreachable("listen on " + requestedAddress
                                        + ": the listener was closed before it listened")));
            } else if (cause != null) {
                pipeline().fireExceptionCaught(cause);
            }
            unsafe().close(unsafe().voidPromise());
        }
    }
}
