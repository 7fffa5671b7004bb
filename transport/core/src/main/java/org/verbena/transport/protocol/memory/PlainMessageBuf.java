package org.verbena.transport.protocol.memory;

import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.UnpooledDirectByteBuf;
import java.lang.foreign.MemorySegment;
import org.verbena.transport.buffer.ReleaseHook;

/** A message's memory outside the pool, for which the budget has room but the pool has no single piece. */
final class PlainMessageBuf extends UnpooledDirectByteBuf {
    private final ReleaseHook account;
    private final int charge;
    private final long address;

    PlainMessageBuf(int capacityBytes, ReleaseHook account) {
        super(ByteBufAllocator.DEFAULT, capacityBytes, capacityBytes);
        this.account = account;
        charge = capacityBytes;
        address = MemorySegment.ofBuffer(nioBuffer(0, capacityBytes)).address();
    }

    /**
     * True also where Netty uses Unsafe and its own class says false: a rendezvous registers this memory to read into
     * it.
     */
    @Override
    public boolean hasMemoryAddress() {
        return true;
    }

    @Override
    public long memoryAddress() {
        ensureAccessible();
        return address;
    }

    @Override
    protected void deallocate() {
        super.deallocate();
        account.onReleased(charge);
    }
}
