package org.verbena.rsocket;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoop;
import io.netty.resolver.AddressResolver;
import io.netty.util.concurrent.Future;
import io.rsocket.DuplexConnection;
import io.rsocket.transport.ClientTransport;
import java.net.InetSocketAddress;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaLadder;
import org.verbena.api.ladder.LadderOptions;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;

/**
 * RSocket's client transport over RDMA: each frame is one message of an {@link RdmaChannel}. The peer is an {@link
 * RdmaServerTransport}.
 *
 * <pre>{@code
 * RSocket client = RSocketConnector.connectWith(RdmaClientTransport.create("host", 7471)).block();
 * }</pre>
 *
 * <p>{@code DuplexConnection.alloc()}, from which RSocket allocates its frames, gives registered memory: frames are
 * sent without a copy, and an inbound frame is the receive buffer itself. With {@code PayloadDecoder.ZERO_COPY} a
 * payload keeps that buffer until it is released, and the peer has to wait once all receive buffers are kept. A frame
 * has at most 16,777,215 bytes; {@code MAX_MESSAGE_BYTES} lowers that. Any thread.
 *
 * <p>On loops that were made for a ladder ({@link RdmaEventLoopGroup#ladder()}), or with the option {@link
 * RdmaChannelOption#LADDER}, it connects by a ladder ({@link RdmaLadder}), which has no rung of plain TCP for messages.
 */
public final class RdmaClientTransport implements ClientTransport {
    private final Bootstrap bootstrap;
    private final @Nullable ChannelHandler own;

    /** The ladder of its connections; null for none. */
    private final @Nullable LadderOptions ladder;

    private RdmaClientTransport(Bootstrap bootstrap) {
        this.bootstrap = bootstrap;
        own = bootstrap.config().handler();
        ladder = ladder(bootstrap);
        if (ladder == null) {
            bootstrap.channel(RdmaChannel.class);
        } else {
            bootstrap.option(RdmaChannelOption.LADDER, null); // which the channels do not know
        }
    }

    private static @Nullable LadderOptions ladder(Bootstrap bootstrap) {
        if (bootstrap.config().options().get(RdmaChannelOption.LADDER) instanceof LadderOptions chosen) {
            return chosen;
        }
        return bootstrap.config().group() instanceof RdmaEventLoopGroup group ? group.ladder() : null;
    }

    /**
     * Makes a transport on one group of daemon threads for the whole process, which uses the configured provider
     * ({@code -Dorg.verbena.provider}).
     *
     * @param host a name or address
     * @param port the server's port
     * @return the transport
     */
    public static RdmaClientTransport create(String host, int port) {
        return create(InetSocketAddress.createUnresolved(host, port));
    }

    /**
     * Makes a transport on the same threads.
     *
     * @param address the server's; it may be unresolved
     * @return the transport
     */
    public static RdmaClientTransport create(InetSocketAddress address) {
        return create(address, SharedLoops.get());
    }

    /**
     * Makes a transport on the given loops.
     *
     * @param address the server's; it may be unresolved
     * @param group the loops; it must outlive the connections
     * @return the transport
     */
    public static RdmaClientTransport create(InetSocketAddress address, RdmaEventLoopGroup group) {
        return create(new Bootstrap().group(group).remoteAddress(address));
    }

    /**
     * Makes a transport with options.
     *
     * @param bootstrap has the loops, the server's address, options, and perhaps a handler, which comes before
     *     RSocket's; it is copied
     * @return the transport
     */
    public static RdmaClientTransport create(Bootstrap bootstrap) {
        Objects.requireNonNull(bootstrap.config().group(), "the bootstrap has no event loops");
        return new RdmaClientTransport(bootstrap.clone());
    }

    @Override
    public int maxFrameLength() {
        return FrameLength.of(bootstrap.config().options());
    }

    @Override
    public Mono<DuplexConnection> connect() {
        return Mono.create(this::connect);
    }

    private void connect(MonoSink<DuplexConnection> sink) {
        RdmaDuplexConnection connection = new RdmaDuplexConnection(connected -> {});
        Bootstrap prepared = bootstrap.clone().handler(new ChannelInitializer<Channel>() {
            @Override
            protected void initChannel(Channel channel) {
                if (own != null) {
                    channel.pipeline().addLast(own);
                }
                channel.pipeline().addLast(connection);
            }
        });
        if (ladder == null) {
            ChannelFuture connecting = prepared.connect();
            sink.onCancel(() -> {
                connecting.cancel(true);
                connecting.channel().close();
            });
            report(connecting, connection, sink);
        } else {
            climb(prepared, ladder, connection, sink);
        }
    }

    /** Looks the name up first, as a bootstrap does. */
    private static void climb(
            Bootstrap prepared,
            LadderOptions ladder,
            RdmaDuplexConnection connection,
            MonoSink<DuplexConnection> sink) {
        EventLoop loop = prepared.config().group().next();
        Future<InetSocketAddress> looking = resolver(prepared, loop)
                .resolve(Objects.requireNonNull(prepared.config().remoteAddress()));
        looking.addListener(found -> {
            if (!found.isSuccess()) {
                sink.error(found.cause());
                return;
            }
            Future<RdmaChannel> climbing = RdmaLadder.connectMessages(prepared, looking.getNow(), ladder);
            sink.onCancel(() -> climbing.cancel(true));
            report(climbing, connection, sink);
        });
    }

    @SuppressWarnings("unchecked") // of internet addresses, or it refuses the one that it is given
    private static AddressResolver<InetSocketAddress> resolver(Bootstrap prepared, EventLoop loop) {
        return (AddressResolver<InetSocketAddress>)
                Objects.requireNonNull(prepared.config().resolver()).getResolver(loop);
    }

    private static void report(Future<?> connecting, RdmaDuplexConnection connection, MonoSink<DuplexConnection> sink) {
        connecting.addListener(connected -> {
            if (connected.isSuccess()) {
                sink.success(connection);
            } else if (!connected.isCancelled()) {
                sink.error(connected.cause());
            }
        });
    }
}
