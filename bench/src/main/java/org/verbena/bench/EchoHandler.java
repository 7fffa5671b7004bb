package org.verbena.bench;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;

/** Sends back what it reads, and flushes when a batch of reads is complete. */
@SuppressWarnings("CatchAndPrintStackTrace") // a measured program: what it prints goes to its log
public final class EchoHandler extends ChannelInboundHandlerAdapter {
    /** For one channel. */
    public EchoHandler() {}

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        context.write(message, context.voidPromise());
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        context.flush();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        cause.printStackTrace(); // to the log
        context.close();
    }
}
