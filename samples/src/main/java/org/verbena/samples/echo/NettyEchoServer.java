package org.verbena.samples.echo;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
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
                            channel.pipeline().addLast(new EchoHandler());
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
}
