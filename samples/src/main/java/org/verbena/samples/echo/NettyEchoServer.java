package org.verbena.samples.echo;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.ServerSignals;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/**
 * The echo server once more, as Netty users write it: change the group and the channel class, keep the rest. Compare
 * {@link EchoServer}, which does the same with the short form.
 */
@Command(
        name = "netty-echo-server",
        description = "Sends back what netty-echo-client sends, with Netty's ServerBootstrap.")
public final class NettyEchoServer implements Callable<Integer> {
    private static final Logger LOG = LoggerFactory.getLogger(NettyEchoServer.class);

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        ServerSignals.endWithZero();
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup(options.provider, 0)) {
            Channel server = new ServerBootstrap()
                    .group(group)
                    .channel(RdmaServerChannel.class)
                    .option(ChannelOption.SO_BACKLOG, 128)
                    .childHandler(new ChannelInitializer<RdmaChannel>() {
                        @Override
                        protected void initChannel(RdmaChannel channel) {
                            channel.pipeline().addLast(new Echo());
                        }
                    })
                    .bind(options.host, options.listenPort())
                    .sync()
                    .channel();
            PrintWriter out = spec.commandLine().getOut();
            out.println("netty-echo-server listens on " + server.localAddress() + " ("
                    + group.provider().name() + ")");
            out.flush();
            server.closeFuture().sync();
        }
        return CommandLine.ExitCode.OK;
    }

    /** Writes what it reads, and stops reading while the peer does not take it. */
    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.write(message);
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }

        @Override
        public void channelWritabilityChanged(ChannelHandlerContext context) {
            context.channel().config().setAutoRead(context.channel().isWritable());
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            LOG.warn("{}: {}", context.channel(), cause.getMessage());
            context.close();
        }
    }
}
