package org.verbena.api;

import io.netty.channel.ChannelOption;
import org.verbena.transport.spi.IncomingConnection;

/**
 * A Netty server channel that accepts {@link RdmaStreamChannel}s: the server's side of what replaces TCP under RPC stacks, HTTP and TLS. Otherwise it is
 * an {@link RdmaServerChannel}. Options that only TCP has are accepted and do nothing.
 */
public final class RdmaStreamServerChannel extends RdmaServerChannel {

    /** Makes one, for a bootstrap. */
    public RdmaStreamServerChannel() {}

    @Override
    AbstractRdmaChannel newChild0(IncomingConnection request) {
        return new RdmaStreamChannel(this, request);
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
