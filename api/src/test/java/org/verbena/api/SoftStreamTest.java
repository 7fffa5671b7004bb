package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.Patience;

/** The stream suite on the soft provider. */
class SoftStreamTest extends RdmaStreamSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    @Test
    void manyPiecesThatFillAReceiveAreNotCopied() {
        int pieceBytes = 16 << 10;
        int headerBytes = 9;
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Reader()))) {
            RdmaSocketChannel client = (RdmaSocketChannel) connect(server);
            Channel peer = server.next();
            for (int i = 0; i < 3; i++) {
                client.write(client.alloc().directBuffer(headerBytes).writeZero(headerBytes));
                client.write(client.alloc().directBuffer(pieceBytes).writeZero(pieceBytes));
            }
            client.flush();
            Patience.until("it comes", () -> reader(peer).bytes == 3 * (headerBytes + pieceBytes));
            assertThat(client.statistics().copiedBytes()).isZero();
            closeBoth(client, peer);
        }
    }

    @Test
    void tcpSharesItsLoops() {
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Echo()))) {
            Channel client = connect(server);
            Channel tcpServer = done(
                            "listening for TCP",
                            new ServerBootstrap()
                                    .group(group)
                                    .channel(NioServerSocketChannel.class)
                                    .childHandler(new ChannelInitializer<>() {
                                        @Override
                                        protected void initChannel(Channel accepted) {
                                            accepted.pipeline().addLast(new Echo());
                                        }
                                    })
                                    .bind("127.0.0.1", 0))
                    .channel();
            Channel tcp = done(
                            "connecting by TCP",
                            new Bootstrap()
                                    .group(client.eventLoop())
                                    .channel(NioSocketChannel.class)
                                    .handler(new Reader())
                                    .connect(tcpServer.localAddress()))
                    .channel();
            for (int round = 1; round <= 100; round++) {
                client.writeAndFlush(Unpooled.wrappedBuffer(new byte[1000]));
                tcp.writeAndFlush(Unpooled.wrappedBuffer(new byte[1000]));
                long expected = round * 1000L;
                Patience.until("the echo by RDMA", () -> reader(client).bytes == expected);
                Patience.until("the echo by TCP", () -> reader(tcp).bytes == expected);
            }
            done("closing TCP", tcp.close());
            done("closing TCP", tcpServer.close());
            closeBoth(client, server.next());
        }
    }
}
