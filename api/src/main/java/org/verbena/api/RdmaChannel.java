package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelConfig;
import io.netty.channel.ChannelFuture;
import java.nio.channels.NotYetConnectedException;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.channel.ChannelClaims;
import org.verbena.api.internal.server.Arrival;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.protocol.connection.MessageConnection;

/**
 * A Netty channel over one RDMA connection, for a {@code Bootstrap} or {@code ServerBootstrap} whose groups are {@link
 * RdmaEventLoopGroup}s. Each {@code ByteBuf} written is one message, and so is each {@code ByteBuf} read. The channel
 * also offers one-sided operations on the peer's memory.
 *
 * <p><b>Messages.</b> A write's promise completes with its send: the peer's adapter has the message (verbs), or TCP has
 * taken it (soft); with {@link RdmaChannelOption#SEND_COMPLETION} sooner. Only a reply shows that the peer's program
 * has seen it. Promises complete exactly once and in order. Once the channel is active, buffers of {@link #alloc()} lie
 * in registered memory and are sent without a copy; an inbound message is the receive buffer itself on devices, and
 * memory of its size on soft and shm. A message counts towards writability until its promise completes, and a channel
 * without credit is not writable: the peer has no receive for more.
 */
public final class RdmaChannel extends AbstractRdmaChannel {
    private @Nullable ChannelClaims claims;

    /** Creates a channel to connect with, for a bootstrap. */
    public RdmaChannel() {
        super(null, null);
    }

    /** Creates a channel for a connection request. */
    RdmaChannel(RdmaServerChannel parent, Arrival.Rdma arrival) {
        super(parent, arrival);
    }

    @Override
    RdmaChannelConfig<?> newConfig() {
        return new RdmaChannelConfig<ChannelConfig>(this);
    }

    /**
     * Sends a message, as {@link #writeAndFlush(Object)} does.
     *
     * @param message from its reader index to its writer index; its ownership is taken
     * @return done when the send has completed
     */
    public ChannelFuture send(ByteBuf message) {
        return writeAndFlush(message);
    }

    /**
     * Returns the claims of this channel: short messages that are written into the next frame, without a buffer, a
     * promise or the pipeline's outbound handlers. They keep their order with writes that were flushed. A claim that is
     * back-pressured makes the channel unwritable; {@code channelWritabilityChanged} follows when it is worth trying
     * again, or {@code channelInactive}.
     *
     * <p>The channel of an {@link RdmaClient} or {@link RdmaServer} has handlers that give messages a header: do not
     * claim there.
     *
     * @return those of this channel, for its event loop only
     * @throws NotYetConnectedException before the channel is active
     * @throws IllegalStateException this thread is not the channel's event loop
     * @throws UnsupportedOperationException the channel has framing RAW
     */
    public MessageClaims claims() {
        ChannelClaims.checkInLoop(host());
        ChannelClaims made = claims;
        if (made == null) {
            MessageConnection begun = connection().begun();
            if (begun == null || begun.negotiated() == null) {
                throw new NotYetConnectedException();
            }
            made = new ChannelClaims(host(), outboundBridge0(), connection(), begun);
            claims = made;
        }
        return made;
    }
}
