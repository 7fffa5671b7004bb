package org.verbena.api.internal.ladder;

import io.netty.channel.Channel;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.ladder.LadderResult;

/**
 * The only handler of a channel that a ladder connects, until the ladder has chosen. It reads nothing and holds events
 * back, so that the program's handler, which is added only to the chosen channel, misses none. Event loop only.
 */
final class LadderGate extends ChannelDuplexHandler {
    private static final Logger LOG = LoggerFactory.getLogger(LadderGate.class);

    private final Runnable onBegun;

    /** The transport's events: with RAW framing the peer's private data. */
    private final List<Object> events = new ArrayList<>(1);

    private boolean open;
    private boolean wasActive;
    private boolean failed;

    /**
     * Creates one.
     *
     * @param onBegun run when the transport has begun to connect
     */
    LadderGate(Runnable onBegun) {
        this.onBegun = onBegun;
    }

    /** Hands the channel over to the program's handler, as if the handler had been there from the start. */
    void open0(ChannelHandlerContext context, ChannelHandler handler, LadderResult result) {
        open = true;
        context.pipeline().addLast(handler);
        context.fireChannelRegistered();
        events.forEach(context::fireUserEventTriggered);
        context.fireUserEventTriggered(result);
        context.fireChannelActive();
        context.pipeline().remove(this);
        if (context.channel().config().isAutoRead()) {
            context.channel().read();
        }
    }

    /** Whether the peer has closed the connection, in order. */
    boolean hasEnded0(Channel channel) {
        return wasActive && !failed && !channel.isActive();
    }

    @Override
    public void connect(
            ChannelHandlerContext context, SocketAddress remote, SocketAddress local, ChannelPromise promise) {
        context.connect(remote, local, promise);
        onBegun.run();
    }

    @Override
    public void read(ChannelHandlerContext context) {
        if (open) {
            context.read();
        }
    }

    @Override
    public void channelRegistered(ChannelHandlerContext context) {
        // passed on when it opens
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        wasActive = true; // passed on when it opens
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        if (open) {
            context.fireChannelInactive();
        }
    }

    @Override
    public void channelUnregistered(ChannelHandlerContext context) {
        if (open) {
            context.fireChannelUnregistered();
        }
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (open) {
            context.fireUserEventTriggered(event);
        } else {
            events.add(event);
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        if (open) {
            context.fireExceptionCaught(cause);
        } else {
            failed = true;
            LOG.debug("{}: lost before it was used", context.channel(), cause);
        }
    }
}
