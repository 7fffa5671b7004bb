package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFactory;
import io.netty.channel.ChannelOption;
import io.netty.channel.ConnectTimeoutException;
import io.netty.channel.EventLoop;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.util.concurrent.Future;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.channel.ConnectAttempt;
import org.verbena.api.internal.ladder.LadderConnect;
import org.verbena.api.internal.ladder.LadderMemory;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.api.ladder.LadderStatistics;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.ProviderUnavailableException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.RdmaProvider;

/**
 * Connects with the best transport that client and server have in common: verbs, else soft, else, for streams, plain
 * TCP. It is for clients of a fleet that moves to RDMA step by step ({@code docs/fleet.md}). It is used only if a
 * program asks for it: otherwise the chosen provider is used, or connecting fails.
 *
 * <p>As in RFC 8305 (Happy Eyeballs) attempts overlap, so that a silent rung costs a client no more than the hedge
 * delay: {@link LadderOptions} says how. All but the chosen connection are closed. A server may therefore see
 * connections that end without any data.
 *
 * <pre>{@code
 * RdmaEventLoopGroup group = new RdmaEventLoopGroup("ladder", 2);
 * Bootstrap bootstrap = new Bootstrap().group(group).handler(initializer);
 * Future<SocketChannel> connecting = RdmaLadder.connectStream(bootstrap, address, LadderOptions.DEFAULTS);
 * }</pre>
 *
 * <p><b>The bootstrap</b> has the loops, an {@link RdmaEventLoopGroup} made with {@code ladder}, {@code all} or names
 * such as {@code verbs+soft}; options, attributes, a local address and a handler; no channel class. Its handler is
 * added to the connection that is chosen, when it is up, and to no other; it gets {@code channelRegistered}, a {@link
 * LadderResult} as user event, and {@code channelActive}. It must work with any {@link SocketChannel} if plain TCP is
 * among the rungs, to which the options of {@link RdmaChannelOption} do not apply. With {@link
 * RdmaChannelOption#PRE_SHARED_KEYS} plain TCP, which cannot prove a key, is not tried. {@code CONNECT_TIMEOUT_MILLIS}
 * limits all rungs together.
 *
 * <p>Libraries that make their channels themselves take a {@link LadderSocketChannel} instead.
 *
 * <p><b>The choice</b> is logged at INFO when it changes for an address; {@link Carrier}, {@link LadderStatistics} and
 * the Flight Recorder's event {@code org.verbena.Ladder} report it.
 *
 * <p>Source: RFC 8305, 5
 */
public final class RdmaLadder {
    private RdmaLadder() {}

    /**
     * Connects a stream of bytes. Any thread; does not wait.
     *
     * @param bootstrap as the class describes
     * @param address the server's, resolved
     * @param options of the ladder
     * @return the connection: an {@link RdmaSocketChannel}, or Netty's {@code NioSocketChannel}. Fails with {@link
     *     ConnectException}, which has the failures of all rungs as suppressed exceptions. Cancelling it ends all
     *     attempts. It completes on a loop of the group, not always the channel's
     * @throws IllegalArgumentException the bootstrap has a channel class, no handler, or loops of another kind
     */
    public static Future<SocketChannel> connectStream(
            Bootstrap bootstrap, InetSocketAddress address, LadderOptions options) {
        return connect(bootstrap, address, options, null, SocketChannel.class, RdmaSocketChannel::new);
    }

    /**
     * Connects a channel of messages, which plain TCP does not carry. Any thread; does not wait.
     *
     * @param bootstrap as the class describes
     * @param address the server's, resolved
     * @param options of the ladder
     * @return the connection. Fails with {@link ConnectionException}, which has the failures of all rungs as suppressed
     *     exceptions. Cancelling it ends all attempts. It completes on a loop of the group, not always the channel's
     * @throws IllegalArgumentException the bootstrap has a channel class, no handler, or loops of another kind
     */
    public static Future<RdmaChannel> connectMessages(
            Bootstrap bootstrap, InetSocketAddress address, LadderOptions options) {
        return connect(bootstrap, address, options, null, RdmaChannel.class, RdmaChannel::new);
    }

    static <C extends Channel> Future<C> connect(
            Bootstrap bootstrap,
            InetSocketAddress address,
            LadderOptions options,
            @Nullable LadderMemory memory,
            Class<C> type,
            ChannelFactory<? extends Channel> channels) {
        return connect(bootstrap, address, options, memory, type, channels, NioSocketChannel::new);
    }

    /**
     * Connects, on a loop of the bootstrap's group, which itself carries all rungs that it can.
     *
     * @param memory of addresses; null for that of the group
     * @param channels makes those of providers
     * @param plain makes those of plain TCP
     */
    static <C extends Channel> Future<C> connect(
            Bootstrap bootstrap,
            InetSocketAddress address,
            LadderOptions options,
            @Nullable LadderMemory memory,
            Class<C> type,
            ChannelFactory<? extends Channel> channels,
            ChannelFactory<NioSocketChannel> plain) {
        RdmaEventLoopGroup group = groupOf(bootstrap.config().group());
        if (bootstrap.config().channelFactory() != null) {
            throw new IllegalArgumentException("the bootstrap has a channel class; a ladder chooses it");
        }
        if (bootstrap.config().handler() == null) {
            throw new IllegalArgumentException("the bootstrap has no handler");
        }
        EventLoop loop = bootstrap.config().group().next();
        InetSocketAddress resolved;
        try {
            resolved = ConnectAttempt.resolved(address, "connect to ");
        } catch (ConnectionException unresolved) {
            return ((RdmaEventLoop) loop).notifier().newFailedFuture(unresolved);
        }
        boolean hasKeys = bootstrap.config().options().get(RdmaChannelOption.PRE_SHARED_KEYS) != null;
        List<LadderConnect.Step> steps = new ArrayList<>();
        for (String name : allowed(options)) {
            if (!name.equals(Carrier.TCP)) {
                steps.add(step(name, group, loop, resolved, channels));
            } else if (type.isAssignableFrom(NioSocketChannel.class)) {
                steps.add(new LadderConnect.Step(name, loop, plain, obstacleOfTcp(options, hasKeys), false));
            }
        }
        LadderMemory known = memory == null ? group.ladderMemory() : memory;
        return new LadderConnect<>(loop, bootstrap, resolved, options, steps, known, new Kind<>(type)).connect();
    }

    private static RdmaEventLoopGroup groupOf(@Nullable EventLoopGroup group) {
        if (group instanceof RdmaEventLoopGroup rdma) {
            return rdma;
        }
        if (group instanceof RdmaEventLoop loop && loop.parent() instanceof RdmaEventLoopGroup parent) {
            return parent;
        }
        throw new IllegalArgumentException("a ladder needs a bootstrap with an RdmaEventLoopGroup, not with " + group);
    }

    /** Down to the minimum. */
    private static List<String> allowed(LadderOptions options) {
        String minimum = options.minimumRung();
        return minimum == null
                ? options.rungs()
                : options.rungs().subList(0, options.rungs().indexOf(minimum) + 1);
    }

    private static String obstacleOfTcp(LadderOptions options, boolean hasKeys) {
        if (hasKeys) {
            return "plain TCP cannot prove a pre-shared key";
        }
        return options.needs().isEmpty() ? "" : "plain TCP has nothing of " + options.needs();
    }

    private static LadderConnect.Step step(
            String name,
            RdmaEventLoopGroup group,
            EventLoop home,
            InetSocketAddress address,
            ChannelFactory<? extends Channel> channels) {
        for (ProviderChoice choice : group.providers().choices()) {
            RdmaProvider provider = choice.provider();
            if (provider.name().equals(name)) {
                EventLoop loop = LoopGroup.loopFor(home, provider);
                return new LadderConnect.Step(name, loop, channels, obstacle(provider, address), provider.joinsAuto());
            }
        }
        return new LadderConnect.Step(name, null, channels, absence(name), false);
    }

    /** Why a rung cannot be tried. Checked each time, without connecting, since devices come and go. */
    private static String obstacle(RdmaProvider provider, InetSocketAddress address) {
        if (provider.reaches(address)) {
            return "";
        }
        Throwable cause = provider.unavailabilityCause();
        if (cause != null) {
            return "it cannot work here: " + cause.getMessage();
        }
        return provider.serves(address) ? "no server of it is at " + address : "it does not serve " + address;
    }

    /** Whether one of these rungs has a provider that serves the address. Does not connect. */
    static boolean canTry(RdmaEventLoopGroup group, InetSocketAddress address, List<String> rungs) {
        return group.providers().choices().stream()
                .map(ProviderChoice::provider)
                .anyMatch(provider -> rungs.contains(provider.name()) && provider.reaches(address));
    }

    private static String absence(String name) {
        for (RdmaProvider installed : ProviderChoice.installed()) {
            if (installed.name().equals(name)) {
                Throwable cause = installed.unavailabilityCause();
                return cause == null
                        ? "the event loops are not made for it; make them with the provider " + ProviderSet.LADDER
                        : "it cannot work here: " + cause.getMessage();
            }
        }
        return "it is not on the class path";
    }

    /** Sets the attributes by which a channel says which rung it is. */
    static void mark(Channel channel, LadderResult result) {
        channel.attr(LadderResult.ATTRIBUTE).set(result);
        channel.attr(Carrier.ATTRIBUTE).set(new Carrier(result.rung(), result.reason()));
    }

    /**
     * Messages or bytes.
     *
     * @param type {@link RdmaChannel}, or that of sockets
     */
    private record Kind<C extends Channel>(Class<C> type) implements LadderConnect.Kind<C> {
        @Override
        public C cast(Channel channel) {
            return type.cast(channel);
        }

        @Override
        public @Nullable EndpointCapabilities capabilities(Channel connected) {
            return connected instanceof AbstractRdmaChannel rdma ? rdma.capabilities() : null;
        }

        @Override
        public boolean isForProviders(ChannelOption<?> option) {
            return RdmaChannelOption.isOneOf(option);
        }

        @Override
        public void mark(Channel channel, LadderResult result) {
            RdmaLadder.mark(channel, result);
        }

        @Override
        public Exception failure(String message, boolean isTimeout) {
            if (type == RdmaChannel.class) {
                return isTimeout ? new ConnectionException.TimedOut(message) : new ConnectionException(message);
            }
            return isTimeout ? new ConnectTimeoutException(message) : new ConnectException(message);
        }
    }

    /** The providers of all rungs that could work here, whatever they serve at the moment. */
    static ProviderSet providersOf(LadderOptions options) {
        List<ProviderChoice> usable = new ArrayList<>();
        List<String> others = new ArrayList<>();
        List<String> names = allowed(options);
        for (String name : names) {
            if (name.equals(Carrier.TCP)) {
                continue;
            }
            try {
                usable.add(new ProviderChoice(ProviderChoice.find(name), "a rung of the ladder"));
            } catch (ProviderUnavailableException unavailable) {
                others.add(unavailable.getMessage());
            }
        }
        if (usable.isEmpty()) {
            throw new ProviderUnavailableException(
                    "no rung of the ladder " + names + " can work here: " + String.join("; ", others));
        }
        return new ProviderSet(usable, Set.of(), true);
    }
}
