package org.verbena.vertx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;

/**
 * Hands what arrives to Vert.x in arrays of its own. Vert.x gives its programs buffers that nobody releases, and so
 * copies what comes from a pool; but it knows Netty's own pools only, by their classes. Without this it would keep
 * receive buffers for good, until the peer may send no more. The copy is in place of the one that it makes over TCP.
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
