package org.verbena.api;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.group.ChannelGroup;
import java.util.function.Consumer;

/** Calls {@code onConnect} once, when the connection is up. */
final class Welcome extends ChannelInboundHandlerAdapter {
    private final RdmaChannel channel;
    private final ChannelGroup connections;
    private final Consumer<RdmaChannel> onConnect;

    Welcome(RdmaChannel channel, ChannelGroup connections, Consumer<RdmaChannel> onConnect) {
        this.channel = channel;
        this.connections = connections;
        this.onConnect = onConnect;
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        connections.add(channel);
        onConnect.accept(channel);
        context.fireChannelActive();
    }
}
