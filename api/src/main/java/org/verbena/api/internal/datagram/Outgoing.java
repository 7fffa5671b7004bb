package org.verbena.api.internal.datagram;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.DefaultByteBufHolder;
import io.netty.channel.AddressedEnvelope;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.NotYetConnectedException;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.channel.ConnectAttempt;
import org.verbena.transport.MessageTooLargeException;

/** An outbound datagram, from the write to the completion. Event loop only. */
public final class Outgoing extends DefaultByteBufHolder {
    private final DatagramDestinations.Entry recipient;
    private final int lengthBytes;
    private final boolean hasImmediateData;
    private final int immediateData;

    /** What the device sends from: the content, or a copy of it in registered memory. */
    private @Nullable ByteBuf posted;

    private boolean isUsed;
    private boolean isDone;
    private @Nullable Throwable failure;

    public Outgoing(
            ByteBuf content, DatagramDestinations.Entry recipient, boolean hasImmediateData, int immediateData) {
        super(content);
        lengthBytes = content.readableBytes();
        this.recipient = recipient;
        this.hasImmediateData = hasImmediateData;
        this.immediateData = immediateData;
    }

    /**
     * The bytes of a message that a program writes.
     *
     * @throws UnsupportedOperationException it is no datagram
     * @throws MessageTooLargeException it is longer than that
     */
    public static ByteBuf contentOf(Object message, int maxBytes) {
        ByteBuf content;
        if (message instanceof ByteBuf buffer) {
            content = buffer;
        } else if (message instanceof AddressedEnvelope<?, ?> envelope && envelope.content() instanceof ByteBuf held) {
            content = held;
        } else {
            throw new UnsupportedOperationException("a datagram is a DatagramPacket, another AddressedEnvelope of a"
                    + " ByteBuf, or a ByteBuf on a connected channel, not a "
                    + message.getClass().getName());
        }
        int bytes = content.readableBytes();
        if (bytes > maxBytes) {
            throw new MessageTooLargeException(
                    "a datagram of " + bytes + " bytes is longer than the MTU of this device, which is " + maxBytes
                            + ": send shorter ones, or use a connection",
                    bytes,
                    maxBytes);
        }
        return content;
    }

    /**
     * Where such a message goes.
     *
     * @param connected the peer that the channel is connected to; null if there is none
     * @throws NotYetConnectedException it says no recipient, and the channel is not connected
     */
    public static InetSocketAddress recipientOf(Object message, @Nullable InetSocketAddress connected) {
        SocketAddress given = message instanceof AddressedEnvelope<?, ?> envelope ? envelope.recipient() : null;
        if (given != null) {
            return ConnectAttempt.resolved(given, "write to ");
        }
        if (connected == null) {
            throw new NotYetConnectedException();
        }
        return connected;
    }

    DatagramDestinations.Entry recipient() {
        return recipient;
    }

    boolean hasImmediateData() {
        return hasImmediateData;
    }

    int immediateData() {
        return immediateData;
    }

    /** The device has it: this reference is held until it is done. */
    void posted(ByteBuf memory) {
        posted = memory;
    }

    /** Whether the device has it. */
    boolean isPosted() {
        return posted != null;
    }

    /** The device no longer needs its memory. */
    void giveBack() {
        ByteBuf memory = posted;
        if (memory != null) {
            posted = null;
            memory.release();
        }
    }

    int lengthBytes() {
        return lengthBytes;
    }

    /** Keeps its recipient until Netty's outbound buffer, which gets the datagram, releases it. */
    public Outgoing use() {
        isUsed = true;
        recipient.use();
        return this;
    }

    @Override
    public boolean release() {
        if (isUsed) {
            isUsed = false;
            recipient.unuse();
        }
        return super.release();
    }

    /** Notes that it has been sent, or has failed. */
    void done(@Nullable Throwable cause) {
        isDone = true;
        failure = cause;
        giveBack();
    }

    boolean isDone() {
        return isDone;
    }

    @Nullable Throwable failure() {
        return failure;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }
}
