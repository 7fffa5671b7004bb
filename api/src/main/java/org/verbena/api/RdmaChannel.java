package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelFuture;
import org.verbena.transport.protocol.Framing;
import org.verbena.transport.spi.IncomingConnection;

/**
 * A Netty channel over one RDMA connection, for a {@code Bootstrap} or {@code ServerBootstrap} whose groups are {@link RdmaEventLoopGroup}s.
 * What is written is a {@code ByteBuf}, and is one message; what is read is one, too. On top come one-sided operations on the peer's memory.
 *
 * <p><b>Messages.</b> A write's promise is its send's completion: the peer's adapter has the message (verbs) or it was handed to TCP (soft);
 * that the peer's program has seen it, only a reply can tell. Promises complete exactly once and in order. Buffers of {@link #alloc()}
 * lie in registered memory once the channel is active and go out without a copy; an inbound message is the receive buffer itself. A message counts
 * towards writability until its send has completed, and a channel without credit is unwritable: the peer has no receive for more.
 */
public final class RdmaChannel extends AbstractRdmaChannel {

    /** Makes one to connect with, for a bootstrap. */
    public RdmaChannel() {
        super(null, null);
    }

    /** Makes one for a connection request. */
    RdmaChannel(RdmaServerChannel parent, IncomingConnection request) {
        super(parent, request);
    }

    @Override
    RdmaChannelConfig newConfig() {
        return new RdmaChannelConfig(this, Framing.MESSAGE);
    }

    /**
     * Sends a message: {@link #writeAndFlush(Object)} by its plain name.
     *
     * @param message from its reader index to its writer index; its ownership is taken
     * @return done when the send has completed
     */
    public ChannelFuture send(ByteBuf message) {
        return writeAndFlush(message);
    }
}
