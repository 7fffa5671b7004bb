package org.verbena.api;

import io.netty.channel.ChannelOption;
import java.net.BindException;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.RdmaException;

/**
 * A Netty server channel that accepts {@link RdmaStreamChannel}s: the server's side of the replacement of TCP under RPC
 * stacks, HTTP and TLS. Otherwise it behaves as an {@link RdmaServerChannel} does. A port that cannot be bound fails
 * with {@link BindException}, as a socket's does. Options that only TCP has are accepted and do nothing.
 */
public final class RdmaStreamServerChannel extends RdmaServerChannel {

    /** Creates a channel, for a bootstrap. */
    public RdmaStreamServerChannel() {}

    @Override
    AbstractRdmaChannel newChild0(IncomingConnection request) {
        return new RdmaStreamChannel(this, request);
    }

    @Override
    Throwable forBind0(Throwable cause) {
        if (!(cause instanceof RdmaException)) {
            return cause;
        }
        BindException told = new BindException(cause.getMessage());
        told.initCause(cause);
        return told;
    }

    @Override
    RdmaServerChannelConfig newConfig() {
        return new Config(this);
    }

    private static final class Config extends RdmaServerChannelConfig {
        Config(RdmaStreamServerChannel channel) {
            super(channel);
        }

        @Override
        public <T> boolean setOption(ChannelOption<T> option, T value) {
            return super.setOption(option, value) || TcpOptions.accept(channel, option, value);
        }
    }
}
