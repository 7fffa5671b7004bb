package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;

/**
 * A message by rendezvous in a process of its own, with the memory or the system properties that it needs: provider,
 * host, bytes, and whether in a pooled buffer. Prints what came, and how many keys were made for it.
 */
final class OneMessage {
    private OneMessage() {}

    public static void main(String... arguments) {
        try {
            System.out.println(send(
                    arguments[0], arguments[1], Integer.parseInt(arguments[2]), Boolean.parseBoolean(arguments[3])));
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    /** Sends it within this process, and tells what came. */
    static String send(String provider, String host, int bytes, boolean pooled) throws Exception {
        CompletableFuture<String> came = new CompletableFuture<>();
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 2);
        Channel server = new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
                .childOption(RdmaChannelOption.MAX_MESSAGE_BYTES, Math.max(bytes, 1 << 20))
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel accepting) {
                        accepting.pipeline().addLast(new ChannelInboundHandlerAdapter() {
                            @Override
                            public void channelRead(ChannelHandlerContext context, Object message) {
                                ByteBuf buffer = (ByteBuf) message;
                                came.complete(describe(buffer) + ", keys of the receiver "
                                        + ((RdmaChannel) context.channel())
                                                .statistics()
                                                .registrations());
                                buffer.release();
                            }

                            @Override
                            public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
                                came.completeExceptionally(cause);
                            }
                        });
                    }
                })
                .bind(host, 0)
                .sync()
                .channel();
        RdmaChannel client = (RdmaChannel) new Bootstrap()
                .group(group)
                .channel(RdmaChannel.class)
                .option(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, bytes / 2)
                .handler(new ChannelInboundHandlerAdapter())
                .connect(server.localAddress())
                .sync()
                .channel();
        ByteBuf message = pooled ? client.alloc().directBuffer(bytes, bytes) : Unpooled.directBuffer(bytes, bytes);
        byte[] block = new byte[1 << 20];
        for (int at = 0; at < bytes; at += block.length) {
            for (int i = 0; i < block.length; i += 64) {
                block[i] = (byte) (at >> 16);
                block[i + 1] = (byte) i;
            }
            message.writeBytes(block, 0, Math.min(block.length, bytes - at));
            if (bytes - at <= block.length) {
                break; // at would wrap
            }
        }
        String sent = describe(message);
        client.writeAndFlush(message).sync();
        String outcome = "sent " + sent + ", came " + came.get(100, TimeUnit.SECONDS) + ", keys of the sender "
                + client.statistics().registrations() + ", rendezvous "
                + client.statistics().rendezvousSent();
        client.close().sync();
        group.close();
        return outcome;
    }

    private static String describe(ByteBuf message) {
        CRC32C crc = new CRC32C();
        int step = 1 << 20;
        for (int at = 0; at < message.readableBytes() && at >= 0; at += step) {
            crc.update(message.nioBuffer(at, Math.min(step, message.readableBytes() - at)));
        }
        return message.readableBytes() + " bytes with " + Long.toHexString(crc.getValue());
    }
}
