package org.verbena.rsocket;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInitializer;
import io.rsocket.Closeable;
import io.rsocket.transport.ServerTransport;
import java.net.InetSocketAddress;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerChannel;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;

/**
 * RSocket's server transport over RDMA, for {@link RdmaClientTransport}s.
 *
 * <pre>{@code
 * RSocketServer.create(acceptor).bindNow(RdmaServerTransport.create(7471));
 * }</pre>
 *
 * <p>Any thread.
 */
public final class RdmaServerTransport implements ServerTransport<RdmaServerTransport.Server> {
    private final ServerBootstrap bootstrap;
    private final @Nullable ChannelHandler own;

    private RdmaServerTransport(ServerBootstrap bootstrap) {
        this.bootstrap = bootstrap;
        own = bootstrap.config().childHandler();
    }

    /** A listening server. Disposing of it stops listening; its connections stay open. */
    public static final class Server implements Closeable {
        private final Channel channel;
        private final Mono<Void> onClose;

        Server(Channel channel) {
            this.channel = channel;
            onClose = Mono.<Void>create(sink -> channel.closeFuture().addListener(closed -> sink.success()))
                    .cache();
        }

        /**
         * Returns the address it listens at.
         *
         * @return the address, with the port that was selected
         */
        public InetSocketAddress address() {
            return (InetSocketAddress) channel.localAddress();
        }

        @Override
        public Mono<Void> onClose() {
            return onClose;
        }

        @Override
        public void dispose() {
            channel.close();
        }

        @Override
        public boolean isDisposed() {
            return !channel.isOpen();
        }
    }

    /**
     * Makes a transport that listens on all addresses, on one group of daemon threads for the whole process, which uses
     * the configured provider ({@code -Dorg.verbena.provider}).
     *
     * @param port the port; 0 selects any free port
     * @return the transport
     */
    public static RdmaServerTransport create(int port) {
        return create(new InetSocketAddress(port));
    }

    /**
     * Makes a transport on the same threads.
     *
     * @param address the address to listen at
     * @return the transport
     */
    public static RdmaServerTransport create(InetSocketAddress address) {
        return create(address, SharedLoops.get());
    }

    /**
     * Makes a transport on the given loops.
     *
     * @param address the address to listen at
     * @param group the loops; it must outlive the server
     * @return the transport
     */
    public static RdmaServerTransport create(InetSocketAddress address, RdmaEventLoopGroup group) {
        return create(new ServerBootstrap().group(group).localAddress(address));
    }

    /**
     * Makes a transport with options.
     *
     * @param bootstrap has the loops, the address, options, and perhaps a child handler, which comes before RSocket's;
     *     it is copied
     * @return the transport
     */
    public static RdmaServerTransport create(ServerBootstrap bootstrap) {
        Objects.requireNonNull(bootstrap.config().group(), "the bootstrap has no event loops");
        return new RdmaServerTransport(bootstrap.clone().channel(RdmaServerChannel.class));
    }

    @Override
    public int maxFrameLength() {
        return FrameLength.of(bootstrap.config().childOptions());
    }

    @Override
    public Mono<Server> start(ConnectionAcceptor acceptor) {
        return Mono.create(sink -> start(acceptor, sink));
    }

    private void start(ConnectionAcceptor acceptor, MonoSink<Server> sink) {
        ChannelFuture binding = bootstrap
                .clone()
                .childHandler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        if (own != null) {
                            channel.pipeline().addLast(own);
                        }
                        channel.pipeline().addLast(new RdmaDuplexConnection(connected -> accept(acceptor, connected)));
                    }
                })
                .bind();
        sink.onCancel(() -> binding.channel().close());
        binding.addListener(bound -> {
            if (bound.isSuccess()) {
                sink.success(new Server(binding.channel()));
            } else {
                sink.error(bound.cause());
            }
        });
    }

    /** Closes the connection if the acceptor fails; its success does not end the connection. */
    private static void accept(ConnectionAcceptor acceptor, RdmaDuplexConnection connected) {
        acceptor.apply(connected).subscribe(null, refused -> connected.dispose());
    }
}
