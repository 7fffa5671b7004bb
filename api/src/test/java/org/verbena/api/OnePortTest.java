package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpVersion;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.spi.Patience;

/** Clients with and without RDMA on one port of a stream server. */
@Timeout(120)
class OnePortTest {
    private static final InetSocketAddress ANY_PORT = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);

    private final BlockingQueue<Channel> children = new LinkedBlockingQueue<>();
    private final List<Socket> sockets = new ArrayList<>();
    private RdmaEventLoopGroup group;

    @BeforeEach
    void openGroup() {
        group = new RdmaEventLoopGroup("soft", 1);
    }

    @AfterEach
    void closeAll() throws IOException {
        for (Socket socket : sockets) {
            socket.close();
        }
        group.close();
        assertThat(group.isTerminated()).isTrue();
    }

    /** Sends back what comes. */
    @ChannelHandler.Sharable
    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.writeAndFlush(message);
        }
    }

    private ServerBootstrap echoServer() {
        return new ServerBootstrap()
                .group(group)
                .channel(RdmaServerSocketChannel.class)
                .option(RdmaChannelOption.PLAIN_TCP, true)
                .childOption(RdmaChannelOption.REGISTERED_ALLOCATOR, true)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel child) {
                        children.add(child);
                        child.pipeline().addLast(new Echo());
                    }
                });
    }

    private static Channel bind(ServerBootstrap bootstrap) {
        return bootstrap.bind(ANY_PORT).syncUninterruptibly().channel();
    }

    private Socket plain(Channel server) throws IOException {
        Socket socket = new Socket();
        sockets.add(socket);
        socket.setTcpNoDelay(true);
        socket.connect(server.localAddress(), 20_000);
        socket.setSoTimeout(30_000);
        return socket;
    }

    private Channel rdma(Channel server, BlockingQueue<String> replies) {
        return new Bootstrap()
                .group(group)
                .channel(RdmaSocketChannel.class)
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

    private static void assertEchoes(Socket socket, String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(US_ASCII));
        assertThat(new String(socket.getInputStream().readNBytes(text.length()), US_ASCII))
                .isEqualTo(text);
    }

    private Channel child() {
        return Patience.take("a child", children);
    }

    private Carrier carrier(Channel channel) {
        Carrier carrier = Carrier.of(channel);
        assertThat(carrier).isNotNull();
        return carrier;
    }

    @Test
    void servesBothKindsAtOnce() throws Exception {
        ProviderStatistics before = group.providerStatistics();
        Channel server = bind(echoServer());
        Socket tcp = plain(server);
        assertEchoes(tcp, "G");
        Channel plainChild = child();
        assertThat(carrier(plainChild).name()).isEqualTo(Carrier.TCP);
        assertThat(carrier(plainChild).reason()).contains("not an MPA request");
        assertThat(plainChild.parent()).isSameAs(server);

        BlockingQueue<String> replies = new LinkedBlockingQueue<>();
        Channel client = rdma(server, replies);
        assertThat(carrier(client).name()).isEqualTo("soft");
        assertThat(carrier(client).reason()).isEqualTo("requested by name");
        Channel rdmaChild = child();
        assertThat(rdmaChild).isInstanceOf(RdmaSocketChannel.class);
        assertThat(carrier(rdmaChild).name()).isEqualTo("soft");
        client.writeAndFlush(Unpooled.copiedBuffer("over RDMA", US_ASCII)).syncUninterruptibly();
        assertThat(Patience.take("the echo", replies)).isEqualTo("over RDMA");
        assertEchoes(tcp, "and more than twenty bytes over TCP");

        ProviderStatistics during = group.providerStatistics();
        assertThat(during.plainConnections() - before.plainConnections()).isEqualTo(1);
        assertThat(during.openPlainConnections()).isEqualTo(1);
        tcp.close();
        Patience.until(
                "the plain connection is gone", () -> group.providerStatistics().openPlainConnections() == 0);
    }

    @Test
    void servesAClientThatSendsByteByByte() throws Exception {
        Socket tcp = plain(bind(echoServer()));
        String text = "MPA ID Req From somebody who speaks another protocol";
        for (int i = 0; i < text.length(); i++) {
            tcp.getOutputStream().write(text.charAt(i));
        }
        assertThat(new String(tcp.getInputStream().readNBytes(text.length()), US_ASCII))
                .isEqualTo(text);
    }

    /** The bytes that were read to tell the protocol may take several reads of the program's. */
    @Test
    void deliversFirstBytesIntoSmallBuffersAndOnlyWhenAsked() throws Exception {
        Channel server = bind(echoServer()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(ChannelOption.RECVBUF_ALLOCATOR, new FixedRecvByteBufAllocator(3).maxMessagesPerRead(1)));
        Socket tcp = plain(server);
        tcp.getOutputStream().write("GET everything".getBytes(US_ASCII));
        Channel child = child();
        tcp.setSoTimeout(300);
        assertThatThrownBy(() -> tcp.getInputStream().read()).hasMessageContaining("timed out");
        tcp.setSoTimeout(30_000);
        child.read();
        assertThat(new String(tcp.getInputStream().readNBytes(3), US_ASCII)).isEqualTo("GET");
        child.config().setAutoRead(true);
        assertThat(new String(tcp.getInputStream().readNBytes(11), US_ASCII)).isEqualTo(" everything");
    }

    @Test
    void servesHttp() throws Exception {
        Channel server = bind(echoServer().childHandler(new ChannelInitializer<SocketChannel>() {
            @Override
            protected void initChannel(SocketChannel child) {
                child.pipeline()
                        .addLast(
                                new HttpServerCodec(),
                                new HttpObjectAggregator(1 << 16),
                                new SimpleChannelInboundHandler<FullHttpRequest>() {
                                    @Override
                                    protected void channelRead0(ChannelHandlerContext context, FullHttpRequest asked) {
                                        DefaultFullHttpResponse reply = new DefaultFullHttpResponse(
                                                HttpVersion.HTTP_1_1,
                                                HttpResponseStatus.OK,
                                                Unpooled.copiedBuffer("you asked " + asked.uri(), US_ASCII));
                                        reply.headers()
                                                .set(
                                                        HttpHeaderNames.CONTENT_LENGTH,
                                                        reply.content().readableBytes());
                                        context.writeAndFlush(reply);
                                    }
                                });
            }
        }));
        int port = ((InetSocketAddress) server.localAddress()).getPort();
        try (HttpClient http =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()) {
            for (int i = 0; i < 3; i++) {
                HttpResponse<String> reply = http.send(
                        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/" + i))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
                assertThat(reply.body()).isEqualTo("you asked /" + i);
            }
        }
    }

    /** What is in flight reaches the plain peer before its end of stream, and all futures complete. */
    @Test
    void closesWithBothKindsOpen() throws Exception {
        Channel server = bind(echoServer());
        Socket tcp = plain(server);
        assertEchoes(tcp, "hello");
        Channel plainChild = child();
        Channel client = rdma(server, new LinkedBlockingQueue<>());
        Channel rdmaChild = child();
        server.close().syncUninterruptibly();
        assertEchoes(tcp, "accepted connections stay open");
        group.close();
        assertThat(plainChild.closeFuture().isDone()).isTrue();
        assertThat(rdmaChild.closeFuture().isDone()).isTrue();
        assertThat(client.closeFuture().isDone()).isTrue();
        try (InputStream end = tcp.getInputStream()) {
            assertThat(end.read()).isEqualTo(-1);
        }
    }

    @Test
    void bothKindsCountAgainstTheBacklog() throws Exception {
        Channel server =
                bind(echoServer().option(ChannelOption.AUTO_READ, false).option(ChannelOption.SO_BACKLOG, 2));
        server.eventLoop().submit(() -> {}).syncUninterruptibly();
        Socket first = plain(server);
        first.getOutputStream().write('1');
        Patience.until("one waits", () -> waiting(server) == 1);
        Bootstrap client =
                new Bootstrap().group(group).channel(RdmaSocketChannel.class).handler(new Echo());
        Channel second = client.connect(server.localAddress()).channel();
        Patience.until("two wait", () -> waiting(server) == 2);
        Socket third = plain(server);
        third.getOutputStream().write('3');
        assertThat(ended(third)).isTrue();
        assertThatThrownBy(() -> client.connect(server.localAddress()).syncUninterruptibly())
                .hasMessageContaining("backlog is full");
        assertThat(children).isEmpty();
        server.config().setAutoRead(true);
        assertThat(first.getInputStream().read()).isEqualTo('1');
        Patience.until("the second is connected", second::isActive);
    }

    private static int waiting(Channel server) {
        return server.eventLoop()
                .submit(() -> ((RdmaServerChannel) server).waiting0())
                .syncUninterruptibly()
                .getNow();
    }

    private static boolean ended(Socket socket) {
        try {
            return socket.getInputStream().read() < 0;
        } catch (IOException reset) {
            return true;
        }
    }

    @Test
    void takesASilentClientAfterTheGivenTime() throws Exception {
        Channel server = bind(echoServer()
                .option(RdmaChannelOption.PLAIN_TCP_AFTER_MILLIS, 200)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel child) {
                        child.pipeline().addLast(new ChannelInboundHandlerAdapter() {
                            @Override
                            public void channelActive(ChannelHandlerContext context) {
                                context.writeAndFlush(Unpooled.copiedBuffer("220 ready", US_ASCII));
                            }
                        });
                    }
                }));
        assertThat(new String(plain(server).getInputStream().readNBytes(9), US_ASCII))
                .isEqualTo("220 ready");
    }

    /** A client that is forced down to TCP loses speed, and must not bypass the keys. */
    @Test
    void refusesPlainClientsWhereKeysAreWanted() throws Exception {
        PreSharedKeys keys = PreSharedKeys.of("fleet", new byte[32]);
        Channel server = bind(echoServer().childOption(RdmaChannelOption.PRE_SHARED_KEYS, keys));
        for (int i = 0; i < 3; i++) {
            Socket tcp = plain(server);
            tcp.getOutputStream().write('x');
            assertThat(ended(tcp)).isTrue();
        }
        assertThat(children).isEmpty();
        Patience.until("none is left", () -> group.providerStatistics().openPlainConnections() == 0);
    }

    @Test
    void refusesPlainClientsWhoseInitializerWantsKeys() throws Exception {
        PreSharedKeys keys = PreSharedKeys.of("fleet", new byte[32]);
        Channel server = bind(echoServer().childHandler(new ChannelInitializer<SocketChannel>() {
            @Override
            protected void initChannel(SocketChannel child) {
                child.config().setOption(RdmaChannelOption.PRE_SHARED_KEYS, keys);
                child.pipeline().addLast(new Echo());
            }
        }));
        Socket tcp = plain(server);
        tcp.getOutputStream().write('x');
        assertThat(ended(tcp)).isTrue();
    }

    @Test
    void dropsPlainClientsByDefault() throws Exception {
        Channel server = bind(echoServer().option(RdmaChannelOption.PLAIN_TCP, false));
        Socket tcp = plain(server);
        tcp.getOutputStream().write("GET /".getBytes(US_ASCII));
        assertThat(ended(tcp)).isTrue();
        assertThat(children).isEmpty();
    }

    @Test
    void checksItsOptions() {
        RdmaServerSocketChannel channel = new RdmaServerSocketChannel();
        assertThat(channel.config().getOption(RdmaChannelOption.PLAIN_TCP)).isFalse();
        assertThat(channel.config().getOption(RdmaChannelOption.PLAIN_TCP_AFTER_MILLIS))
                .isZero();
        assertThatThrownBy(() -> channel.config().setOption(RdmaChannelOption.PLAIN_TCP_AFTER_MILLIS, -1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("-1 is below 0");
        assertThat(new RdmaServerChannel().config().setOption(RdmaChannelOption.PLAIN_TCP, true))
                .as("a server of messages has no plain clients")
                .isFalse();
    }

    @Test
    void endsItsLoopWithinTime() {
        Channel server = bind(echoServer());
        assertThat(group.shutdownGracefully(0, 5, TimeUnit.SECONDS).awaitUninterruptibly(30, TimeUnit.SECONDS))
                .isTrue();
        assertThat(server.closeFuture().isDone()).isTrue();
    }
}
