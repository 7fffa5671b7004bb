package org.verbena.grpc;

import io.grpc.ChannelCredentials;
import io.grpc.ExperimentalApi;
import io.grpc.ProxyDetector;
import io.grpc.internal.GrpcUtil;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.netty.channel.Channel;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.api.LadderSocketChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;

/**
 * gRPC over RDMA: the builders of {@code grpc-netty}, set up with Verbena's channels and event loops. Use them as over
 * TCP: deadlines, cancellation, streaming, flow control, keepalive, name resolution, reconnecting and TLS work the
 * same.
 *
 * <pre>{@code
 * Server server = VerbenaGrpc.server(7471).addService(service).build().start();        // TLS: .sslContext(...)
 * ManagedChannel channel = VerbenaGrpc.channel("host", 7471).usePlaintext().build();   // TLS is gRPC's default
 * }</pre>
 *
 * <p>A client needs a server that uses Verbena, unless it connects by a ladder. A server may accept clients without
 * Verbena on the same port:
 *
 * <pre>{@code
 * VerbenaGrpc.server(7471).withOption(RdmaChannelOption.PLAIN_TCP, true)
 * }</pre>
 *
 * <p>also accepts gRPC's usual clients, with or without TLS as the server is set up. It needs the provider {@code
 * soft}, by itself or among others, as in {@code -Dorg.verbena.provider=all}.
 *
 * <p>A client of servers with and without RDMA connects by a ladder: each of its connections uses the best transport
 * that both ends have, as {@link org.verbena.api.RdmaLadder} describes. In this example that is verbs or soft, with
 * TLS, which is gRPC's default:
 *
 * <pre>{@code
 * VerbenaGrpc.channel("host", 7471, LadderOptions.DEFAULTS.withMinimumRung("soft"))
 * }</pre>
 *
 * <p>When a connection is lost, gRPC reconnects, again by the ladder. The methods without {@code LadderOptions} use the
 * default ladder if their loops were made with the provider {@code ladder}.
 *
 * <p>{@link #nativeServer} and {@link #nativeChannel} leave HTTP/2 out: calls are messages of Verbena's protocol.
 *
 * <p>The methods without a group share one group of daemon threads for the whole process, which uses the configured
 * provider ({@code -Dorg.verbena.provider}); those with {@code LadderOptions} share another, unless that provider is
 * {@code ladder}. Any thread.
 */
public final class VerbenaGrpc {
    /** An HTTP proxy, which gRPC takes from the property {@code https.proxyHost}, cannot pass RDMA on. */
    static final ProxyDetector NO_PROXY = address -> null;

    private VerbenaGrpc() {}

    private static @Nullable RdmaEventLoopGroup shared;

    private static @Nullable RdmaEventLoopGroup sharedLadder;

    /** Made on first use, and again if that fails: by a static initializer it would have failed for ever. */
    private static synchronized RdmaEventLoopGroup sharedGroup() {
        if (shared == null) {
            shared = newGroup(ProviderChoice.configured(), "verbena-grpc");
        }
        return shared;
    }

    /** Made when a client asks for a ladder first. */
    private static synchronized RdmaEventLoopGroup sharedLadder() {
        if (sharedLadder == null) {
            sharedLadder = ProviderChoice.configured().equals(ProviderSet.LADDER)
                    ? sharedGroup()
                    : newGroup(ProviderSet.LADDER, "verbena-grpc-ladder");
        }
        return sharedLadder;
    }

    private static RdmaEventLoopGroup newGroup(String provider, String threads) {
        return new RdmaEventLoopGroup(
                ProviderSet.choose(provider, null),
                0,
                new DefaultThreadFactory(threads, true),
                CompletionLoopOptions.DEFAULTS);
    }

    /**
     * A builder of client channels.
     *
     * @param host a name or address
     * @param port the server's port
     * @return a builder; TLS unless {@code usePlaintext()} is called
     */
    public static NettyChannelBuilder channel(String host, int port) {
        return overRdma(NettyChannelBuilder.forAddress(host, port));
    }

    /**
     * A builder of client channels on the given loops.
     *
     * @param host a name or address
     * @param port the server's port
     * @param group the loops; it must outlive the channel
     * @return a builder; TLS unless {@code usePlaintext()} is called
     */
    public static NettyChannelBuilder channel(String host, int port, RdmaEventLoopGroup group) {
        return overRdma(NettyChannelBuilder.forAddress(host, port), group);
    }

    /**
     * A builder of client channels that connect by a ladder.
     *
     * @param host a name or address
     * @param port the server's port
     * @param ladder what is tried, when, and what is refused
     * @return a builder; TLS unless {@code usePlaintext()} is called
     */
    public static NettyChannelBuilder channel(String host, int port, LadderOptions ladder) {
        return overLadder(NettyChannelBuilder.forAddress(host, port), ladder, sharedLadder());
    }

    /**
     * A builder of client channels that connect by a ladder, on the given loops.
     *
     * @param host a name or address
     * @param port the server's port
     * @param ladder what is tried, when, and what is refused
     * @param group the loops, of all rungs, as the provider {@code ladder} gives them; it must outlive the channel
     * @return a builder; TLS unless {@code usePlaintext()} is called
     */
    public static NettyChannelBuilder channel(String host, int port, LadderOptions ladder, RdmaEventLoopGroup group) {
        return overLadder(NettyChannelBuilder.forAddress(host, port), ladder, group);
    }

    /**
     * A builder of servers that listen on all addresses.
     *
     * @param port the port to listen at; 0 selects any free port
     * @return a builder; without TLS unless {@code sslContext} is called
     */
    public static NettyServerBuilder server(int port) {
        return overRdma(NettyServerBuilder.forPort(port));
    }

    /**
     * A builder of servers.
     *
     * @param address the address to listen at
     * @return a builder; without TLS unless {@code sslContext} is called
     */
    public static NettyServerBuilder server(SocketAddress address) {
        return overRdma(NettyServerBuilder.forAddress(address));
    }

    /**
     * A builder of servers on the given loops.
     *
     * @param address the address to listen at
     * @param group the loops; it must outlive the server
     * @return a builder; without TLS unless {@code sslContext} is called
     */
    public static NettyServerBuilder server(SocketAddress address, RdmaEventLoopGroup group) {
        return overRdma(NettyServerBuilder.forAddress(address), group);
    }

    /**
     * Makes an existing builder's channels use RDMA, for builders with a target, credentials or other settings. They
     * connect without a proxy.
     *
     * @param builder changed, and returned
     * @return the builder
     */
    public static NettyChannelBuilder overRdma(NettyChannelBuilder builder) {
        return overRdma(builder, sharedGroup());
    }

    /**
     * Makes an existing builder's channels use RDMA, on the given loops. They connect without a proxy.
     *
     * @param builder changed, and returned
     * @param group the loops; it must outlive the channel
     * @return the builder
     */
    public static NettyChannelBuilder overRdma(NettyChannelBuilder builder, RdmaEventLoopGroup group) {
        return overRdma(builder, group, group.socketChannelClass()).proxyDetector(NO_PROXY);
    }

    private static NettyChannelBuilder overRdma(
            NettyChannelBuilder builder, RdmaEventLoopGroup group, Class<? extends Channel> channels) {
        return builder.channelType(channels, InetSocketAddress.class)
                .eventLoopGroup(group)
                .withOption(RdmaChannelOption.REGISTERED_ALLOCATOR, true);
    }

    /**
     * Makes an existing builder's channels connect by a ladder, for builders with a target, credentials or other
     * settings.
     *
     * @param builder changed, and returned
     * @param ladder what is tried, when, and what is refused
     * @return the builder
     */
    public static NettyChannelBuilder overLadder(NettyChannelBuilder builder, LadderOptions ladder) {
        return overLadder(builder, ladder, sharedLadder());
    }

    /**
     * Makes an existing builder's channels connect by a ladder, on the given loops.
     *
     * @param builder changed, and returned
     * @param ladder what is tried, when, and what is refused
     * @param group the loops, of all rungs, as the provider {@code ladder} gives them; it must outlive the channel
     * @return the builder
     */
    public static NettyChannelBuilder overLadder(
            NettyChannelBuilder builder, LadderOptions ladder, RdmaEventLoopGroup group) {
        return overRdma(builder, group, LadderSocketChannel.class).withOption(RdmaChannelOption.LADDER, ladder);
    }

    /**
     * Makes an existing builder's server listen for RDMA connections.
     *
     * @param builder changed, and returned
     * @return the builder
     */
    public static NettyServerBuilder overRdma(NettyServerBuilder builder) {
        return overRdma(builder, sharedGroup());
    }

    /**
     * Makes an existing builder's server listen for RDMA connections, on the given loops.
     *
     * @param builder changed, and returned
     * @param group the loops; it must outlive the server
     * @return the builder
     */
    public static NettyServerBuilder overRdma(NettyServerBuilder builder, RdmaEventLoopGroup group) {
        return builder.channelType(RdmaServerSocketChannel.class)
                .bossEventLoopGroup(group)
                .workerEventLoopGroup(group)
                .withChildOption(RdmaChannelOption.REGISTERED_ALLOCATOR, true);
    }

    /**
     * A builder of client channels whose calls are messages of Verbena's protocol, without HTTP/2. Experimental.
     *
     * @param host a name or address
     * @param port the server's port
     * @return a builder, on which {@code usePlaintext()} must be called
     */
    @ExperimentalApi("native transport")
    public static NativeChannelBuilder nativeChannel(String host, int port) {
        return nativeChannel(host, port, sharedGroup());
    }

    /**
     * A builder of client channels whose calls are messages of Verbena's protocol, on the given loops. Experimental.
     *
     * @param host a name or address
     * @param port the server's port
     * @param group the loops; it must outlive the channel, and must not have a ladder
     * @return a builder, on which {@code usePlaintext()} must be called
     */
    @ExperimentalApi("native transport")
    public static NativeChannelBuilder nativeChannel(String host, int port, RdmaEventLoopGroup group) {
        return new NativeChannelBuilder(GrpcUtil.authorityFromHostAndPort(host, port), group);
    }

    /**
     * A builder of client channels whose calls are messages of Verbena's protocol, for a target of a name resolver.
     * Experimental.
     *
     * @param target for example {@code dns:///host:7471}
     * @param credentials {@link io.grpc.InsecureChannelCredentials}, by themselves or with those of calls: the native
     *     transport has no TLS
     * @param group the loops; it must outlive the channel, and must not have a ladder
     * @return a builder
     * @throws IllegalArgumentException the credentials need TLS
     */
    @ExperimentalApi("native transport")
    public static NativeChannelBuilder nativeChannel(
            String target, ChannelCredentials credentials, RdmaEventLoopGroup group) {
        return NativeChannelBuilder.of(target, credentials, group);
    }

    /**
     * A builder of client channels whose calls are messages of Verbena's protocol, for a target of a name resolver.
     * Experimental.
     *
     * @param target for example {@code verbena:///one:7471,two:7471}
     * @param credentials {@link io.grpc.InsecureChannelCredentials}, by themselves or with those of calls: the native
     *     transport has no TLS
     * @return a builder
     * @throws IllegalArgumentException the credentials need TLS
     */
    @ExperimentalApi("native transport")
    public static NativeChannelBuilder nativeChannel(String target, ChannelCredentials credentials) {
        return nativeChannel(target, credentials, sharedGroup());
    }

    /**
     * A builder of servers for native clients and those of HTTP/2, on all addresses and one port. Experimental.
     *
     * @param port the port to listen at; 0 selects any free port
     * @return a builder of servers without TLS
     */
    @ExperimentalApi("native transport")
    public static NativeServerBuilder nativeServer(int port) {
        return nativeServer(new InetSocketAddress(port));
    }

    /**
     * A builder of servers for native clients and those of HTTP/2, on one port. Experimental.
     *
     * @param address the address to listen at
     * @return a builder of servers without TLS
     */
    @ExperimentalApi("native transport")
    public static NativeServerBuilder nativeServer(SocketAddress address) {
        return nativeServer(address, sharedGroup());
    }

    /**
     * A builder of servers for native clients and those of HTTP/2, on one port and the given loops. Experimental.
     *
     * @param address the address to listen at
     * @param group the loops; it must outlive the server
     * @return a builder of servers without TLS
     */
    @ExperimentalApi("native transport")
    public static NativeServerBuilder nativeServer(SocketAddress address, RdmaEventLoopGroup group) {
        return new NativeServerBuilder(address, group);
    }
}
