package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.EventLoop;
import io.netty.channel.MaxMessagesRecvByteBufAllocator;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.MessageConnection;

/**
 * Takes what the connection delivers to the pipeline, in batches that end with {@code channelReadComplete}, and no more than was asked for: with auto-read off,
 * each {@code read} brings a batch of {@code MAX_MESSAGES_PER_READ} messages at the most. The loop's.
 */
final class InboundBridge {

    /** The channel, as far as this bridge needs it. */
    interface Host {
        ChannelPipeline pipeline();

        ChannelConfig config();

        EventLoop eventLoop();

        /** Whether what comes is for the pipeline: the channel is active, and nobody has closed it or its input. */
        boolean wantsInbound0();

        /** The connection, once connected and until it is over. */
        @Nullable MessageConnection connection0();
    }

    private final Host host;
    private final int usualMessagesPerRead;
    private final Runnable deliver = this::deliver0;

    /** Whether the connection delivers; it does at first. */
    private boolean reading = true;

    private boolean readPending;
    private boolean inBatch;
    private int messagesInBatch;

    InboundBridge(Host host, int usualMessagesPerRead) {
        this.host = host;
        this.usualMessagesPerRead = usualMessagesPerRead;
    }

    /** A handler, or auto-read, wants to have more. */
    void read() {
        readPending = true;
    }

    boolean isReadPending() {
        return readPending;
    }

    /** Lets the connection deliver. */
    void resume(MessageConnection open) {
        if (!reading) {
            reading = true;
            if (open.setReading(true)) {
                host.eventLoop().execute(deliver);
            }
        }
    }

    /** Auto-read was switched off: what was asked for does not count any more. */
    void stop() {
        readPending = false;
        pause();
    }

    /** With auto-read off and nothing asked for, what comes waits. */
    void pauseIfUnasked() {
        if (!readPending && !host.config().isAutoRead()) {
            pause();
        }
    }

    private void pause() {
        MessageConnection open = host.connection0();
        if (reading && open != null && host.wantsInbound0()) {
            reading = false;
            open.setReading(false);
        }
    }

    private void deliver0() {
        MessageConnection open = host.connection0();
        if (open != null && reading) {
            open.deliverPending();
        }
    }

    void onMessage(ByteBuf message) {
        if (!host.wantsInbound0()) {
            message.release();
            return;
        }
        readPending = false;
        inBatch = true;
        messagesInBatch++;
        host.pipeline().fireChannelRead(message);
        if (messagesInBatch >= messagesPerRead()) {
            pauseIfUnasked();
            endBatch();
        }
    }

    void onEvent(Object event) {
        if (host.wantsInbound0()) {
            readPending = false;
            inBatch = true;
            host.pipeline().fireUserEventTriggered(event);
        }
    }

    /** Tells that what came was read, if anything did. */
    void endBatch() {
        if (inBatch) {
            inBatch = false;
            messagesInBatch = 0;
            host.pipeline().fireChannelReadComplete(); // with auto-read on, this reads again
            pauseIfUnasked();
        }
    }

    /** {@code MAX_MESSAGES_PER_READ}, which Netty keeps there. */
    private int messagesPerRead() {
        return host.config().getRecvByteBufAllocator() instanceof MaxMessagesRecvByteBufAllocator limits
                ? limits.maxMessagesPerRead()
                : usualMessagesPerRead;
    }
}
