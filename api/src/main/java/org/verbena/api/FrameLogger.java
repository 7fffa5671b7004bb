package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.channel.DeferredMessage;
import org.verbena.transport.protocol.Frame;

/**
 * Logs what happens to an {@link RdmaChannel} or {@link RdmaSocketChannel}, for debugging: each frame with its credits,
 * the beginning of each message, and the events of the pipeline. Put it first into the pipeline, in the channel's
 * initializer. It logs at DEBUG; if DEBUG is off when it is added, it does not process frames at all.
 *
 * <pre>{@code
 * [0x5d0b4e0c] > HELLO, version 1-1, framing 1, ... [grant 126, control 0, rendezvous 0]
 * [0x5d0b4e0c] < HELLO_ACK, version 1-1, framing 1, ... [grant 126, control 0, rendezvous 0]
 * [0x5d0b4e0c] active, /127.0.0.1:41220 to /127.0.0.1:7471
 * [0x5d0b4e0c] > message of 5 bytes: 68 65 6c 6c 6f |hello|
 * [0x5d0b4e0c] > MESSAGE 5 of 5 bytes [grant 126, control 0, rendezvous 0]
 * }</pre>
 */
public final class FrameLogger extends ChannelDuplexHandler {
    /** How many bytes of a message are shown by default. */
    private static final int SHOWN_BYTES = 16;

    private final Logger log;
    private final int shownBytes;

    /** Logs as {@code org.verbena.api.FrameLogger}, and shows the first 16 bytes of each message. */
    public FrameLogger() {
        this(LoggerFactory.getLogger(FrameLogger.class), SHOWN_BYTES);
    }

    /**
     * Logs to a logger of the program.
     *
     * @param log gets everything, at DEBUG
     * @param shownBytes how many bytes of each message are shown; 0 if messages are secret
     * @throws IllegalArgumentException if {@code shownBytes} is negative
     */
    public FrameLogger(Logger log, int shownBytes) {
        if (shownBytes < 0) {
            throw new IllegalArgumentException("shownBytes " + shownBytes + " is negative");
        }
        this.log = log;
        this.shownBytes = shownBytes;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        if (!(context.channel() instanceof AbstractRdmaChannel channel)) {
            throw new IllegalArgumentException("a FrameLogger is for an RdmaChannel, not for " + context.channel());
        }
        if (!log.isDebugEnabled()) {
            return;
        }
        String id = id(channel);
        channel.connection().observe0(new Frame.Listener() {
            @Override
            public void onFrameSent(Frame frame) {
                log.debug("{} > {}", id, frame);
            }

            @Override
            public void onFrameReceived(Frame frame) {
                log.debug("{} < {}", id, frame);
            }
        });
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        if (context.channel() instanceof AbstractRdmaChannel channel) {
            channel.connection().observe0(null);
        }
    }

    private static String id(Channel channel) {
        return "[0x" + channel.id().asShortText() + "]";
    }

    private void log(ChannelHandlerContext context, String what) {
        if (log.isDebugEnabled()) {
            log.debug("{} {}", id(context.channel()), what);
        }
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        log(
                context,
                "active, " + context.channel().localAddress() + " to "
                        + context.channel().remoteAddress());
        context.fireChannelActive();
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        log(context, "inactive; " + ((AbstractRdmaChannel) context.channel()).statistics());
        context.fireChannelInactive();
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        logMessage(context, "<", message);
        context.fireChannelRead(message);
    }

    @Override
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
        logMessage(context, ">", message);
        context.write(message, promise);
    }

    private void logMessage(ChannelHandlerContext context, String direction, Object message) {
        if (log.isDebugEnabled()) {
            log.debug(
                    "{} {} {}",
                    id(context.channel()),
                    direction,
                    message instanceof ByteBuf buffer
                            ? describe(buffer)
                            : message instanceof DeferredMessage request
                                    ? "request with a " + describe(request.content())
                                    : String.valueOf(message));
        }
    }

    private String describe(ByteBuf message) {
        int bytes = message.readableBytes();
        int shown = Math.min(bytes, shownBytes);
        StringBuilder text = new StringBuilder("message of ").append(bytes).append(" bytes");
        if (shown > 0) {
            StringBuilder letters = new StringBuilder();
            text.append(':');
            for (int i = 0; i < shown; i++) {
                int value = message.getUnsignedByte(message.readerIndex() + i);
                text.append(' ').append(Character.forDigit(value >> 4, 16)).append(Character.forDigit(value & 15, 16));
                letters.append(value >= ' ' && value <= '~' ? (char) value : '.');
            }
            text.append(" |").append(letters).append(shown < bytes ? "|..." : "|");
        }
        return text.toString();
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        log(context, "event " + event);
        context.fireUserEventTriggered(event);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        log(context, context.channel().isWritable() ? "writable" : "not writable");
        context.fireChannelWritabilityChanged();
    }

    @Override
    public void close(ChannelHandlerContext context, ChannelPromise promise) {
        log(context, "close");
        context.close(promise);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        log(context, "failed: " + cause);
        context.fireExceptionCaught(cause);
    }
}
