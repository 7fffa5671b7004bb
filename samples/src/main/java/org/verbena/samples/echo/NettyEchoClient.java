package org.verbena.samples.echo;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.Promise;
import java.util.ArrayDeque;
import java.util.concurrent.Callable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.Measurement;
import org.verbena.samples.command.Pipelined;
import org.verbena.samples.command.Report;
import org.verbena.samples.command.TrafficOptions;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** The echo client as Netty users write it: replies come in the order of the messages. Compare {@link EchoClient}. */
@Command(name = "netty-echo-client", description = "Sends messages to a netty-echo-server, with Netty's Bootstrap.")
public final class NettyEchoClient implements Callable<Integer> {
    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private TrafficOptions traffic;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private Report report;

    @Override
    public Integer call() throws InterruptedException {
        traffic.check();
        try (RdmaEventLoopGroup group = new RdmaEventLoopGroup(options.provider, 1)) {
            Replies replies = new Replies();
            Channel channel = new Bootstrap()
                    .group(group)
                    .channel(RdmaChannel.class)
                    .handler(replies)
                    .connect(options.host, options.remotePort())
                    .sync()
                    .channel();
            Measurement echo = Pipelined.run(
                            channel.eventLoop(),
                            traffic.count,
                            traffic.window,
                            Long.MAX_VALUE,
                            () -> replies.echo(channel, traffic.sizeBytes))
                    .sync()
                    .getNow();
            report.row("echo " + traffic.sizeBytes + " B x" + traffic.window, echo, traffic.sizeBytes);
            report.member("provider", group.provider().name())
                    .member("local", channel.localAddress())
                    .member("remote", channel.remoteAddress())
                    .end();
            channel.close().sync();
        }
        return CommandLine.ExitCode.OK;
    }

    /** Knows which message each reply belongs to, by their order. */
    private static final class Replies extends SimpleChannelInboundHandler<ByteBuf> {
        private final ArrayDeque<Promise<Integer>> waiting = new ArrayDeque<>();

        Future<?> echo(Channel channel, int sizeBytes) {
            Promise<Integer> reply = channel.eventLoop().newPromise();
            waiting.add(reply);
            channel.writeAndFlush(channel.alloc().buffer(Math.max(1, sizeBytes)).writerIndex(sizeBytes))
                    .addListener(sent -> {
                        if (!sent.isSuccess()) {
                            reply.tryFailure(sent.cause());
                        }
                    });
            return reply;
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
            Promise<Integer> reply = waiting.poll();
            if (reply != null) {
                reply.trySuccess(message.readableBytes());
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            fail(cause);
            context.close();
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            fail(new CommandFailure("the server closed the connection"));
        }

        private void fail(Throwable cause) {
            Promise<Integer> reply = waiting.poll();
            while (reply != null) {
                reply.tryFailure(cause);
                reply = waiting.poll();
            }
        }
    }
}
