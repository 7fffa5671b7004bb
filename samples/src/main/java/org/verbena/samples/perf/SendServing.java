package org.verbena.samples.perf;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.PrivateDataEvent;
import org.verbena.api.RdmaChannelOption;
import org.verbena.samples.echo.EchoHandler;

/** The server's end of a client's sends; see {@link SendProtocol}. */
final class SendServing extends EchoHandler {
    private static final Logger LOG = LoggerFactory.getLogger(SendServing.class);

    private int acknowledgedAfter = 1;
    private long counted;

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event instanceof PrivateDataEvent request) {
            try {
                SendProtocol protocol = SendProtocol.decode(request.data());
                acknowledgedAfter = protocol.acknowledgedAfter();
                context.channel().config().setOption(RdmaChannelOption.RECEIVE_DEPTH, protocol.receives());
                context.channel().config().setOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, protocol.bytes());
            } catch (IllegalArgumentException wrong) {
                LOG.warn("{}: rejected: {}", context.channel(), wrong.getMessage());
                context.close(); // rejects
            }
        }
        context.fireUserEventTriggered(event);
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object received) {
        ByteBuf message = (ByteBuf) received;
        byte what = message.isReadable() ? message.getByte(message.readerIndex()) : PerfProtocol.ECHO;
        if (what == PerfProtocol.ECHO) {
            super.channelRead(context, message);
            return;
        }
        message.release();
        if (what == PerfProtocol.COUNT) {
            counted++;
            if (counted % acknowledgedAfter == 0) {
                context.write(SendProtocol.answer(what, counted), context.voidPromise());
            }
        } else {
            context.write(SendProtocol.answer(PerfProtocol.HOW_MANY, counted), context.voidPromise());
        }
    }
}
