package org.verbena.api.internal.channel;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufHolder;
import org.jspecify.annotations.Nullable;

/**
 * A message that is made when its turn comes: by then nobody may want it any more. What it is made of belongs to the
 * implementor, which releases it when the promise of the write is done; counting references to this has no effect.
 */
public interface DeferredMessage extends ByteBufHolder {
    /**
     * Makes it. Event loop only, once.
     *
     * @return owned by the caller; null if nobody wants it
     */
    @Nullable ByteBuf make0(ByteBufAllocator allocator);

    /** What it carries, whose length counts for writability; empty once nobody wants it. */
    @Override
    ByteBuf content();

    @Override
    default ByteBufHolder copy() {
        throw new UnsupportedOperationException("a message that is made later cannot be copied");
    }

    @Override
    default ByteBufHolder duplicate() {
        return copy();
    }

    @Override
    default ByteBufHolder retainedDuplicate() {
        return copy();
    }

    @Override
    default ByteBufHolder replace(ByteBuf content) {
        return copy();
    }

    @Override
    default int refCnt() {
        return 1;
    }

    @Override
    default DeferredMessage retain() {
        return this;
    }

    @Override
    default DeferredMessage retain(int increment) {
        return this;
    }

    @Override
    default DeferredMessage touch() {
        return this;
    }

    @Override
    default DeferredMessage touch(Object hint) {
        return this;
    }

    @Override
    default boolean release() {
        return false;
    }

    @Override
    default boolean release(int decrement) {
        return false;
    }
}
