package org.verbena.bench.peers.contenders;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.WriteBufferWaterMark;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import org.verbena.bench.EchoHandler;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Place;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.protocol.MessageOptions;

/**
 * Verbena's Channel API with messages as it frames them and one event loop a process, used as {@link NettyContender}
 * uses Netty: the client works in its event loop, and both sides flush when a batch of reads is complete.
 */
@SuppressWarnings({"NullAway", "CatchAndPrintStackTrace"}) // a measured program: what it prints goes to its log
public final class VerbenaContender implements Contender {
    private static final int MAX_MESSAGE = 17 << 20;

    private final boolean crc;
    private final int rendezvousThresholdBytes;

    /** What carries soft's bytes; null for the default. */
    private final @Nullable String io;

    /**
     * With the limit for messages that need no rendezvous that is the default.
     *
     * @param crc whether every FPDU carries a CRC32C, as in RFC 5044 by default; only the software provider has this
     *     option
     */
    public VerbenaContender(boolean crc) {
        this(crc, MessageOptions.DEFAULTS.rendezvousThresholdBytes());
    }

    /**
     * With another limit for messages that need no rendezvous.
     *
     * @param crc whether every FPDU carries a CRC32C; only the software provider has this option
     * @param rendezvousThresholdBytes larger messages are read by the peer
     */
    public VerbenaContender(boolean crc, int rendezvousThresholdBytes) {
        this(crc, rendezvousThresholdBytes, null);
    }

    /**
     * On NIO or io_uring, whatever is the default.
     *
     * @param io as {@code org.verbena.soft.io}; only the software provider has this option
     */
    public VerbenaContender(String io) {
        this(false, MessageOptions.DEFAULTS.rendezvousThresholdBytes(), io);
    }

    private VerbenaContender(boolean crc, int rendezvousThresholdBytes, @Nullable String io) {
        this.crc = crc;
        this.rendezvousThresholdBytes = rendezvousThresholdBytes;
        this.io = io;
    }

    @Override
    public List<String> jvmFlags() {
        List<String> flags = new ArrayList<>(NettyContender.flagsOfNetty());
        flags.add("-Dorg.verbena.soft.crc=" + crc);
        if (io != null) {
            flags.add("-Dorg.verbena.soft.io=" + io);
        }
        return flags;
    }

    /** Beyond so many connections the shared receive queue has to be deeper than it is by default. */
    private static final int MANY = 1000;

    private static final int RECEIVES_EACH = 4;

    private void setUp(Channel channel, ChannelInboundHandlerAdapter handler) {
        channel.config().setOption(RdmaChannelOption.MAX_MESSAGE_BYTES, MAX_MESSAGE);
        channel.config()
                .setOption(RdmaChannelOption.SHARED_RECEIVE_QUEUE, Place.connections() > 1); // as a server of many
        channel.config().setOption(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, rendezvousThresholdBytes);
        channel.config()
                .setOption(ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(32 << 20, 128 << 20));
        channel.pipeline().addLast(handler);
    }

    /** One loop, with a shared receive queue that is deep enough for all connections. */
    private static RdmaEventLoopGroup loop() {
        CompletionLoopOptions defaults = CompletionLoopOptions.DEFAULTS;
        CompletionLoopOptions options = Place.connections() <= MANY
                ? defaults
                : new CompletionLoopOptions(
                        defaults.spinNanos(),
                        defaults.maxCompletionsPerTurn(),
                        defaults.completionQueueDepth(),
                        RECEIVES_EACH * Place.connections());
        return new RdmaEventLoopGroup(Place.provider(), 1, options);
    }

    @Override
    public Server startServer(Path scratch) throws Exception {
        if ((crc || io != null) && !Place.provider().equals("soft")) {
            throw new IllegalArgumentException("--provider " + Place.provider()
                    + ": only soft can be told to use CRC32C, NIO or io_uring: leave this contender out");
        }
        RdmaEventLoopGroup group = loop();
        Channel server = new ServerBootstrap()
                .group(group)
                .channel(RdmaServerChannel.class)
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
        return EchoClient.connect(loop(), RdmaChannel.class, Place.address(Integer.parseInt(address)), 0, this::setUp);
    }
}
