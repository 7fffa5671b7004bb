package org.verbena.api.datagram;

import io.netty.buffer.ByteBuf;
import io.netty.channel.socket.DatagramPacket;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;

/**
 * A datagram with what RDMA adds to it: 32 bits of immediate data, and a sender that is an {@link RdmaDatagramAddress}.
 * An {@link RdmaDatagramChannel} receives only such packets. A packet to send may have immediate data of the program's
 * choice, or none; a plain {@link DatagramPacket} is sent with the number of the channel's queue pair.
 */
public final class RdmaDatagramPacket extends DatagramPacket {
    private final boolean hasImmediateData;
    private final int immediateData;

    RdmaDatagramPacket(
            ByteBuf content,
            @Nullable InetSocketAddress recipient,
            @Nullable InetSocketAddress sender,
            boolean hasImmediateData,
            int immediateData) {
        super(content, recipient, sender);
        this.hasImmediateData = hasImmediateData;
        this.immediateData = immediateData;
    }

    /**
     * A datagram without immediate data.
     *
     * @param content owned by the packet
     * @param recipient where it goes
     */
    public RdmaDatagramPacket(ByteBuf content, InetSocketAddress recipient) {
        this(content, recipient, null, false, 0);
    }

    /**
     * A datagram with immediate data.
     *
     * @param content owned by the packet
     * @param recipient where it goes
     * @param immediateData in host order
     */
    public RdmaDatagramPacket(ByteBuf content, InetSocketAddress recipient, int immediateData) {
        this(content, recipient, null, true, immediateData);
    }

    /**
     * Whether it has immediate data.
     *
     * @return false if {@link #immediateData()} means nothing
     */
    public boolean hasImmediateData() {
        return hasImmediateData;
    }

    /**
     * The immediate data.
     *
     * @return in host order; 0 if there are none
     */
    public int immediateData() {
        return immediateData;
    }

    @Override
    public RdmaDatagramPacket copy() {
        return replace(content().copy());
    }

    @Override
    public RdmaDatagramPacket duplicate() {
        return replace(content().duplicate());
    }

    @Override
    public RdmaDatagramPacket retainedDuplicate() {
        return replace(content().retainedDuplicate());
    }

    @Override
    public RdmaDatagramPacket replace(ByteBuf content) {
        return new RdmaDatagramPacket(content, recipient(), sender(), hasImmediateData, immediateData);
    }

    @Override
    public RdmaDatagramPacket retain() {
        super.retain();
        return this;
    }

    @Override
    public RdmaDatagramPacket retain(int increment) {
        super.retain(increment);
        return this;
    }

    @Override
    public RdmaDatagramPacket touch() {
        super.touch();
        return this;
    }

    @Override
    public RdmaDatagramPacket touch(Object hint) {
        super.touch(hint);
        return this;
    }
}
