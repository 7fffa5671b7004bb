package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** A message by rendezvous out of a pooled buffer, in a process with system properties of its own: provider, host. Prints how many keys it took. */
final class OneRendezvous {
    private static final int BYTES = 200_000;

    private OneRendezvous() {}

    public static void main(String... arguments) {
        try {
            run(arguments);
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static void run(String... arguments) throws Exception {
        CompletableFuture<Long> came = new CompletableFuture<>();
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(arguments[0], 2);
        Channel server = new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel accepting) {
                        accepting.pipeline().addLast(new ChannelInboundHandlerAdapter() {
                            @Override
                            public void channelRead(ChannelHandlerContext context, Object message) {
                                ByteBuf buffer = (ByteBuf) message;
                                int length = buffer.readableBytes();
                                buffer.release();
                                if (length == BYTES) {
                                    came.complete(((RdmaChannel) context.channel())
                                            .statistics()
                                            .registrations());
                                }
                            }

                            @Override
                            public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
                                came.completeExceptionally(cause);
                            }
                        });
                    }
                })
                .bind(arguments[1], 0)
                .sync()
                .channel();
        RdmaChannel client = (RdmaChannel) new Bootstrap()
                .group(group)
                .channel(RdmaChannel.class)
                .option(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, BYTES / 2)
                .handler(new ChannelInboundHandlerAdapter())
                .connect(server.localAddress())
                .sync()
                .channel();
        client.writeAndFlush(client.alloc().directBuffer(BYTES).writeZero(BYTES))
                .sync();
        long received = came.get(20, TimeUnit.SECONDS);
        System.out.println("rendezvous " + client.statistics().rendezvousSent() + ", keys of the sender "
                + client.statistics().registrations() + ", of the receiver " + received);
        client.close().sync();
        group.close();
    }
}
