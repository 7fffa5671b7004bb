package org.verbena.transport.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.util.concurrent.EventExecutor;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The allocator serves another transport: Netty's own TCP reads into its buffers and writes from them. */
@Timeout(240)
class NioTransportTest {
    private static final int TOTAL_BYTES = 8 << 20;

    @Test
    void carriesTcpTraffic() throws Exception {
        long seed = System.nanoTime();
        CountingMemoryDomain domain = new CountingMemoryDomain();
        RegisteredBufferPool pool = new RegisteredBufferPool(domain, BufferPoolOptions.DEFAULTS);
        EventLoopGroup group = new MultiThreadIoEventLoopGroup(2, NioIoHandler.newFactory());
        for (EventExecutor loop : group) {
            pool.attach(loop);
        }
        try {
            Channel server = new ServerBootstrap()
                    .group(group)
                    .channel(NioServerSocketChannel.class)
                    .childOption(ChannelOption.ALLOCATOR, pool.allocator())
                    .childHandler(new ChannelInitializer<Channel>() {
                        @Override
                        protected void initChannel(Channel channel) {
                            channel.pipeline().addLast(new ChannelInboundHandlerAdapter() {
                                @Override
                                public void channelRead(ChannelHandlerContext context, Object message) {
                                    context.writeAndFlush(message);
                                }
                            });
                        }
                    })
                    .bind(InetAddress.getLoopbackAddress(), 0)
                    .sync()
                    .channel();
            CRC32C received = new CRC32C();
            int[] receivedBytes = {0};
            var done = group.next().<Void>newPromise();
            Channel client = new Bootstrap()
                    .group(group)
                    .channel(NioSocketChannel.class)
                    .option(ChannelOption.ALLOCATOR, pool.allocator())
                    .handler(new SimpleChannelInboundHandler<ByteBuf>() {
                        @Override
                        protected void channelRead0(ChannelHandlerContext context, ByteBuf part) {
                            received.update(part.nioBuffer());
                            receivedBytes[0] += part.readableBytes();
                            if (receivedBytes[0] == TOTAL_BYTES) {
                                done.setSuccess(null);
                            }
                        }

                        @Override
                        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
                            done.tryFailure(cause);
                        }
                    })
                    .connect((InetSocketAddress) server.localAddress())
                    .sync()
                    .channel();
            CRC32C sent = new CRC32C();
            Random random = new Random(seed);
            for (int left = TOTAL_BYTES; left > 0; ) {
                ByteBuf message = randomMessage(pool, random, left);
                left -= message.readableBytes();
                for (var part : message.nioBuffers()) {
                    sent.update(part);
                }
                client.writeAndFlush(message);
            }
            done.get();
            assertThat(received.getValue()).as("seed %d", seed).isEqualTo(sent.getValue());
            client.close().sync();
            server.close().sync();
        } finally {
            group.shutdownGracefully(0, 5, TimeUnit.SECONDS).sync();
        }
        assertThat(pool.metrics().usedBytes()).as("seed %d", seed).isZero();
        assertThat(pool.metrics().exhaustedBuffers()).isZero();
        pool.close();
        assertThat(domain.liveRegions()).isZero();
    }

    private static ByteBuf randomMessage(RegisteredBufferPool pool, Random random, int maxBytes) {
        CompositeByteBuf message = pool.allocator().compositeBuffer();
        int parts = 1 + random.nextInt(4);
        for (int i = 0; i < parts; i++) {
            byte[] bytes = new byte[random.nextInt(Math.min(100_000, maxBytes / parts + 1) + 1)];
            random.nextBytes(bytes);
            message.addComponent(true, pool.allocator().buffer(16).writeBytes(bytes));
        }
        return message.readableBytes() <= maxBytes ? message : message.writerIndex(maxBytes);
    }
}
