package org.verbena.bench.peers.contenders;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.channel.uring.IoUringIoHandler;
import io.netty.channel.uring.IoUringServerSocketChannel;
import io.netty.channel.uring.IoUringSocketChannel;
import io.netty.handler.codec.ByteToMessageDecoder;
import io.netty.handler.codec.LengthFieldBasedFrameDecoder;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.bench.EchoHandler;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Place;

/**
 * Netty with frames of a 4-byte length and the message, pooled direct buffers and one event loop thread a process.
 * The client works in its event loop, where Netty is fastest: an echo is answered with the next message there,
 * with no hand-over to another thread. Both sides flush when a batch of reads is complete.
 */
@SuppressWarnings({"NullAway", "CatchAndPrintStackTrace"}) // a measured program: what it prints goes to its log
public final class NettyContender implements Contender {

    private static final int MAX_FRAME = 17 << 20;

    /** What takes the place of sockets. */
    public enum Transport {
        NIO(NioServerSocketChannel.class, NioSocketChannel.class),
        /** Netty's own, with its native code and as it is by default. */
        IO_URING(IoUringServerSocketChannel.class, IoUringSocketChannel.class),
        /** Verbena's streams. */
        VERBENA(RdmaServerSocketChannel.class, RdmaSocketChannel.class);

        private final Class<? extends ServerChannel> server;
        private final Class<? extends Channel> client;

        Transport(Class<? extends ServerChannel> server, Class<? extends Channel> client) {
            this.server = server;
            this.client = client;
        }

        private EventLoopGroup newGroup() {
            return switch (this) {
                case NIO -> new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
                case IO_URING -> new MultiThreadIoEventLoopGroup(1, IoUringIoHandler.newFactory());
                case VERBENA -> new RdmaEventLoopGroup(Place.provider(), 1);
            };
        }
    }

    private final Transport transport;

    /** Makes one. */
    public NettyContender(Transport transport) {
        this.transport = transport;
    }

    @Override
    public List<String> jvmFlags() {
        return flagsOfNetty();
    }

    static List<String> flagsOfNetty() {
        List<String> flags = new ArrayList<>(Nettys.JVM_FLAGS);
        // The composite cumulator, below, keeps a whole receive buffer for each short read: 64 messages of 1 MiB took
        // more than the usual 1 GiB.
        flags.add("-XX:MaxDirectMemorySize=4g");
        return flags;
    }

    private void setUp(Channel channel, ChannelInboundHandlerAdapter handler) {
        if (transport != Transport.VERBENA) {
            channel.config().setAllocator(PooledByteBufAllocator.DEFAULT);
        }
        channel.config().setRecvByteBufAllocator(new AdaptiveRecvByteBufAllocator(64, 16 << 10, 64 << 10));
        channel.config().setOption(ChannelOption.TCP_NODELAY, true);
        // The length stays on the frame, so that the server can send it back as it is.
        // The default cumulator copies, and on TCP 64 messages of 64 KiB then stall for tens of milliseconds at a time.
        // The composite one keeps a whole receive buffer for each short read: with buffers of 1 MiB it took all memory.
        LengthFieldBasedFrameDecoder decoder = new LengthFieldBasedFrameDecoder(MAX_FRAME, 0, 4, 0, 0);
        decoder.setCumulator(ByteToMessageDecoder.COMPOSITE_CUMULATOR);
        channel.pipeline().addLast(decoder, handler);
    }

    @Override
    public Server startServer(Path scratch) throws Exception {
        EventLoopGroup group = transport.newGroup();
        Channel server = new ServerBootstrap()
                .group(group)
                .channel(transport.server)
                .childHandler(new ChannelInitializer<>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        setUp(channel, new EchoHandler());
                    }
                })
                .bind(Place.address(0))
                .sync()
                .channel();
        String address = Integer.toString(((InetSocketAddress) server.localAddress()).getPort());
        return new Server() {
            @Override
            public String address() {
                return address;
            }

            @Override
            public void close() {
                group.shutdownGracefully();
            }
        };
    }

    @Override
    public Client connect(String address) throws Exception {
        return EchoClient.connect(
                transport.newGroup(), transport.client, Place.address(Integer.parseInt(address)), 4, this::setUp);
    }
}
