package org.verbena.api.internal.datagram;

import io.netty.channel.Channel;
import io.netty.channel.MaxMessagesRecvByteBufAllocator;
import io.netty.channel.socket.DatagramPacket;
import org.jspecify.annotations.Nullable;

/**
 * Fires inbound datagrams through the pipeline, and no more than was requested: each {@code read} brings a batch of at
 * most {@code MAX_MESSAGES_PER_READ} datagrams, which {@code channelReadComplete} ends. Event loop only.
 */
public final class DatagramReader {
    private final Channel channel;
    private final int usualMessagesPerRead;

    /** Null before the channel is bound. */
    private @Nullable DatagramInbound inbound;

    private boolean readPending;
    private boolean isDeliveryScheduled;

    public DatagramReader(Channel channel, int usualMessagesPerRead) {
        this.channel = channel;
        this.usualMessagesPerRead = usualMessagesPerRead;
    }

    /** The channel is bound. */
    public void begin0(DatagramInbound receives) {
        inbound = receives;
    }

    /** A handler, or auto-read, requests more. */
    public void read0() {
        readPending = true;
        if (inbound != null && !inbound.isEmpty() && !isDeliveryScheduled) {
            channel.eventLoop().execute(() -> {
                isDeliveryScheduled = false;
                deliver0();
            });
            isDeliveryScheduled = true;
        }
    }

    /** Earlier requests no longer count: auto-read was switched off. */
    public void stop0() {
        readPending = false;
    }

    /** Delivers a batch, if one was requested. */
    public void deliver0() {
        DatagramInbound receives = inbound;
        if (receives == null || !readPending || !channel.isActive()) {
            return;
        }
        int max = channel.config().getRecvByteBufAllocator() instanceof MaxMessagesRecvByteBufAllocator limits
                ? limits.maxMessagesPerRead()
                : usualMessagesPerRead;
        int delivered = 0;
        DatagramPacket packet;
        while (delivered < max && readPending && channel.isOpen() && (packet = receives.poll0()) != null) {
            delivered++;
            channel.pipeline().fireChannelRead(packet);
        }
        if (delivered > 0) {
            receives.replenish0();
            readPending = false;
            channel.pipeline().fireChannelReadComplete(); // with auto-read on, this asks for more
        }
    }
}
