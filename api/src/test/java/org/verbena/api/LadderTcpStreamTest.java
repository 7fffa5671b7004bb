package org.verbena.api;

import io.netty.channel.ServerChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;

/** On the rung of plain TCP. */
class LadderTcpStreamTest extends LadderStreamSuite {
    @Override
    RdmaEventLoopGroup newClientGroup() {
        return new RdmaEventLoopGroup("soft", 3);
    }

    @Override
    String rung() {
        return Carrier.TCP;
    }

    @Override
    protected Class<? extends ServerChannel> serverChannelClass() {
        return NioServerSocketChannel.class;
    }
}
