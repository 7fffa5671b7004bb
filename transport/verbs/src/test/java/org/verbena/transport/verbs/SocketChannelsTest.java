package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler.Sharable;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.socket.DatagramPacket;
import io.netty.channel.socket.nio.NioDatagramChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** Netty's TCP and UDP channels share a loop with endpoints, on devices in memory. */
@Timeout(240)
class SocketChannelsTest {
    private static final String HOST = "127.0.0.1";

    private final VerbsProvider provider = new VerbsProvider();
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;

    @BeforeEach
    void startLoop() throws Exception {
        StubDevice.install();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
    }

    @AfterEach
    void endLoop() {
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
    }

    /** Sends back what comes, of either protocol. */
    @Sharable
    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.writeAndFlush(
                    message instanceof DatagramPacket packet
                            ? new DatagramPacket(packet.content(), packet.sender())
                            : message);
        }
    }

    /** Counts what comes. */
    private static final class Count extends ChannelInboundHandlerAdapter {
        final AtomicLong bytes = new AtomicLong();

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf buffer = message instanceof DatagramPacket packet ? packet.content() : (ByteBuf) message;
            bytes.addAndGet(buffer.readableBytes());
            buffer.release();
        }
    }

    private static Channel channel(ChannelFuture future) {
        Patience.await("a channel", future);
        return future.channel();
    }

    private Channel listen() {
        return channel(new ServerBootstrap()
                .group(group)
                .channel(NioServerSocketChannel.class)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel accepted) {
                        accepted.pipeline().addLast(new Echo());
                    }
                })
                .bind(HOST, 0));
    }

    private Channel connect(Channel server, Count count) {
        return channel(new Bootstrap()
                .group(group)
                .channel(NioSocketChannel.class)
                .handler(count)
                .connect(server.localAddress()));
    }

    private RecordingEndpointHandler connectEndpoint() {
        RecordingEndpointHandler handler = new RecordingEndpointHandler("endpoint", loop);
        EndpointOptions options = EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = 60_000;
            o.sendDepth = 16;
            o.receiveDepth = 4;
        });
        provider.connect(loop, StubDevice.ROCE, options, handler);
        handler.awaitConnected();
        return handler;
    }

    private static WorkRequest send(RegisteredMemory region) {
        WorkRequest work = new WorkRequest(1).asSend(1, 0);
        work.buffers().add(region, 0, 64);
        return work;
    }

    private static void echo(Channel client, Count count, int rounds, int bytes) {
        for (int i = 0; i < rounds; i++) {
            long expected = count.bytes.get() + bytes;
            client.writeAndFlush(Unpooled.wrappedBuffer(new byte[bytes]));
            Patience.until("the echo", () -> count.bytes.get() == expected);
        }
    }

    @Test
    void tcpAndUdpAreServedWhetherTheLoopIsBusyOrBlocks() {
        Count tcpCount = new Count();
        Count udpCount = new Count();
        RecordingEndpointHandler handler = connectEndpoint();
        try (Arena arena = Arena.ofShared();
                RegisteredMemory region = handler.awaitPrepared()
                        .memoryDomain()
                        .register(arena.allocate(4096), Set.of(MemoryDomain.Access.LOCAL_WRITE))) {
            Channel server = listen();
            Channel tcp = connect(server, tcpCount);
            Channel udpServer = channel(new Bootstrap()
                    .group(group)
                    .channel(NioDatagramChannel.class)
                    .handler(new Echo())
                    .bind(HOST, 0));
            Channel udp = channel(new Bootstrap()
                    .group(group)
                    .channel(NioDatagramChannel.class)
                    .handler(udpCount)
                    .connect(udpServer.localAddress()));

            // Each completion posts the next: the loop never blocks.
            AtomicBoolean over = new AtomicBoolean();
            AtomicLong sent = new AtomicLong();
            handler.whenSent((endpoint, completion) -> {
                sent.incrementAndGet();
                if (!over.get()) {
                    handler.post(endpoint, send(region));
                    endpoint.flush();
                }
            });
            handler.send(send(region));
            echo(tcp, tcpCount, 100, 10_000);
            echo(udp, udpCount, 100, 1000);
            long before = sent.get();
            Patience.until("completions come as well", () -> sent.get() > before + 1000);
            over.set(true);
            Patience.turns(loop);

            // One after the other: the loop blocks in between.
            for (int i = 0; i < 100; i++) {
                echo(tcp, tcpCount, 1, 10_000);
                long known = sent.get();
                handler.send(send(region));
                Patience.until("the send is done", () -> sent.get() == known + 1);
                echo(udp, udpCount, 1, 1000);
            }
            Patience.await("closing", tcp.close());
            Patience.await("closing", udp.close());
            Patience.await("closing", udpServer.close());
            Patience.await("closing", server.close());
            handler.send(send(region));
            handler.awaitPrepared().disconnect();
            handler.awaitDisconnected();
            assertThat(handler.awaitSends((int) sent.get()))
                    .allMatch(completion -> completion.status() == WorkStatus.SUCCESS);
        }
        handler.assertNoViolations();
    }

    @Test
    void aReaderThatStopsAndGoesOnGetsAll() {
        int bytes = 20_000_000;
        Channel server = listen();
        Count count = new Count();
        Channel client = connect(server, count);
        client.config().setAutoRead(false);
        ChannelFuture written = client.writeAndFlush(Unpooled.wrappedBuffer(new byte[bytes]));
        Patience.await("the write, which the server takes", written);
        Patience.turns(loop);
        assertThat(count.bytes).hasValue(0);
        client.config().setAutoRead(true);
        Patience.until("the echo", () -> count.bytes.get() == bytes);
    }

    /** Asks the kernel, without a word to the loop. */
    private static boolean isFree(InetSocketAddress address) {
        try (ServerSocket probe = new ServerSocket()) {
            probe.bind(address);
            return true;
        } catch (IOException taken) {
            return false;
        }
    }

    @Test
    void aPortIsFreeOnceItsServerIsClosed() {
        for (int i = 0; i < 20; i++) {
            Channel server = listen();
            Channel client = connect(server, new Count());
            Patience.await("closing", client.close());
            Patience.await("closing", server.close());
            Patience.until("the port is free", () -> isFree((InetSocketAddress) server.localAddress()));
        }
    }

    @Test
    void theEndOfTheLoopClosesThem() throws Exception {
        Channel server = listen();
        try (Socket client = new Socket(HOST, ((InetSocketAddress) server.localAddress()).getPort())) {
            client.getOutputStream().write(1);
            assertThat(client.getInputStream().read()).isEqualTo(1);
            Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
            assertThat(client.getInputStream().read()).isEqualTo(-1);
        }
        assertThat(server.isOpen()).isFalse();
    }

    @Test
    void anIdleSocketDoesNotWakeTheLoop() {
        Channel server = listen();
        Count count = new Count();
        echo(connect(server, count), count, 1, 10);
        Patience.until("the loop blocks", () -> {
            long before = provider.counters().polls();
            Patience.timer(loop, Duration.ofMillis(200));
            return provider.counters().polls() - before < 20;
        });
    }
}
