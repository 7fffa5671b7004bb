package org.verbena.vertx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;

/**
 * Copies inbound data into heap arrays for Vert.x. Vert.x gives its programs buffers that nobody releases, and so
 * copies pooled buffers; but it recognises only Netty's own pools, by their classes. Without this handler it would keep
 * receive buffers forever, until the peer can send no more. The copy replaces the one that Vert.x makes over TCP.
 */
@ChannelHandler.Sharable
final class HeapCopies extends ChannelInboundHandlerAdapter {
    static final HeapCopies INSTANCE = new HeapCopies();

    private HeapCopies() {}

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (message instanceof ByteBuf received) {
            try {
                context.fireChannelRead(
                        Unpooled.buffer(received.readableBytes()).writeBytes(received));
            } finally {
                received.release();
            }
        } else {
            context.fireChannelRead(message);
        }
    }
}
