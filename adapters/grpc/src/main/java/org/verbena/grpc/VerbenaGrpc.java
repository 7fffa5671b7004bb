package org.verbena.grpc;

import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaStreamChannel;
import org.verbena.api.RdmaStreamServerChannel;
import org.verbena.transport.ProviderChoice;
import org.verbena.transport.spi.CompletionLoopOptions;

/**
 * gRPC over RDMA: the builders of {@code grpc-netty}, with Verbena's channels and event loops in them. What they give is used as over TCP; everything that
 * gRPC has (deadlines, cancellation, streaming, flow control, keepalive, name resolution, reconnecting, TLS) works as it does there.
 *
 * <pre>{@code
 * Server server = VerbenaGrpc.server(7471).addService(service).build().start();        // TLS: .sslContext(...)
 * ManagedChannel channel = VerbenaGrpc.channel("host", 7471).usePlaintext().build();   // TLS is gRPC's default
 * }</pre>
 *
 * <p>Both ends must be Verbena's. The methods without a group share one of daemon threads that lives as long as the process; its provider is the
 * configured one ({@code -Dorg.verbena.provider}). Any thread.
 */
public final class VerbenaGrpc {
    private VerbenaGrpc() {}

    /** Made when it is first needed: choosing a provider may fail, and says why. */
    private static final class SharedGroup {
        static final RdmaEventLoopGroup INSTANCE = new RdmaEventLoopGroup(
                ProviderChoice.choose(ProviderChoice.configured(), null),
                0,
                new DefaultThreadFactory("verbena-grpc", true),
                CompletionLoopOptions.DEFAULTS);

        private SharedGroup() {}
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
     * A builder of client channels on loops of one's own.
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
     * A builder of servers that listen on all addresses.
     *
     * @param port where to listen; 0 for any that is free
     * @return a builder; without TLS unless {@code sslContext} is called
     */
    public static NettyServerBuilder server(int port) {
        return overRdma(NettyServerBuilder.forPort(port));
    }

    /**
     * A builder of servers.
     *
     * @param address where to listen
     * @return a builder; without TLS unless {@code sslContext} is called
     */
    public static NettyServerBuilder server(SocketAddress address) {
        return overRdma(NettyServerBuilder.forAddress(address));
    }

    /**
     * A builder of servers on loops of one's own.
     *
     * @param address where to listen
     * @param group the loops; it must outlive the server
     * @return a builder; without TLS unless {@code sslContext} is called
     */
    public static NettyServerBuilder server(SocketAddress address, RdmaEventLoopGroup group) {
        return overRdma(NettyServerBuilder.forAddress(address), group);
    }

    /**
     * Has an existing builder's channels run over RDMA: for targets, credentials and whatever else builders are made with.
     *
     * @param builder changed, and returned
     * @return the builder
     */
    public static NettyChannelBuilder overRdma(NettyChannelBuilder builder) {
        return overRdma(builder, SharedGroup.INSTANCE);
    }

    /**
     * Has an existing builder's channels run over RDMA, on loops of one's own.
     *
     * @param builder changed, and returned
     * @param group the loops; it must outlive the channel
     * @return the builder
     */
    public static NettyChannelBuilder overRdma(NettyChannelBuilder builder, RdmaEventLoopGroup group) {
        return builder.channelType(RdmaStreamChannel.class, InetSocketAddress.class)
                .eventLoopGroup(group)
                .withOption(RdmaChannelOption.REGISTERED_ALLOCATOR, true);
    }

    /**
     * Has an existing builder's server listen for RDMA connections.
     *
     * @param builder changed, and returned
     * @return the builder
     */
    public static NettyServerBuilder overRdma(NettyServerBuilder builder) {
        return overRdma(builder, SharedGroup.INSTANCE);
    }

    /**
     * Has an existing builder's server listen for RDMA connections, on loops of one's own.
     *
     * @param builder changed, and returned
     * @param group the loops; it must outlive the server
     * @return the builder
     */
    public static NettyServerBuilder overRdma(NettyServerBuilder builder, RdmaEventLoopGroup group) {
        return builder.channelType(RdmaStreamServerChannel.class)
                .bossEventLoopGroup(group)
                .workerEventLoopGroup(group)
                .withChildOption(RdmaChannelOption.REGISTERED_ALLOCATOR, true);
    }
}
