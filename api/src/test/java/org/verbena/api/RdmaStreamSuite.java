package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.DefaultFileRegion;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.DatagramPacket;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioDatagramChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.net.ConnectException;
import java.net.SocketAddress;
import java.net.SocketException;
import java.nio.channels.ClosedChannelException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.buffer.RdmaByteBufAllocator;
import org.verbena.transport.spi.Patience;

/** The stream suite on RDMA, and what only that has. A subclass names the provider. */
public abstract class RdmaStreamSuite extends StreamSuite {
    /** Which provider. */
    protected abstract String provider();

    @Override
    protected EventLoopGroup newGroup() {
        return new RdmaEventLoopGroup(provider(), 3);
    }

    @Override
    protected Class<? extends Channel> channelClass() {
        return RdmaSocketChannel.class;
    }

    @Override
    protected Class<? extends ServerChannel> serverChannelClass() {
        return RdmaServerSocketChannel.class;
    }

    @Test
    void aChannelOfMessagesIsRejectedWithAReason() {
        try (Server server = listen()) {
            Bootstrap messages =
                    new Bootstrap().group(group).channel(RdmaChannel.class).handler(new Reader());
            assertThat(failure("connecting", messages.connect(host(), server.port())))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("framing MESSAGE is not STREAM")
                    .hasMessageContaining("use RdmaSocketChannel");
        }
    }

    /** Sends back what comes over UDP. */
    private static final class UdpEcho extends SimpleChannelInboundHandler<DatagramPacket> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, DatagramPacket packet) {
            context.writeAndFlush(new DatagramPacket(packet.content().retain(), packet.sender()));
        }
    }

    /** Counts what comes over UDP. */
    private static final class UdpCount extends SimpleChannelInboundHandler<DatagramPacket> {
        volatile int packets;

        @Override
        @SuppressWarnings("NonAtomicOperationOnVolatileField") // only the loop writes it
        protected void channelRead0(ChannelHandlerContext context, DatagramPacket packet) {
            packets++;
        }
    }

    @Test
    void tcpAndUdpShareItsLoops() {
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Echo()))) {
            Channel client = connect(server);
            Channel peer = server.next();
            Bootstrap udpBootstrap = new Bootstrap().channel(NioDatagramChannel.class);
            Channel udpServer = done(
                            "binding UDP",
                            udpBootstrap
                                    .clone(peer.eventLoop())
                                    .handler(new UdpEcho())
                                    .bind("127.0.0.1", 0))
                    .channel();
            UdpCount count = new UdpCount();
            Channel udp = done(
                            "connecting UDP",
                            udpBootstrap
                                    .clone(client.eventLoop())
                                    .handler(count)
                                    .connect(udpServer.localAddress()))
                    .channel();
            Channel tcpServer = done(
                            "listening for TCP",
                            new ServerBootstrap()
                                    .group(peer.eventLoop())
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
            for (int i = 1; i <= 100; i++) {
                int rounds = i;
                client.writeAndFlush(Unpooled.wrappedBuffer(new byte[1000]));
                tcp.writeAndFlush(Unpooled.wrappedBuffer(new byte[1000]));
                udp.writeAndFlush(Unpooled.wrappedBuffer(new byte[1000]));
                Patience.until("the echo by RDMA", () -> reader(client).bytes == rounds * 1000L);
                Patience.until("the echo by TCP", () -> reader(tcp).bytes == rounds * 1000L);
                Patience.until("the echo by UDP", () -> count.packets == rounds);
            }
            for (Channel each : new Channel[] {tcp, tcpServer, udp, udpServer}) {
                done("closing a socket", each.close());
            }
            client.writeAndFlush(Unpooled.wrappedBuffer(new byte[1000]));
            Patience.until("the echo by RDMA alone", () -> reader(client).bytes == 101_000);
            closeBoth(client, peer);
        }
    }

    @Test
    void closingSendsFilesOfAnyLengthThatWereFlushed(@TempDir Path folder) throws Exception {
        byte[] content = new byte[5_000_003];
        new Random(11).nextBytes(content);
        Path file = Files.write(folder.resolve("file"), content);
        MessageDigest expected = MessageDigest.getInstance("SHA-256");
        try (Server server = listen()) {
            Channel client = connect(server);
            Channel peer = server.next();
            List<ChannelFuture> writes = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                writes.add(client.write(new DefaultFileRegion(file.toFile(), 0, content.length)));
                writes.add(client.write(Unpooled.copiedBuffer(new byte[] {1, 2, 3})));
                expected.update(content);
                expected.update(new byte[] {1, 2, 3});
            }
            client.flush();
            ChannelFuture never = client.write(Unpooled.copiedBuffer(new byte[100]));
            ChannelFuture closing = client.close();
            client.flush();
            ChannelFuture late = client.writeAndFlush(Unpooled.copiedBuffer(new byte[100]));
            done("closing", closing);
            for (ChannelFuture write : writes) {
                done("what was flushed", write);
            }
            assertThat(failure("what was not flushed", never)).isInstanceOf(ClosedChannelException.class);
            assertThat(failure("what was written after close", late)).isInstanceOf(ClosedChannelException.class);
            done("the peer closing", peer.closeFuture());
            assertThat(reader(peer).bytes).isEqualTo(2L * (content.length + 3));
            assertThat(reader(peer).hash()).isEqualTo(HexFormat.of().formatHex(expected.digest()));
            assertThat(reader(client).failures).isEmpty();
            assertThat(reader(peer).failures).isEmpty();
        }
    }

    @Test
    void shuttingDownTheOutputSendsFilesOfAnyLengthFirst(@TempDir Path folder) throws Exception {
        Path file = Files.write(folder.resolve("file"), new byte[5_000_003]);
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.ALLOW_HALF_CLOSURE, true);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            SocketChannel client = (SocketChannel) connect(server);
            Channel peer = server.next();
            client.write(new DefaultFileRegion(file.toFile(), 0, 5_000_003));
            client.write(Unpooled.copiedBuffer(new byte[10]));
            client.flush();
            ChannelFuture shutdown = client.shutdownOutput();
            ChannelFuture closing = client.close();
            done("shutting down the output", shutdown);
            done("closing", closing);
            assertThat(Patience.take("the end", reader(peer).events)).isEqualTo(ChannelInputShutdownEvent.INSTANCE);
            assertThat(reader(peer).bytes).isEqualTo(5_000_013);
            done("the peer closing", peer.close());
        }
    }

    @Test
    void closingGivesUpAFileThatThePeerDoesNotTake(@TempDir Path folder) throws Exception {
        Path file = Files.write(folder.resolve("file"), new byte[5_000_003]);
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.AUTO_READ, false);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            Channel client = connect(bootstrap().option(RdmaChannelOption.CLOSE_TIMEOUT_MILLIS, 300), server);
            Channel peer = server.next();
            ChannelFuture write = client.writeAndFlush(new DefaultFileRegion(file.toFile(), 0, 5_000_003));
            done("closing", client.close());
            assertThat(failure("the file", write))
                    .isInstanceOf(SocketException.class)
                    .hasMessageContaining("300 ms");
            done("the peer closing", peer.close());
        }
    }

    @Test
    void lingeringLimitsHowLongClosingTakes(@TempDir Path folder) throws Exception {
        Path file = Files.write(folder.resolve("file"), new byte[5_000_003]);
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.AUTO_READ, false);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            Channel client = connect(bootstrap().option(ChannelOption.SO_LINGER, 1), server);
            Channel peer = server.next();
            ChannelFuture write = client.writeAndFlush(new DefaultFileRegion(file.toFile(), 0, 5_000_003));
            done("closing", client.close());
            assertThat(failure("the file", write)).isInstanceOf(ClosedChannelException.class);
            assertThat(reader(client).failures).isEmpty();
            done("the peer closing", peer.close());
        }
    }

    @Test
    void closingGivesBackAnAddressThatWasNotConnectedFrom() {
        Channel bound = done("binding", bootstrap().bind(host(), 0)).channel();
        SocketAddress address = bound.localAddress();
        assertThat(failure("binding twice", bound.bind(address))).isInstanceOf(IllegalStateException.class);
        done("closing", bound.close());
        done(
                "closing",
                done("binding again", bootstrap().bind(address)).channel().close());
    }

    @Test
    void refusesAnotherFraming() {
        RdmaSocketChannel stream = new RdmaSocketChannel();
        assertThatThrownBy(() -> stream.config().setOption(RdmaChannelOption.FRAMING, Framing.MESSAGE))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("RdmaChannel");
        assertThatThrownBy(() -> new RdmaChannel().config().setOption(RdmaChannelOption.FRAMING, Framing.STREAM))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("RdmaSocketChannel");
    }

    @Test
    void registeredMemoryIsUsedThoughAnotherAllocatorIsSet() {
        try (Server server = listen()) {
            Channel client = connect(
                    bootstrap()
                            .option(ChannelOption.ALLOCATOR, io.netty.buffer.PooledByteBufAllocator.DEFAULT)
                            .option(RdmaChannelOption.REGISTERED_ALLOCATOR, true),
                    server);
            assertThat(client.alloc()).isInstanceOf(RdmaByteBufAllocator.class);
            Channel peer = server.next();
            done("closing", client.close());
            done("the peer closing", peer.closeFuture());
        }
    }

    @Test
    void aFailureToConnectKeepsItsCause() {
        Throwable failure = failure("connecting to nobody", bootstrap().connect(host(), 1));
        assertThat(failure).isInstanceOf(ConnectException.class);
        assertThat(failure.getCause()).isInstanceOf(ConnectionException.class);
    }
}
