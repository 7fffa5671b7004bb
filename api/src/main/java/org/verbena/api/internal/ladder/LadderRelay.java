package org.verbena.api.internal.ladder;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.channel.socket.ChannelOutputShutdownEvent;
import io.netty.util.ReferenceCountUtil;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import org.verbena.api.LadderSocketChannel;
import org.verbena.api.ladder.LadderResult;

/**
 * The only handler of a channel that a {@link LadderSocketChannel} uses: it forwards the rung's events to that channel,
 * in order and on that channel's loop. If both have one loop, that is a call; otherwise it is a task for each batch of
 * messages. Event loop of the rung only.
 */
public final class LadderRelay extends ChannelInboundHandlerAdapter {
    /** The channel above. Called on its event loop, except to get that loop. */
    public interface Host {
        EventLoop eventLoop();

        /** Takes what the rung receives. */
        LadderInbound inbound0();

        void onRungWritability0();

        void onRungOutputShutdown0();

        /** A user event that concerns handlers. */
        void onRungEvent0(Object event);

        void onRungException0(Throwable cause);

        void onRungInactive0(Channel ended);
    }

    private final Host above;
    private final EventLoop home;

    /** Messages of the batch that has not ended, where the channel above has another loop. */
    private List<Object> batch = new ArrayList<>(0);

    public LadderRelay(Host above) {
        this.above = above;
        home = above.eventLoop();
    }

    private void bring(ChannelHandlerContext context, Runnable event) {
        if (home.inEventLoop()) {
            event.run();
            return;
        }
        List<Object> before = batch;
        batch = new ArrayList<>(before.size());
        try {
            home.execute(() -> {
                before.forEach(above.inbound0()::onMessage);
                event.run();
            });
        } catch (RejectedExecutionException ended) {
            before.forEach(ReferenceCountUtil::release);
            context.close();
        }
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (home.inEventLoop()) {
            above.inbound0().onMessage(message);
        } else {
            batch.add(message);
        }
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        bring(context, above.inbound0()::onBatchEnd);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        bring(context, above::onRungWritability0);
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event == ChannelOutputShutdownEvent.INSTANCE) {
            bring(context, above::onRungOutputShutdown0);
        } else if (!(event instanceof LadderResult)) { // which the channel above fires itself
            bring(context, () -> above.onRungEvent0(event));
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        bring(context, () -> above.onRungException0(cause));
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        bring(context, () -> above.onRungInactive0(context.channel()));
    }
}
