package org.verbena.api.internal.datagram;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.DefaultByteBufHolder;
import org.jspecify.annotations.Nullable;

/** A datagram on its way out, from the write to the completion. Event loop only. */
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

    /** The device needs its memory no more. */
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

    /** It goes into Netty's outbound buffer, which releases it once: until then its recipient is not forgotten. */
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

    /** It has left, or not. */
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
