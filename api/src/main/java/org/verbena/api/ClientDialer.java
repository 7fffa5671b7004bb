package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.Future;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.client.Connected;
import org.verbena.api.internal.client.Dialer;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.request.ClientTransport;
import org.verbena.api.internal.request.HandlerLog;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.OpenRequests;
import org.verbena.api.internal.request.RequestCounters;
import org.verbena.api.internal.request.Serving;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.LoopClock;
import org.verbena.transport.spi.RdmaProvider;

/** Makes the connections of an {@link RdmaClient}, as its builder says. Any thread. */
final class ClientDialer implements Dialer {
    private static final Logger LOG = LoggerFactory.getLogger(RdmaClient.class);

    private final ClientSettings how;
    private final @Nullable LadderOptions ladder;
    private final HandlerLog.Limits logLimits = new HandlerLog.Limits();

    /** Set before the first connection is made. */
    @SuppressWarnings("NullAway.Init")
    private volatile ClientTransport.Owner owner;

    /** Entered with the first connection, since the provider may depend on the address. Written under the lock. */
    private volatile @Nullable SharedLoops shared;

    /** To reach servers of this host by; entered with the first. Guarded by this object. */
    private @Nullable SharedLoops near;

    /** Guarded by this object. */
    private boolean closed;

    ClientDialer(ClientSettings how) {
        this.how = how;
        ladder = ladderOf(how);
    }

    private static @Nullable LadderOptions ladderOf(ClientSettings how) {
        if (how.ladder != null) {
            return how.ladder;
        }
        RdmaEventLoopGroup shared = how.sharedGroup;
        if (shared != null) {
            return shared.ladder();
        }
        return how.provider.equals(ProviderSet.LADDER) ? LadderOptions.DEFAULTS : null; // by the system property
    }

    /** Whose connections it makes. */
    void begin(ClientTransport.Owner client) {
        owner = client;
    }

    /** The client's loops; null before the first connection. */
    private @Nullable RdmaEventLoopGroup loops() {
        RdmaEventLoopGroup own = how.sharedGroup;
        SharedLoops entered = shared;
        return own != null ? own : entered == null ? null : entered.group();
    }

    /** The provider of connections that no ladder has chosen. */
    String providerName() {
        RdmaEventLoopGroup loops = loops();
        return loops == null ? how.provider : loops.provider().name();
    }

    private synchronized RdmaEventLoopGroup loops(String purpose, @Nullable InetSocketAddress internet) {
        if (closed) {
            throw new ConnectionException(purpose + ": the client was closed");
        }
        RdmaEventLoopGroup known = loops();
        if (known != null) {
            return known;
        }
        ProviderSet providers = ladder == null || internet == null
                ? ProviderSet.of(ProviderSet.choose(how.provider, internet).first())
                : RdmaLadder.providersOf(ladder);
        SharedLoops entered = SharedLoops.enter(providers, how.loopOptions);
        shared = entered;
        return entered.group();
    }

    @Override
    public Connected connect(SocketAddress address, @Nullable List<String> rungs, long beganNanos) {
        Channel connected = connectNow(address, rungs, beganNanos);
        try {
            if (!how.connectionListeners.isEmpty()) {
                ConnectedServer server = new ConnectedServer((RdmaChannel) connected, how.requestTimeoutNanos);
                how.connectionListeners.forEach(listener -> listener.accept(server));
            }
            return Connected.of(connected);
        } catch (Throwable thrown) {
            connected.close();
            throw thrown;
        }
    }

    private Channel connectNow(SocketAddress address, @Nullable List<String> rungs, long beganNanos) {
        InetSocketAddress internet = address instanceof InetSocketAddress known ? known : null;
        String purpose = "connect to " + (internet == null ? address : text(internet));
        ShortForm.checkNotInterrupted(purpose);
        Carrier usual = null;
        if (internet != null && ladder == null && how.sharedGroup == null && how.provider.equals(ProviderChoice.AUTO)) {
            ProviderChoice nearest = ProviderChoice.choose(ProviderChoice.AUTO, internet);
            if (nearest.provider().joinsAuto()) {
                try {
                    // Leave half of the time for the other providers, in case the server's loop hangs.
                    return open(purpose, nearLoops(purpose, nearest), address, beganNanos, 2);
                } catch (ConnectionException failed) {
                    String why = nearest.provider().name() + " has failed: " + failed.getMessage();
                    LOG.info("{}: continues with another provider, since {}", purpose, why);
                    ProviderChoice other =
                            ProviderSet.choose(ProviderChoice.AUTO, internet).first();
                    usual = new Carrier(other.provider().name(), other.reason() + "; " + why);
                }
            } else {
                usual = new Carrier(nearest.provider().name(), nearest.reason());
            }
        }
        RdmaEventLoopGroup loops = loops(purpose, internet);
        if (rungs != null && (internet == null || !RdmaLadder.canTry(loops, internet, rungs))) {
            throw new ConnectionException.Unreachable(purpose + ": no device of " + rungs + " serves the address");
        }
        LadderOptions steps = ladder;
        if (steps == null || internet == null) {
            Channel opened = open(purpose, loops, address, beganNanos, 1);
            if (usual != null && usual.name().equals(loops.provider().name())) {
                opened.attr(Carrier.ATTRIBUTE).set(usual); // its loops may have been made for another address
            }
            return opened;
        }
        Bootstrap bootstrap = bootstrap(loops, beganNanos, 1);
        SocketAddress local = local(beganNanos);
        if (local != null) {
            bootstrap.localAddress(local);
        }
        LadderOptions allowed = rungs == null
                ? steps
                : new LadderOptions(rungs, steps.hedgeDelay(), steps.forgetAfter(), null, steps.needs(), null);
        Future<RdmaChannel> connecting = RdmaLadder.connectMessages(bootstrap, internet, allowed);
        ShortForm.await(purpose, connecting, loops);
        return connecting.getNow();
    }

    private Bootstrap bootstrap(RdmaEventLoopGroup loops, long beganNanos, int share) {
        Bootstrap bootstrap = new Bootstrap().group(loops).handler(new ChannelInitializer<RdmaChannel>() {
            @Override
            protected void initChannel(RdmaChannel connecting) {
                connecting.pipeline().addLast(Messenger.ofClient(connecting.host(), serving(connecting), owner));
            }
        });
        how.options.forEach((option, value) -> bootstrap.option(ShortForm.untyped(option), value));
        bootstrap.option(RdmaChannelConfig.SHORT_FORM, true);
        int millis = leftMillis(beganNanos);
        return bootstrap.option(ChannelOption.CONNECT_TIMEOUT_MILLIS, millis == 0 ? 0 : Math.max(1, millis / share));
    }

    /** Connects with the first provider of these loops, within a share of the time that is left. */
    private Channel open(String purpose, RdmaEventLoopGroup loops, SocketAddress address, long beganNanos, int share) {
        SocketAddress local = local(beganNanos);
        Channel registered =
                ShortForm.register(purpose, bootstrap(loops, beganNanos, share).channelFactory(RdmaChannel::new));
        ShortForm.awaitOpen(purpose, registered.connect(address, local));
        return registered;
    }

    private synchronized RdmaEventLoopGroup nearLoops(String purpose, ProviderChoice nearest) {
        if (closed) {
            throw new ConnectionException(purpose + ": the client was closed");
        }
        SharedLoops entered = near;
        if (entered == null) {
            entered = SharedLoops.enter(ProviderSet.of(nearest), how.loopOptions);
            near = entered;
        }
        return entered.group();
    }

    private static String text(InetSocketAddress address) {
        InetAddress resolved = address.getAddress();
        return (resolved == null ? address.getHostString() : resolved.getHostAddress()) + ":" + address.getPort();
    }

    private @Nullable SocketAddress local(long beganNanos) {
        String from = how.localHost;
        if (from == null) {
            return null;
        }
        ShortForm.checkAddress("connect from ", from, 0, 0);
        List<InetAddress> own = how.names.addresses(
                "connect from " + from, from, TimeUnit.MILLISECONDS.toNanos(leftMillis(beganNanos)));
        return new InetSocketAddress(own.getFirst(), 0);
    }

    /** What is left of the connect timeout; 0 for no limit. */
    private int leftMillis(long beganNanos) {
        int millis = how.connectMillis();
        long goneMillis = TimeUnit.NANOSECONDS.toMillis(clock().nanoTime() - beganNanos);
        return millis == 0 ? 0 : (int) Math.max(1, millis - goneMillis);
    }

    private Serving serving(RdmaChannel channel) {
        RdmaProvider carrier = Objects.requireNonNull(LoopGroup.providerOf(channel.eventLoop()));
        return new Serving(
                Exchange.handlerOf(how.handler, List.of()),
                how.virtualThreads,
                false,
                false,
                false,
                logLimits,
                new RequestCounters(carrier),
                null,
                null,
                how.pendingBounds,
                OpenRequests.Bounds.DEFAULTS,
                how.maxRequests);
    }

    /** {@inheritDoc} Only loops of the program's own may have another than the system's. */
    @Override
    public LoopClock clock() {
        RdmaEventLoopGroup own = how.sharedGroup;
        return own == null ? LoopClock.system() : own.clock();
    }

    @Override
    public @Nullable LadderOptions ladder() {
        return ladder;
    }

    @Override
    public boolean isEnding() {
        RdmaEventLoopGroup loops = loops();
        return loops != null && loops.isShuttingDown();
    }

    @Override
    public CompletableFuture<Void> close() {
        List<SharedLoops> entered;
        synchronized (this) {
            entered = closed
                    ? List.of()
                    : Stream.of(near, shared).filter(Objects::nonNull).toList();
            closed = true;
        }
        return CompletableFuture.allOf(entered.stream().map(SharedLoops::leave).toArray(CompletableFuture<?>[]::new));
    }
}
