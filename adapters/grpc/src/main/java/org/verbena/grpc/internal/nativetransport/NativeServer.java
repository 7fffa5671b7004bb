package org.verbena.grpc.internal.nativetransport;

import io.grpc.InternalChannelz.SocketStats;
import io.grpc.InternalInstrumented;
import io.grpc.ServerStreamTracer;
import io.grpc.internal.InternalServer;
import io.grpc.internal.ServerListener;
import io.grpc.internal.ServerTransportListener;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaChannel;

/**
 * The native side of a server. The port is that of the HTTP/2 server, whose listening channel gets a handler of this
 * one: it takes the channels of messages, and leaves the channels of bytes to HTTP/2.
 */
public final class NativeServer implements InternalServer {
    private static final Logger LOG = LoggerFactory.getLogger(NativeServer.class);

    private final List<? extends ServerStreamTracer.Factory> tracers;
    private final NativeSettings settings;
    private final EventLoopGroup group;

    /** Set when the server starts, and null again when it shuts down. Guarded by this. */
    private @Nullable ServerListener listener;

    /**
     * Not started.
     *
     * @param tracers count calls
     * @param settings of the connections, which are copied
     * @param group the loops of the connections
     */
    public NativeServer(
            List<? extends ServerStreamTracer.Factory> tracers, NativeSettings settings, EventLoopGroup group) {
        this.tracers = tracers;
        this.settings = settings.copy();
        this.group = group;
    }

    @Override
    public synchronized void start(ServerListener started) {
        listener = started;
    }

    @Override
    public void shutdown() {
        ServerListener started;
        synchronized (this) {
            started = listener;
            listener = null;
        }
        if (started != null) {
            started.serverShutdown();
        }
    }

    /**
     * Makes a connection known to gRPC. {@link #shutdown} waits for it, since gRPC ends the connections that it knows
     * then.
     *
     * @return null if the server does not take it
     */
    synchronized @Nullable ServerTransportListener created(NativeServerTransport connection) {
        return listener == null ? null : listener.transportCreated(connection);
    }

    /** Returns a handler for the beginning of a listening channel's pipeline. */
    public ChannelHandler acceptor() {
        return new Acceptor();
    }

    /** The HTTP/2 server knows the address. */
    @Override
    public SocketAddress getListenSocketAddress() {
        return InetSocketAddress.createUnresolved("native", 0);
    }

    @Override
    public @Nullable InternalInstrumented<SocketStats> getListenSocketStats() {
        return null;
    }

    @Override
    public List<? extends SocketAddress> getListenSocketAddresses() {
        return List.of();
    }

    @Override
    public @Nullable List<InternalInstrumented<SocketStats>> getListenSocketStatsList() {
        return null;
    }

    private final class Acceptor extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object accepted) {
            if (accepted instanceof RdmaChannel child) {
                take(child);
            } else {
                context.fireChannelRead(accepted);
            }
        }

        private void take(RdmaChannel child) {
            settings.options().forEach((option, value) -> set(child, option, value));
            child.pipeline()
                    .addLast(new NativeServerTransport(
                            NativeServer.this, tracers, settings, String.valueOf(child.remoteAddress())));
            group.register(child).addListener(registered -> {
                if (!registered.isSuccess()) {
                    LOG.debug("{} was not registered", child, registered.cause());
                    child.unsafe().closeForcibly();
                }
            });
        }
    }

    @SuppressWarnings("unchecked") // the value was given with its option
    private static void set(Channel child, ChannelOption<?> option, Object value) {
        if (!child.config().setOption((ChannelOption<Object>) option, value)) {
            LOG.debug("{} does not know the option {}", child, option);
        }
    }
}
