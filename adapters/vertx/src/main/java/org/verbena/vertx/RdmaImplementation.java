package org.verbena.vertx;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFactory;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.ServerChannel;
import io.netty.channel.socket.DatagramChannel;
import io.netty.channel.socket.InternetProtocolFamily;
import io.netty.channel.socket.SocketChannel;
import io.vertx.core.datagram.DatagramSocketOptions;
import io.vertx.core.net.TcpConfig;
import io.vertx.core.spi.transport.Transport;
import java.net.SocketAddress;
import java.util.concurrent.ThreadFactory;
import org.jspecify.annotations.Nullable;
import org.verbena.api.LadderSocketChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;

/**
 * Vert.x's interface of a transport. Streams use Verbena's channels; datagrams and domain sockets use NIO's.
 *
 * @param choice the provider; the first one of a ladder
 * @param ladder of clients; null for none
 * @param options of the loops
 */
@SuppressWarnings("deprecation") // Vert.x has InternetProtocolFamily in its signatures
record RdmaImplementation(ProviderChoice choice, @Nullable LadderOptions ladder, CompletionLoopOptions options)
        implements Transport {
    private static final Transport NIO = io.vertx.core.transport.Transport.NIO.implementation();

    @Override
    public IoHandlerFactory ioHandlerFactory() {
        return choice.provider().newIoHandlerFactory(options);
    }

    @Override
    public EventLoopGroup eventLoopGroup(int type, int threads, ThreadFactory threadFactory, int ioRatio) {
        return ladder == null
                ? new RdmaEventLoopGroup(choice, threads, threadFactory, options)
                : new RdmaEventLoopGroup(ladder, threads, threadFactory, options);
    }

    @Override
    public ChannelFactory<? extends Channel> channelFactory(boolean domainSocket) {
        return domainSocket ? NIO.channelFactory(true) : () -> withCopies(newChannel());
    }

    private SocketChannel newChannel() {
        return ladder == null ? new RdmaSocketChannel() : new LadderSocketChannel();
    }

    @Override
    public ChannelFactory<? extends ServerChannel> serverChannelFactory(boolean domainSocket) {
        return domainSocket ? NIO.serverChannelFactory(true) : RdmaImplementation::newServerChannel;
    }

    private static SocketChannel withCopies(SocketChannel channel) {
        channel.pipeline().addFirst(HeapCopies.INSTANCE);
        return channel;
    }

    private static RdmaServerSocketChannel newServerChannel() {
        RdmaServerSocketChannel server = new RdmaServerSocketChannel();
        server.pipeline().addFirst(new ChannelInboundHandlerAdapter() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object accepted) {
                context.fireChannelRead(withCopies((SocketChannel) accepted));
            }
        });
        return server;
    }

    // ---- NIO's
    // -----------------------------------------------------------------------------------------------------------------

    @Override
    public boolean supportsDomainSockets() {
        return NIO.supportsDomainSockets();
    }

    @Override
    public SocketAddress convert(io.vertx.core.net.SocketAddress address) {
        return NIO.convert(address);
    }

    @Override
    public io.vertx.core.net.@Nullable SocketAddress convert(SocketAddress address) {
        return NIO.convert(address);
    }

    @Override
    public DatagramChannel datagramChannel(InternetProtocolFamily family) {
        return NIO.datagramChannel(family);
    }

    @Override
    public ChannelFactory<? extends DatagramChannel> datagramChannelFactory() {
        return NIO.datagramChannelFactory();
    }

    @Override
    public void configure(TcpConfig config, boolean domainSocket, Bootstrap bootstrap) {
        NIO.configure(config, domainSocket, bootstrap);
    }

    @Override
    public void configure(TcpConfig config, boolean domainSocket, ServerBootstrap bootstrap) {
        NIO.configure(config, domainSocket, bootstrap);
    }

    @Override
    public void configure(DatagramChannel channel, DatagramSocketOptions socketOptions) {
        NIO.configure(channel, socketOptions);
    }
}
