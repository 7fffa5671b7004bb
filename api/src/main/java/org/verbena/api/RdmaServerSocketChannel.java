package org.verbena.api;

import io.netty.channel.socket.ServerSocketChannel;
import io.netty.channel.socket.ServerSocketChannelConfig;
import io.netty.channel.socket.SocketChannel;
import java.net.BindException;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.channel.SocketExceptions;
import org.verbena.api.internal.server.Arrival;
import org.verbena.transport.RdmaException;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;

/**
 * A Netty {@link ServerSocketChannel} that accepts {@link RdmaSocketChannel}s: the server's side where RDMA replaces
 * TCP under RPC stacks, HTTP and TLS. Otherwise it behaves as an {@link RdmaServerChannel} does. The child handler may
 * be a {@code ChannelInitializer<}{@link SocketChannel}{@code >}, as over TCP. If an address cannot be bound, the bind
 * fails with {@link BindException}, as a socket's does. Options that only TCP has are kept and have no effect.
 *
 * <p>With {@link RdmaChannelOption#PLAIN_TCP} it accepts clients without RDMA on the same port: their channels are
 * Netty's {@code NioSocketChannel}s, with the same child handler and options. With {@link
 * RdmaChannelOption#ACCEPT_MESSAGES} it also accepts clients that speak messages, as {@link RdmaChannel}s.
 */
public final class RdmaServerSocketChannel extends RdmaServerChannel implements ServerSocketChannel {

    /** Creates a channel, for a bootstrap. */
    public RdmaServerSocketChannel() {}

    @Override
    public ServerSocketChannelConfig config() {
        return (ServerSocketChannelConfig) super.config();
    }

    /** Null: it is connected to nobody. */
    @Override
    public @Nullable InetSocketAddress remoteAddress() {
        return null;
    }

    @Override
    AbstractRdmaChannel newChild0(Arrival.Rdma arrival) {
        boolean messages = Boolean.TRUE.equals(config().getOption(RdmaChannelOption.ACCEPT_MESSAGES))
                && PrivateData.rejection(
                                MessageOptions.DEFAULTS, arrival.request().privateData())
                        == null;
        return messages ? new RdmaChannel(this, arrival) : new RdmaSocketChannel(this, arrival);
    }

    @Override
    Throwable forBind0(Throwable cause) {
        return cause instanceof RdmaException refused ? SocketExceptions.bind(refused) : cause;
    }

    @Override
    RdmaServerChannelConfig<?> newConfig() {
        return new RdmaServerSocketChannelConfig(this);
    }
}
