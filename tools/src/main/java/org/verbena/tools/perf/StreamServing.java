package org.verbena.tools.perf;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.util.ReferenceCountUtil;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The server's end of a stream: replaces itself with the handler that the first byte asks for. */
final class StreamServing extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = LoggerFactory.getLogger(StreamServing.class);

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ChannelHandler serving = switch (((ByteBuf) message).readByte()) {
            case PerfProtocol.ECHO -> new EchoHandler();
            case PerfProtocol.BOTH -> new BothWays();
            default -> new Dropping();
        };
        context.pipeline().replace(this, null, serving);
        context.fireChannelRead(message); // what follows the byte
    }

    private static final class Dropping extends EchoHandler {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ReferenceCountUtil.release(message);
        }
    }

    /**
     * Counts the client's messages, and sends as many at once as the client wants. The stream begins with their size
     * and that number, both ints. At the end of the client's messages it reports how many have arrived, and how many it
     * has sent.
     */
    private static final class BothWays extends SimpleChannelInboundHandler<ByteBuf> {
        private static final int BEGINNING_BYTES = 2 * Integer.BYTES;

        private final ByteBuf beginning = Unpooled.buffer(BEGINNING_BYTES, BEGINNING_BYTES);
        private @Nullable StreamCounter counter;
        private @Nullable PerfFlow flow;

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf arrived) {
            if (beginning.isWritable()) {
                beginning.writeBytes(arrived, Math.min(beginning.writableBytes(), arrived.readableBytes()));
                if (beginning.isWritable()) {
                    return;
                }
                int bytes = beginning.readInt();
                Channel channel = context.channel();
                PerfFlow begun = new PerfFlow(
                        bytes,
                        beginning.readInt(),
                        () -> channel.writeAndFlush(
                                PerfConnection.filled(channel, bytes).setByte(0, PerfProtocol.COUNT)));
                flow = begun;
                counter = new StreamCounter(bytes);
                begun.begin0();
            }
            StreamCounter counting = counter;
            PerfFlow sending = flow;
            if (counting != null && sending != null && counting.take(arrived)) {
                sending.end0(sent -> context.writeAndFlush(context.alloc()
                        .buffer(1 + 2 * Long.BYTES)
                        .writeByte(PerfProtocol.HOW_MANY)
                        .writeLong(counting.counted())
                        .writeLong(sent)));
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            LOG.warn("{}: {}", context.channel(), cause.getMessage());
            context.close();
        }
    }
}
