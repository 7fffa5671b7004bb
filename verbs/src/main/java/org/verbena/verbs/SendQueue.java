package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvSendWr;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.ffm.VerbsOps;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.WorkRequestOpcode;

/**
 * The send queue of a queue pair: sends, writes, reads and atomics are posted here.
 *
 * <pre>{@code
 * queue.send(id, SendFlags.SIGNALED).sge(region, 0, 64);
 * queue.read(id + 1, SendFlags.SIGNALED, remoteAddress, remoteKey).sge(region, 4096, 1024);
 * queue.flush();
 * }</pre>
 *
 * <p>A slot of the device's queue is free again when its completion, or that of a later work request, has been polled:
 * signal the last of a batch and at least one in every queue depth. An invalid work request, one that the queue pair's
 * type does not carry, out of range or without the right, throws before the device sees it and leaves the other staged
 * work requests unchanged.
 *
 * <p>Source: ibv_post_send(3)
 */
public final class SendQueue extends PostBatch {
    /** All of {@link SendFlags}. */
    static final int ALL_FLAGS =
            SendFlags.FENCE | SendFlags.SIGNALED | SendFlags.SOLICITED | SendFlags.INLINE | SendFlags.IP_CSUM;

    private static final int LOCAL_WRITE = AccessFlag.LOCAL_WRITE.value();
    private static final int RDMA_WRITE = WorkRequestOpcode.RDMA_WRITE.value();
    private static final int RDMA_WRITE_WITH_IMM = WorkRequestOpcode.RDMA_WRITE_WITH_IMM.value();
    private static final int SEND = WorkRequestOpcode.SEND.value();
    private static final int SEND_WITH_IMM = WorkRequestOpcode.SEND_WITH_IMM.value();
    private static final int SEND_WITH_INV = WorkRequestOpcode.SEND_WITH_INV.value();
    private static final int RDMA_READ = WorkRequestOpcode.RDMA_READ.value();
    private static final int ATOMIC_CMP_AND_SWP = WorkRequestOpcode.ATOMIC_CMP_AND_SWP.value();
    private static final int ATOMIC_FETCH_AND_ADD = WorkRequestOpcode.ATOMIC_FETCH_AND_ADD.value();

    private static final int LOCAL_INV = WorkRequestOpcode.LOCAL_INV.value();
    private static final int BIND_MW = WorkRequestOpcode.BIND_MW.value();
    private static final int TSO = WorkRequestOpcode.TSO.value();

    private final int maxInlineBytes;

    /** Those that the queue pair's type carries, a bit each. */
    private final int opcodes;

    /** Of the work request being filled. */
    private int flags;

    private int rights;
    private int maxSges;
    private long payloadBytes;
    private int inlineUsed;

    SendQueue(QueuePair owner, MemorySegment postFunction, QueuePairCapabilities sizes) {
        super(
                owner,
                owner.domain(),
                "ibv_post_send",
                postFunction,
                sizes.maxSendWrs(),
                sizes.maxSendSges(),
                IbvSendWr.SIZE,
                IbvSendWr.NEXT,
                IbvSendWr.SG_LIST,
                sizes.maxInlineBytes());
        this.maxInlineBytes = sizes.maxInlineBytes();
        QueuePairType type = owner.options().type();
        int carried = 0;
        for (WorkRequestOpcode opcode : WorkRequestOpcode.values()) {
            carried |= type.carries(opcode) ? 1 << opcode.value() : 0;
        }
        opcodes = carried;
    }

    /**
     * The largest payload of an inline work request.
     *
     * @return what the device granted, 0 without inline
     */
    public int maxInlineBytes() {
        return maxInlineBytes;
    }

    private long begin(long workRequestId, int opcode, int mask, int neededRights, int sges) {
        if ((mask & ~ALL_FLAGS) != 0) {
            throw new IllegalArgumentException("unknown flags in 0x" + Integer.toHexString(mask) + "; see SendFlags");
        }
        if ((opcodes & 1 << opcode) == 0) {
            throw notCarried(opcode);
        }
        long slot = begin();
        memory.set(CStruct.U64, slot + IbvSendWr.WR_ID, workRequestId);
        memory.set(CStruct.I32, slot + IbvSendWr.NUM_SGE, 0);
        memory.set(CStruct.ENUM, slot + IbvSendWr.OPCODE, opcode);
        memory.set(CStruct.U32, slot + IbvSendWr.SEND_FLAGS, mask);
        flags = mask;
        rights = neededRights;
        maxSges = sges;
        payloadBytes = 0;
        inlineUsed = 0;
        return slot;
    }

    private IllegalArgumentException notCarried(int opcode) {
        WorkRequestOpcode refused = WorkRequestOpcode.of(opcode);
        String types = Arrays.stream(QueuePairType.values())
                .filter(other -> other != QueuePairType.DRIVER && other.carries(refused))
                .map(QueuePairType::name)
                .collect(Collectors.joining(", "));
        return new IllegalArgumentException(
                refused + " needs a queue pair of type " + types + ", which " + owner + " is not");
    }

    private void remote(long slot, long address, int key) {
        memory.set(CStruct.U64, slot + IbvSendWr.WR_RDMA_REMOTE_ADDR, address);
        memory.set(CStruct.U32, slot + IbvSendWr.WR_RDMA_RKEY, key);
    }

    private void immediate(long slot, int hostOrder) {
        memory.set(CStruct.U32, slot + IbvSendWr.IMM_DATA, Pointers.bigEndian(hostOrder));
    }

    /**
     * Begins a send: fills a receive of the peer with the elements that follow.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public SendQueue send(long workRequestId, int mask) {
        begin(workRequestId, SEND, mask, 0, maxSges());
        return this;
    }

    /**
     * Begins a send with immediate data.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}
     * @param immediate 32 bits for the peer's completion, in host order
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public SendQueue sendWithImmediate(long workRequestId, int mask, int immediate) {
        immediate(begin(workRequestId, SEND_WITH_IMM, mask, 0, maxSges()), immediate);
        return this;
    }

    /**
     * Begins a send that invalidates a key of the peer.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}
     * @param remoteKey the peer's key
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public SendQueue sendWithInvalidate(long workRequestId, int mask, int remoteKey) {
        long slot = begin(workRequestId, SEND_WITH_INV, mask, 0, maxSges());
        memory.set(CStruct.U32, slot + IbvSendWr.INVALIDATE_RKEY, remoteKey);
        return this;
    }

    /**
     * Begins a write of the elements that follow into the peer's memory. Its completion does not mean that the peer's
     * program can see the data.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public SendQueue write(long workRequestId, int mask, long remoteAddress, int remoteKey) {
        remote(begin(workRequestId, RDMA_WRITE, mask, 0, maxSges()), remoteAddress, remoteKey);
        return this;
    }

    /**
     * Begins a write that also consumes a receive of the peer and delivers 32 bits to it.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key
     * @param immediate 32 bits for the peer's completion, in host order
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public SendQueue writeWithImmediate(
            long workRequestId, int mask, long remoteAddress, int remoteKey, int immediate) {
        long slot = begin(workRequestId, RDMA_WRITE_WITH_IMM, mask, 0, maxSges());
        remote(slot, remoteAddress, remoteKey);
        immediate(slot, immediate);
        return this;
    }

    /**
     * Begins a read of the peer's memory into the elements that follow, which need LOCAL_WRITE.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}, INLINE excepted
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public SendQueue read(long workRequestId, int mask, long remoteAddress, int remoteKey) {
        refuseInline(mask, "a read");
        remote(begin(workRequestId, RDMA_READ, mask, LOCAL_WRITE, maxSges()), remoteAddress, remoteKey);
        return this;
    }

    /**
     * Stages an atomic compare-and-swap of 8 bytes in the peer's memory.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}, INLINE excepted
     * @param remoteAddress where, in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key
     * @param expected swap only if the old value equals this
     * @param value the new value
     * @param result where the old value goes, in host order; needs LOCAL_WRITE
     * @param resultOffsetBytes where in it
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     * @throws IndexOutOfBoundsException the result is outside its region
     * @throws IllegalArgumentException the remote address is not aligned, or the result's region lacks LOCAL_WRITE
     */
    public SendQueue compareAndSwap(
            long workRequestId,
            int mask,
            long remoteAddress,
            int remoteKey,
            long expected,
            long value,
            MemoryRegion result,
            long resultOffsetBytes) {
        return atomic(
                ATOMIC_CMP_AND_SWP,
                workRequestId,
                mask,
                remoteAddress,
                remoteKey,
                expected,
                value,
                result,
                resultOffsetBytes);
    }

    /**
     * Stages an atomic add to 8 bytes in the peer's memory.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}, INLINE excepted
     * @param remoteAddress where, in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key
     * @param add what to add; wraps
     * @param result where the old value goes, in host order; needs LOCAL_WRITE
     * @param resultOffsetBytes where in it
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     * @throws IndexOutOfBoundsException the result is outside its region
     * @throws IllegalArgumentException the remote address is not aligned, or the result's region lacks LOCAL_WRITE
     */
    public SendQueue fetchAndAdd(
            long workRequestId,
            int mask,
            long remoteAddress,
            int remoteKey,
            long add,
            MemoryRegion result,
            long resultOffsetBytes) {
        return atomic(
                ATOMIC_FETCH_AND_ADD, workRequestId, mask, remoteAddress, remoteKey, add, 0, result, resultOffsetBytes);
    }

    private SendQueue atomic(
            int opcode,
            long workRequestId,
            int mask,
            long remoteAddress,
            int remoteKey,
            long compareOrAdd,
            long swap,
            MemoryRegion result,
            long resultOffsetBytes) {
        refuseInline(mask, "an atomic");
        if ((remoteAddress & (Long.BYTES - 1)) != 0) {
            throw new IllegalArgumentException(
                    "an atomic's remote address 0x" + Long.toHexString(remoteAddress) + " is not a multiple of 8");
        }
        long slot = begin(workRequestId, opcode, mask, LOCAL_WRITE, 1);
        memory.set(CStruct.U64, slot + IbvSendWr.WR_ATOMIC_REMOTE_ADDR, remoteAddress);
        memory.set(CStruct.U64, slot + IbvSendWr.WR_ATOMIC_COMPARE_ADD, compareOrAdd);
        memory.set(CStruct.U64, slot + IbvSendWr.WR_ATOMIC_SWAP, swap);
        memory.set(CStruct.U32, slot + IbvSendWr.WR_ATOMIC_RKEY, remoteKey);
        return sge(result, resultOffsetBytes, Long.BYTES);
    }

    /** Makes the work request that was staged last signal its completion. Does nothing if none is staged. */
    public void signalLast() {
        if (stagedWrs() > 0) {
            long flagsAt = currentSlot() * IbvSendWr.SIZE + IbvSendWr.SEND_FLAGS;
            flags |= SendFlags.SIGNALED; // SGEs may still follow
            memory.set(CStruct.U32, flagsAt, memory.get(CStruct.U32, flagsAt) | SendFlags.SIGNALED);
        }
    }

    /**
     * Sets the destination of the datagram begun last.
     *
     * @param address resolved; stays open until the completion
     * @param queuePairNumber the peer's queue pair
     * @param qkey the peer's Q_Key; with the top bit set the queue pair's own is sent
     * @return this
     * @throws IllegalStateException the address is closed; the work request is not staged
     */
    public SendQueue to(AddressHandle address, int queuePairNumber, int qkey) {
        long slot = current();
        try {
            memory.set(CStruct.PTR, slot + IbvSendWr.WR_UD_AH, address.nativeAddress());
        } catch (IllegalStateException closed) {
            throw takenBack(closed);
        }
        memory.set(CStruct.U32, slot + IbvSendWr.WR_UD_REMOTE_QPN, queuePairNumber);
        memory.set(CStruct.U32, slot + IbvSendWr.WR_UD_REMOTE_QKEY, qkey);
        return this;
    }

    /**
     * Sets the shared receive queue of the peer for the work request begun last; XRC_SEND only.
     *
     * @param number the queue's {@link SharedReceiveQueue#number()}
     * @return this
     */
    public SendQueue toSharedReceiveQueue(int number) {
        memory.set(CStruct.U32, current() + IbvSendWr.QP_TYPE_XRC_REMOTE_SRQN, number);
        return this;
    }

    /**
     * Stages the binding of a type 2 memory window. What is posted behind it finds the window bound.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}
     * @param window not bound now
     * @param key the window's new key: {@link MemoryWindow#nextKey} of its last one
     * @param region what it is a window into, registered with MW_BIND
     * @param offsetBytes where it begins
     * @param lengthBytes how long it is, 1 or more
     * @param access what the peer may do
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     * @throws IndexOutOfBoundsException outside the region
     * @throws IllegalArgumentException the region lacks MW_BIND, or is of another domain
     */
    public SendQueue bindWindow(
            long workRequestId,
            int mask,
            MemoryWindow window,
            int key,
            MemoryRegion region,
            long offsetBytes,
            long lengthBytes,
            Set<AccessFlag> access) {
        if (window.type() != WindowType.TYPE_2) {
            throw new IllegalArgumentException("only type 2 windows are bound by work requests; see MemoryWindow.bind");
        }
        window.checkBinding(region, offsetBytes, lengthBytes);
        refuseInline(mask, "a binding");
        long address = window.nativeAddress();
        long slot = begin(workRequestId, BIND_MW, mask, 0, 0);
        memory.set(CStruct.U32, slot + IbvSendWr.IMM_DATA, 0); // what the slot had before: librxe reads it
        memory.set(CStruct.PTR, slot + IbvSendWr.BIND_MW_MW, address);
        memory.set(CStruct.U32, slot + IbvSendWr.BIND_MW_RKEY, key);
        try {
            MemoryWindow.writeBinding(
                    memory, slot + IbvSendWr.BIND_MW_BIND_INFO, region, offsetBytes, lengthBytes, access);
        } catch (RuntimeException refused) {
            throw takenBack(refused);
        }
        return this;
    }

    /**
     * Stages the invalidation of a key of this side: unbinds a type 2 memory window.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}
     * @param key the window's key
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public SendQueue localInvalidate(long workRequestId, int mask, int key) {
        refuseInline(mask, "an invalidation");
        long slot = begin(workRequestId, LOCAL_INV, mask, 0, 0);
        memory.set(CStruct.U32, slot + IbvSendWr.INVALIDATE_RKEY, key);
        return this;
    }

    /**
     * Begins a raw packet that the adapter cuts into segments, each behind a copy of the header.
     *
     * @param workRequestId returned in the completion
     * @param mask of {@link SendFlags}
     * @param header native memory that stays as it is until the flush, up to 65535 bytes
     * @param segmentBytes the largest payload of a segment, up to 65535
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public SendQueue sendSegmented(long workRequestId, int mask, MemorySegment header, int segmentBytes) {
        if (!header.isNative()) {
            throw new IllegalArgumentException("the header must be native memory");
        }
        Ranges.check("segmentBytes", segmentBytes, 1, 0xffff);
        int headerBytes = (int) Math.min(header.byteSize(), Integer.MAX_VALUE);
        Ranges.check("the header's length", headerBytes, 1, 0xffff);
        long slot = begin(workRequestId, TSO, mask, 0, maxSges());
        memory.set(CStruct.PTR, slot + IbvSendWr.TSO_HDR, header.address());
        memory.set(CStruct.U16, slot + IbvSendWr.TSO_HDR_SZ, (short) headerBytes);
        memory.set(CStruct.U16, slot + IbvSendWr.TSO_MSS, (short) segmentBytes);
        return this;
    }

    private static void refuseInline(int mask, String what) {
        if ((mask & SendFlags.INLINE) != 0) {
            throw new IllegalArgumentException(what + " cannot be INLINE");
        }
    }

    /**
     * Adds an element to the work request begun last. With INLINE it is copied when flushing; otherwise it must not
     * change until the completion. The message is its elements in order, but a device may access them in any: the
     * content of memory that two elements of a read share is undefined.
     *
     * @param region the region that contains it
     * @param offsetBytes where it begins, from the start of the region
     * @param lengthBytes how long it is, 0 or more
     * @return this
     * @throws IndexOutOfBoundsException outside the region; the work request is not staged
     * @throws IllegalArgumentException without the right the work request needs, closed, of another domain, too many
     *     elements, or longer than {@link #maxInlineBytes()} with INLINE; the work request is not staged
     */
    public SendQueue sge(MemoryRegion region, long offsetBytes, int lengthBytes) {
        checkSge(region, offsetBytes, lengthBytes, rights);
        add(region.address() + offsetBytes, lengthBytes, region.localKey());
        return this;
    }

    /**
     * Adds an element that the caller has checked: it lies in an open region of this queue's protection domain, with
     * the right that the work request needs. A device fails an invalid one, and its queue pair with it.
     *
     * @param address where it begins, from {@link MemoryRegion#address()} on
     * @param lengthBytes how long it is, 0 or more
     * @param localKey the region's {@link MemoryRegion#localKey()}
     * @return this
     * @throws IllegalArgumentException too many elements, or longer than {@link #maxInlineBytes()} with INLINE; the
     *     work request is not staged
     */
    public SendQueue uncheckedSge(long address, int lengthBytes, int localKey) {
        current();
        add(address, lengthBytes, localKey);
        return this;
    }

    /**
     * Adds a copy of any memory to the work request begun last, and makes it INLINE: the memory can be reused when this
     * returns, and needs no registration.
     *
     * @param data native or on the heap
     * @param offsetBytes where the copied part begins
     * @param lengthBytes how long it is, 0 or more
     * @return this
     * @throws IndexOutOfBoundsException outside the data; the work request is not staged
     * @throws IllegalArgumentException longer than {@link #maxInlineBytes()} altogether, too many elements, or a read
     *     or atomic; the work request is not staged
     * @throws IllegalStateException the data's arena is closed; the work request is not staged
     * @throws WrongThreadException the data belongs to another thread; the work request is not staged
     */
    public SendQueue inline(MemorySegment data, long offsetBytes, int lengthBytes) {
        long slot = current();
        if (rights != 0) {
            throw refuse("reads and atomics cannot be INLINE: their data comes from the peer");
        }
        if (offsetBytes < 0 || lengthBytes < 0 || offsetBytes > data.byteSize() - lengthBytes) {
            throw refuseOutside("offset " + offsetBytes + " and length " + lengthBytes + " are outside a segment of "
                    + data.byteSize() + " bytes");
        }
        flags |= SendFlags.INLINE;
        memory.set(CStruct.U32, slot + IbvSendWr.SEND_FLAGS, flags);
        if (payloadBytes + lengthBytes > maxInlineBytes) {
            throw tooLongForInline(lengthBytes);
        }
        long copy = extraAt() + (long) currentSlot() * maxInlineBytes + inlineUsed;
        try {
            MemorySegment.copy(data, offsetBytes, memory, copy, lengthBytes);
        } catch (RuntimeException unreadable) {
            throw takenBack(unreadable);
        }
        inlineUsed += lengthBytes;
        add(memory.address() + copy, lengthBytes, 0);
        return this;
    }

    private void add(long address, int lengthBytes, int localKey) {
        if (sgeCount() == maxSges) {
            throw refuse("more than " + maxSges + " SGEs");
        }
        payloadBytes += lengthBytes;
        if ((flags & SendFlags.INLINE) != 0 && payloadBytes > maxInlineBytes) {
            throw tooLongForInline(0);
        }
        int count = addSge(address, lengthBytes, localKey);
        memory.set(CStruct.I32, current() + IbvSendWr.NUM_SGE, count);
    }

    private IllegalArgumentException tooLongForInline(int more) {
        return refuse((payloadBytes + more) + " bytes are more than the " + maxInlineBytes
                + " that may be INLINE: ask for a larger maxInlineBytes, or send from a region");
    }

    @Override
    protected int post(MemorySegment pointer, long queue, long first, long refused) {
        return VerbsOps.postSend(pointer, queue, first, refused);
    }
}
