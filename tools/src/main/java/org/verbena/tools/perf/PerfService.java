package org.verbena.tools.perf;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInitializer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Locale;
import java.util.function.Supplier;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.grpc.VerbenaGrpc;
import org.verbena.transport.Framing;

/** What a perf server has beside messages, each on its own port, {@link #offset()} after that of messages. */
enum PerfService {
    /** Streams over RDMA. */
    STREAMS(1) {
        @Override
        int listen(RdmaEventLoopGroup group, InetSocketAddress address) throws InterruptedException {
            return bind(
                    new ServerBootstrap().group(group).channel(RdmaServerSocketChannel.class),
                    address,
                    StreamServing::new);
        }
    },
    /** Sends with framing RAW. */
    SENDS(2) {
        @Override
        int listen(RdmaEventLoopGroup group, InetSocketAddress address) throws InterruptedException {
            return bind(
                    new ServerBootstrap()
                            .group(group)
                            .channel(RdmaServerChannel.class)
                            .childOption(RdmaChannelOption.FRAMING, Framing.RAW),
                    address,
                    SendServing::new);
        }
    },
    /** Unary gRPC calls over RDMA. */
    CALLS(3) {
        @Override
        int listen(RdmaEventLoopGroup group, InetSocketAddress address) throws IOException {
            return VerbenaGrpc.server(address, group)
                    .directExecutor()
                    .maxInboundMessageSize(PerfCalls.MAX_BYTES)
                    .addService(PerfCalls.service())
                    .build()
                    .start()
                    .getPort();
        }
    };

    private final int offset;

    PerfService(int offset) {
        this.offset = offset;
    }

    /** Starts to serve, on loops of that group and until they end; returns the port. */
    abstract int listen(RdmaEventLoopGroup group, InetSocketAddress address) throws IOException, InterruptedException;

    private static int bind(ServerBootstrap bootstrap, InetSocketAddress address, Supplier<ChannelHandler> handlers)
            throws InterruptedException {
        Channel listening = bootstrap
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        channel.pipeline().addLast(handlers.get());
                    }
                })
                .bind(address)
                .sync()
                .channel();
        return ((InetSocketAddress) listening.localAddress()).getPort();
    }

    /**
     * The number by which clients request it, and the offset of its port from that of messages: 1 for the first, and so
     * on.
     */
    int offset() {
        return offset;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
}
