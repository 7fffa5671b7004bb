package org.verbena.samples.perf;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.ReferenceCountUtil;
import org.verbena.samples.echo.EchoHandler;

/** The server's end of a stream: does with it what its first byte says, and is gone then. */
final class StreamServing extends ChannelInboundHandlerAdapter {
    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        boolean echoes = ((ByteBuf) message).readByte() == PerfProtocol.ECHO;
        context.pipeline().replace(this, null, echoes ? new EchoHandler() : new Dropping());
        context.fireChannelRead(message); // what follows the byte
    }

    private static final class Dropping extends EchoHandler {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ReferenceCountUtil.release(message);
        }
    }
}
