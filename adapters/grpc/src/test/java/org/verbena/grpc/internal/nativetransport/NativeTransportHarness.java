package org.verbena.grpc.internal.nativetransport;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.internal.ClientStream;
import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.grpc.internal.wire.Frames;
import org.verbena.grpc.internal.wire.Settings;
import org.verbena.transport.spi.Patience;

/** A native server without services, and clients of it: transports as gRPC sees them, and peers that send anything. */
final class NativeTransportHarness {
    static final MethodDescriptor<InputStream, InputStream> METHOD =
            MethodDescriptor.<InputStream, InputStream>newBuilder()
                    .setType(MethodDescriptor.MethodType.BIDI_STREAMING)
                    .setFullMethodName("verbena.Test/method")
                    .setRequestMarshaller(new Identity())
                    .setResponseMarshaller(new Identity())
                    .build();

    private static final class Identity implements MethodDescriptor.Marshaller<InputStream> {
        @Override
        public InputStream stream(InputStream value) {
            return value;
        }

        @Override
        public InputStream parse(InputStream stream) {
            return stream;
        }
    }

    final RdmaEventLoopGroup group;
    private final RdmaEventLoopGroup workers;
    final Recorders.OfServer server = new Recorders.OfServer();
    final NativeServer accepting;
    final InetSocketAddress address;
    private final Channel listening;
    private final List<NativeClientTransport> clients = new ArrayList<>();
    private final List<Channel> peers = new ArrayList<>();

    NativeTransportHarness(String provider, Consumer<NativeSettings> serverSettings) throws Exception {
        this(new RdmaEventLoopGroup(provider, 2), null, serverSettings);
    }

    /**
     * Starts a server.
     *
     * @param group of all
     * @param workers of the server's connections; null for the same
     */
    NativeTransportHarness(
            RdmaEventLoopGroup group, RdmaEventLoopGroup workers, Consumer<NativeSettings> serverSettings)
            throws Exception {
        this.group = group;
        this.workers = workers == null ? group : workers;
        NativeSettings settings = new NativeSettings();
        serverSettings.accept(settings);
        accepting = new NativeServer(List.of(), settings, this.workers);
        accepting.start(server);
        listening = new ServerBootstrap()
                .group(group)
                .channelFactory(() -> {
                    RdmaServerSocketChannel made = new RdmaServerSocketChannel();
                    made.pipeline().addLast(accepting.acceptor());
                    return made;
                })
                .option(RdmaChannelOption.ACCEPT_MESSAGES, true)
                .childHandler(new ChannelInboundHandlerAdapter())
                .bind("127.0.0.1", 0)
                .sync()
                .channel();
        address = (InetSocketAddress) listening.localAddress();
    }

    /** A client that connects. */
    NativeClientTransport connect(
            InetSocketAddress to, Recorders.OfTransport listener, Consumer<NativeSettings> clientSettings) {
        NativeSettings settings = new NativeSettings();
        clientSettings.accept(settings);
        NativeClientTransport client = new NativeClientTransport(
                to, "authority", "agent", Attributes.EMPTY, settings, settings.keepAliveNanos, () -> {});
        clients.add(client);
        Runnable then = client.start(listener, group.next());
        assertThat(then).isNull();
        return client;
    }

    /** A client that is ready. */
    NativeClientTransport connected(Recorders.OfTransport listener) throws Exception {
        NativeClientTransport client = connect(address, listener, settings -> {});
        await("the client is ready", listener.ready);
        return client;
    }

    Recorders.OfConnection connection() throws Exception {
        Recorders.OfConnection connection = Patience.take("a connection at the server", server.connections);
        await("the server is ready", connection.ready);
        return connection;
    }

    static ClientStream open(NativeClientTransport client, Recorders.OfCall listener, Metadata headers) {
        ClientStream stream =
                client.newStream(METHOD, headers, CallOptions.DEFAULT, new ClientStreamTracer[] {new Ignoring()});
        stream.start(listener);
        return stream;
    }

    private static final class Ignoring extends ClientStreamTracer {}

    static InputStream message(byte[] bytes) {
        return new ByteArrayInputStream(bytes);
    }

    static void await(String what, CountDownLatch latch) throws InterruptedException {
        assertThat(latch.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .as(what)
                .isTrue();
    }

    /** A peer that sends what a test writes, and keeps what it gets. */
    static final class Peer extends ChannelInboundHandlerAdapter {
        final BlockingQueue<byte[]> received = new LinkedBlockingQueue<>();
        Channel channel;

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf bytes = (ByteBuf) message;
            byte[] copy = new byte[bytes.readableBytes()];
            bytes.readBytes(copy);
            bytes.release();
            received.add(copy);
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            context.close();
        }

        void send(Consumer<ByteBuf> frames) {
            ByteBuf message = channel.alloc().buffer();
            frames.accept(message);
            channel.writeAndFlush(message);
        }

        void awaitClosed() throws InterruptedException {
            assertThat(channel.closeFuture().await(Patience.LIMIT.toMillis()))
                    .as("the connection is closed")
                    .isTrue();
        }
    }

    /** A client that is no transport of ours. */
    Peer peer() throws Exception {
        Peer peer = new Peer();
        connect(peer).sync();
        return peer;
    }

    /** Connects such a client. */
    ChannelFuture connect(Peer peer) {
        ChannelFuture connected = new Bootstrap()
                .group(group)
                .channel(RdmaChannel.class)
                .handler(peer)
                .connect(address);
        peer.channel = connected.channel();
        peers.add(peer.channel);
        return connected;
    }

    /** A server that is no transport of ours, and the only client that it has. */
    record Served(Peer server, NativeClientTransport client) {}

    /** A server that answers with what a test writes, as soon as it knows that a client is there. */
    Served serve(Recorders.OfTransport listener, Settings announced) throws Exception {
        BlockingQueue<Peer> accepted = new LinkedBlockingQueue<>();
        Channel listens = new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel child) {
                        Peer peer = new Peer();
                        peer.channel = child;
                        child.pipeline().addLast(peer);
                        accepted.add(peer);
                    }
                })
                .bind("127.0.0.1", 0)
                .sync()
                .channel();
        peers.add(listens);
        NativeClientTransport client = connect((InetSocketAddress) listens.localAddress(), listener, settings -> {});
        Peer peer = Patience.take("a client", accepted);
        Patience.take("its settings", peer.received);
        peer.send(into -> Frames.settings(into, announced));
        return new Served(peer, client);
    }

    void close() throws Exception {
        for (NativeClientTransport client : clients) {
            client.shutdownNow(Status.CANCELLED.withDescription("the test is over"));
        }
        peers.forEach(Channel::close);
        listening.close().sync();
        accepting.shutdown();
        group.close();
        workers.close();
    }
}
