package org.verbena.tools.perf;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.PrivateDataEvent;
import org.verbena.api.RdmaChannelOption;

/** The server's end of a client's sends; see {@link SendProtocol}. */
final class SendServing extends EchoHandler {
    private static final Logger LOG = LoggerFactory.getLogger(SendServing.class);

    private SendProtocol protocol = SendProtocol.of(1, 1, false);
    private long counted;

    /** Whether the server sends as well, how many it has sent, and how many of them the client has taken. */
    private boolean isSending;

    private long sent;
    private long taken;

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event instanceof PrivateDataEvent request) {
            try {
                protocol = SendProtocol.decode(request.data());
                context.channel().config().setOption(RdmaChannelOption.RECEIVE_DEPTH, protocol.posted());
                context.channel().config().setOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, protocol.requestBytes());
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
        try {
            serve0(context, what, message);
        } finally {
            message.release();
        }
    }

    private void serve0(ChannelHandlerContext context, byte what, ByteBuf message) {
        switch (what) {
            case PerfProtocol.COUNT -> {
                counted++;
                if (counted % protocol.acknowledgedAfter() == 0) {
                    answer0(context, what, counted);
                }
            }
            case PerfProtocol.HOW_MANY -> answer0(context, what, counted);
            case PerfProtocol.BOTH -> {
                if (!protocol.isBidirectional()) {
                    throw new IllegalArgumentException("the client has no receives for the server's sends");
                }
                isSending = true;
                context.channel().config().setAutoRead(true);
                send0(context);
            }
            case SendProtocol.TAKEN -> {
                taken = message.getLong(message.readerIndex() + 1);
                send0(context);
            }
            case PerfProtocol.STOP -> {
                isSending = false;
                answer0(context, what, sent);
            }
            default -> throw new IllegalArgumentException("a message that no perf client sends");
        }
    }

    private static void answer0(ChannelHandlerContext context, byte what, long count) {
        context.write(SendProtocol.answer(what, count), context.voidPromise());
    }

    /** Writes as many as the client has receives for. The end of the read flushes them. */
    private void send0(ChannelHandlerContext context) {
        Channel channel = context.channel();
        for (; isSending && sent - taken < protocol.credits(); sent++) {
            context.write(
                    PerfConnection.filled(channel, protocol.bytes()).setByte(0, PerfProtocol.BOTH),
                    context.voidPromise());
        }
    }

    /** The two directions are independent: the client's receives bound what waits to be sent. */
    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        if (!isSending) {
            super.channelWritabilityChanged(context);
        }
    }
}
