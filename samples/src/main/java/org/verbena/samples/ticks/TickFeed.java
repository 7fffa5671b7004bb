package org.verbena.samples.ticks;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.util.function.LongToDoubleFunction;
import org.verbena.api.RdmaChannel;
import org.verbena.transport.MessageClaims;

/**
 * Sends ticks to a subscriber as fast as it reads them, each a message of 16 bytes: its number, from 0 on, and a price.
 * Up to 128 ticks share a frame. None of them takes an object, a buffer or a promise, since each is written into the
 * frame that carries it.
 *
 * <p>Add it to the pipeline of an accepted {@link RdmaChannel}, or of one that connects; {@link TickReader} is the
 * other end.
 */
public final class TickFeed extends ChannelInboundHandlerAdapter {
    /** How long a tick is. */
    public static final int TICK_BYTES = Long.BYTES + Double.BYTES;

    private final long ticks;
    private final LongToDoubleFunction price;
    private long next;

    /**
     * Creates the feed of one channel.
     *
     * @param ticks how many to send
     * @param price the price of the tick with a number
     */
    public TickFeed(long ticks, LongToDoubleFunction price) {
        this.ticks = ticks;
        this.price = price;
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        send((RdmaChannel) context.channel());
        context.fireChannelActive();
    }

    /** The subscriber has caught up, or has fallen behind. */
    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        if (context.channel().isWritable()) {
            send((RdmaChannel) context.channel());
        }
        context.fireChannelWritabilityChanged();
    }

    private void send(RdmaChannel channel) {
        MessageClaims claims = channel.claims();
        while (next < ticks) {
            if (claims.tryClaim(TICK_BYTES) != MessageClaims.Outcome.CLAIMED) {
                return; // channelWritabilityChanged comes when there is room again, or channelInactive
            }
            claims.buffer().writeLong(next).writeDouble(price.applyAsDouble(next));
            claims.commit();
            next++;
        }
        claims.flush();
    }
}
