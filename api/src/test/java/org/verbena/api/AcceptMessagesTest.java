package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.SimpleChannelInboundHandler;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/** Clients that speak messages on the port of a stream server. */
@Timeout(120)
class AcceptMessagesTest {
    private final BlockingQueue<Channel> children = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> replies = new LinkedBlockingQueue<>();
    private RdmaEventLoopGroup group;

    @BeforeEach
    void openGroup() {
        group = new RdmaEventLoopGroup("soft", 1);
    }

    @AfterEach
    void closeGroup() {
        group.close();
    }

    private Channel echoServer(boolean messages) {
        return new ServerBootstrap()
                .group(group)
                .channel(RdmaServerSocketChannel.class)
                .option(RdmaChannelOption.ACCEPT_MESSAGES, messages)
                .childHandler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel child) {
                        children.add(child);
                        child.pipeline().addLast(new ChannelInboundHandlerAdapter() {
                            @Override
                            public void channelRead(ChannelHandlerContext context, Object message) {
                                context.writeAndFlush(message);
                            }
                        });
                    }
                })
                .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .syncUninterruptibly()
                .channel();
    }

    private Channel connect(Class<? extends Channel> type, Channel server) {
        return new Bootstrap()
                .group(group)
                .channel(type)
                .handler(new SimpleChannelInboundHandler<ByteBuf>() {
                    @Override
                    protected void channelRead0(ChannelHandlerContext context, ByteBuf message) {
                        replies.add(message.toString(US_ASCII));
                    }
                })
                .connect(server.localAddress())
                .syncUninterruptibly()
                .channel();
    }

    private void assertEchoes(Channel client) {
        client.writeAndFlush(Unpooled.copiedBuffer("echo", US_ASCII));
        assertThat(Patience.take("the reply", replies)).isEqualTo("echo");
    }

    @Test
    void theRequestTellsMessagesFromBytes() {
        Channel server = echoServer(true);
        assertEchoes(connect(RdmaChannel.class, server));
        assertThat(Patience.take("a child", children)).isInstanceOf(RdmaChannel.class);
        assertEchoes(connect(RdmaSocketChannel.class, server));
        assertThat(Patience.take("a child", children)).isInstanceOf(RdmaSocketChannel.class);
    }

    @Test
    void withoutTheOptionMessagesAreRejected() {
        Channel server = echoServer(false);
        assertThat(catchThrowable(() -> connect(RdmaChannel.class, server)))
                .isInstanceOf(ConnectionException.Rejected.class);
    }
}
