package org.verbena.api.internal.request;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.group.ChannelGroup;
import java.util.function.Consumer;

/** Calls {@code onConnect} once, when the connection is active. */
public final class OnConnectHandler<C extends Channel> extends ChannelInboundHandlerAdapter {
    private final C channel;
    private final ChannelGroup connections;
    private final Consumer<? super C> onConnect;

    public OnConnectHandler(C channel, ChannelGroup connections, Consumer<? super C> onConnect) {
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
