package org.verbena.samples.command;

import io.netty.channel.Channel;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.util.concurrent.TimeUnit;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import picocli.CommandLine.Option;

/** A mixin: runs the same program over RDMA or TCP, which differ in a group and two classes only. */
public final class TransportOption {
    public enum Transport {
        RDMA,
        TCP
    }

    @Option(
            names = "--transport",
            paramLabel = "rdma|tcp",
            defaultValue = "rdma",
            description = "The transport (${DEFAULT-VALUE}).")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    public Transport transport;

    public EventLoopGroup newGroup(ConnectionOptions options) {
        DefaultThreadFactory threads = new DefaultThreadFactory("samples", true);
        return transport == Transport.RDMA
                ? new RdmaEventLoopGroup(
                        ProviderChoice.choose(options.provider, null), 0, threads, CompletionLoopOptions.DEFAULTS)
                : new MultiThreadIoEventLoopGroup(0, threads, NioIoHandler.newFactory());
    }

    public Class<? extends Channel> channelClass() {
        return transport == Transport.RDMA ? RdmaSocketChannel.class : NioSocketChannel.class;
    }

    public Class<? extends ServerChannel> serverChannelClass() {
        return transport == Transport.RDMA ? RdmaServerSocketChannel.class : NioServerSocketChannel.class;
    }

    /** Describes the transport for a server's first line. */
    public static String name(EventLoopGroup group) {
        return group instanceof RdmaEventLoopGroup rdma ? rdma.provider().name() : "tcp";
    }

    public static void end(EventLoopGroup group) {
        if (group instanceof RdmaEventLoopGroup rdma) {
            rdma.close();
        } else {
            group.shutdownGracefully(0, 5, TimeUnit.SECONDS).awaitUninterruptibly();
        }
    }
}
