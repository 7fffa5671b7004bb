package org.verbena.samples.ticks;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;

/** Receives the ticks of a {@link TickFeed}: to its reader they are messages like any other. */
public final class TickReader extends SimpleChannelInboundHandler<ByteBuf> {
    /** Called for each tick, on the channel's event loop. */
    @FunctionalInterface
    public interface Listener {
        /**
         * A tick came.
         *
         * @param number its number
         * @param price its price
         */
        void onTick(long number, double price);
    }

    private final Listener listener;

    /**
     * Creates the reader of one channel.
     *
     * @param listener called for each tick
     */
    public TickReader(Listener listener) {
        this.listener = listener;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, ByteBuf tick) {
        listener.onTick(tick.readLong(), tick.readDouble());
    }
}
