package org.verbena.api.internal.channel;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.EventLoop;
import io.netty.channel.MaxMessagesRecvByteBufAllocator;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.LoopClock;

/**
 * Fires inbound messages through the pipeline, in batches that end with {@code channelReadComplete}, and no more than
 * was requested: each {@code read} brings a batch of at most {@code MAX_MESSAGES_PER_READ} messages and events. With
 * auto-read on, Netty asks for the next batch at the end of each, and the connection is never paused. Event loop only.
 */
public final class InboundBridge {

    /** The channel, as far as this bridge needs it. */
    public interface Host {
        ChannelPipeline pipeline();

        ChannelConfig config();

        EventLoop eventLoop();

        /**
         * Whether inbound messages go to the pipeline: the channel is active, and neither it nor its input is closed.
         */
        boolean wantsInbound0();

        /** The connection; null before it is connected and after it has ended. */
        @Nullable MessageConnection connection0();
    }

    private final Host host;
    private final int usualMessagesPerRead;
    private final Runnable deliver = this::deliver0;

    /** Whether the connection delivers messages; initially it does not. */
    private boolean reading;

    private boolean readPending;
    private boolean inBatch;
    /** Whether {@link #turnNanos} ran in this iteration of the event loop. */
    private boolean turnTimed;

    private long turnNanos;
    private int readsInBatch;

    public InboundBridge(Host host, int usualMessagesPerRead) {
        this.host = host;
        this.usualMessagesPerRead = usualMessagesPerRead;
    }

    /** A handler, or auto-read, requests more. */
    public void read() {
        readPending = true;
    }

    public boolean isReadPending() {
        return readPending;
    }

    /** Resumes the connection's delivery. */
    public void resume(MessageConnection open) {
        if (!reading) {
            reading = true;
            if (open.setReading(true)) {
                host.eventLoop().execute(deliver);
            }
        }
    }

    /** Earlier requests no longer count: auto-read was switched off. */
    public void stop() {
        readPending = false;
        pause();
    }

    /** Pauses delivery if no read is requested. */
    private void pauseIfUnasked() {
        if (!readPending) {
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
        begin();
        host.pipeline().fireChannelRead(message);
        endFullBatch();
    }

    public void onEvent(Object event) {
        if (host.wantsInbound0()) {
            begin();
            host.pipeline().fireUserEventTriggered(event);
            endFullBatch();
        }
    }

    private void begin() {
        readPending = false;
        inBatch = true;
        readsInBatch++;
    }

    private void endFullBatch() {
        if (readsInBatch >= messagesPerRead()) {
            endBatch();
        }
    }

    /** Fires {@code channelReadComplete} if anything was read. */
    public void endBatch() {
        if (inBatch) {
            inBatch = false;
            readsInBatch = 0;
            host.pipeline().fireChannelReadComplete(); // with auto-read on, this reads again
            pauseIfUnasked();
        }
    }

    /** A turn of delivery has ended. */
    void endTurn() {
        turnTimed = false;
        endBatch();
    }

    /** When this turn of delivery began, by the loop's clock: the time of the first call in the turn. */
    public long turnNanos(LoopClock clock) {
        if (!turnTimed) {
            turnTimed = true;
            turnNanos = clock.nanoTime();
        }
        return turnNanos;
    }

    /** {@code MAX_MESSAGES_PER_READ}, which Netty keeps there. */
    private int messagesPerRead() {
        return host.config().getRecvByteBufAllocator() instanceof MaxMessagesRecvByteBufAllocator limits
                ? limits.maxMessagesPerRead()
                : usualMessagesPerRead;
    }
}
