package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.CompletionReader;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.PacketBatch;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvSrqInitAttrEx;
import org.verbena.verbs.ffm.IbvTmCap;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.internal.Seam;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.packet.ffm.IbvOpsWr;
import org.verbena.verbs.packet.ffm.PacketOps;

/**
 * The tags that a shared receive queue matches messages by: a message with a tag in the list goes to that tag's memory,
 * others take an ordinary receive.
 *
 * <pre>{@code
 * int slot = list.add(1, true, 42, tag, -1L).sge(region, 0, 4096).slot();
 * list.flush();
 * int handle = list.handle(slot);           // until the slot is used again
 * list.remove(2, true, handle).flush();
 * }</pre>
 *
 * <p>Operations complete in the queue's completion queue if they are signalled. A completion with {@link
 * CompletionReader#isTagSynchronizationRequested()} requests the number of unexpected messages that have been handled:
 * {@link #synchronize}, or {@link #processed} with any operation.
 *
 * <p>Source: ibv_post_srq_ops(3)
 */
public final class TagList extends PacketBatch implements AutoCloseable {
    /** {@code IBV_OPS_SIGNALED}. */
    static final int SIGNALED = 1;

    /** {@code IBV_OPS_TM_SYNC}. */
    static final int SYNC = 1 << 1;

    private static final int LOCAL_WRITE = AccessFlag.LOCAL_WRITE.value();
    private static final int ADD = TagOperation.ADD.value();

    /**
     * Which slots hold an addition that the device took, one bit each: there are {@link #MAX_STAGED_WRS} slots at the
     * most.
     */
    private long added;

    /** The highest handle that the device gave, unsigned; -1 before the first. Devices look handles up in a table. */
    private long highestHandle = -1;

    private final SharedReceiveQueue queue;

    private TagList(SharedReceiveQueue queue, MemorySegment postFunction, int depthOperations, int maxSges) {
        super(
                Seam.PACKET,
                queue,
                "ibv_post_srq_ops",
                postFunction,
                depthOperations,
                maxSges,
                IbvOpsWr.SIZE,
                IbvOpsWr.NEXT,
                IbvOpsWr.TM_ADD_SG_LIST);
        this.queue = queue;
    }

    /**
     * Creates a shared receive queue that matches messages by their tags, and its list.
     *
     * @param domain of the memory
     * @param depthWrs receives for unexpected messages it holds at least, 1 or more
     * @param maxSges scatter/gather elements in one of them, 1 or more
     * @param maxTags tags that may wait in the list, 1 or more
     * @param maxTagOperations operations on the list that may be outstanding, 1 or more
     * @param completions where receives and operations complete
     * @return the list; the caller closes it, which closes its {@link #queue()}
     * @throws VerbsException the device does not match tags, or refused
     */
    public static TagList create(
            ProtectionDomain domain,
            int depthWrs,
            int maxSges,
            int maxTags,
            int maxTagOperations,
            CompletionQueue completions) {
        Ranges.check("maxTags", maxTags, 1, Integer.MAX_VALUE);
        Ranges.check("maxTagOperations", maxTagOperations, 1, Integer.MAX_VALUE);
        TagList[] list = new TagList[1];
        SharedReceiveQueue made = SharedReceiveQueue.create(
                Seam.PACKET,
                domain,
                depthWrs,
                maxSges,
                completions,
                "tag matching, max_num_tags=" + maxTags + ", max_ops=" + maxTagOperations,
                attr -> {
                    attr.set(CStruct.U32, IbvSrqInitAttrEx.COMP_MASK, TAG_MATCHING_MASK);
                    attr.set(CStruct.ENUM, IbvSrqInitAttrEx.SRQ_TYPE, TAG_MATCHING_TYPE);
                    attr.set(CStruct.U32, IbvSrqInitAttrEx.TM_CAP + IbvTmCap.MAX_NUM_TAGS, maxTags);
                    attr.set(CStruct.U32, IbvSrqInitAttrEx.TM_CAP + IbvTmCap.MAX_OPS, maxTagOperations);
                },
                (queue, attr) -> {
                    Context context = domain.context();
                    list[0] = new TagList(
                            queue,
                            operation(context, "ibv_post_srq_ops", VerbsContext.POST_SRQ_OPS),
                            attr.get(CStruct.U32, IbvSrqInitAttrEx.TM_CAP + IbvTmCap.MAX_OPS),
                            Math.clamp(context.queryDeviceExtended().maxTagSges(), 1, MAX_TAG_SGES));
                    return list[0];
                });
        return Objects.requireNonNull(list[0], made::toString);
    }

    /** {@code IBV_SRQ_INIT_ATTR_TYPE | _PD | _CQ | _TM}. */
    static final int TAG_MATCHING_MASK = 1 | 1 << 1 | 1 << 3 | 1 << 4;

    /** {@code IBV_SRQT_TM}. */
    static final int TAG_MATCHING_TYPE = 2;

    /** Devices have one. */
    private static final int MAX_TAG_SGES = 16;

    /**
     * The queue whose messages are matched. Queue pairs are created with it, and it takes the receives for messages
     * that match no tag.
     *
     * @return the queue
     */
    public SharedReceiveQueue queue() {
        return queue;
    }

    /** Closes the queue. */
    @Override
    public void close() {
        queue.close();
    }

    /**
     * Begins to add a tag. Without memory it accepts only empty messages.
     *
     * @param operationId returned in the completion of the addition
     * @param signaled whether it makes a completion
     * @param receiveId returned in the completion of the message
     * @param tag which messages
     * @param mask which bits of a message's tag are compared with it; the others are 0 in it
     * @return this
     * @throws IllegalArgumentException the tag has bits outside of the mask, and would never match
     * @throws IllegalStateException no slot is left: flush first
     */
    public TagList add(long operationId, boolean signaled, long receiveId, long tag, long mask) {
        if ((tag & ~mask) != 0) {
            throw new IllegalArgumentException("the tag 0x" + Long.toHexString(tag) + " has bits outside of the mask 0x"
                    + Long.toHexString(mask) + ", so no message can match it");
        }
        long slot = begin(operationId, signaled, TagOperation.ADD);
        memory.set(CStruct.U64, slot + IbvOpsWr.TM_ADD_RECV_WR_ID, receiveId);
        memory.set(CStruct.U64, slot + IbvOpsWr.TM_ADD_TAG, tag);
        memory.set(CStruct.U64, slot + IbvOpsWr.TM_ADD_MASK, mask);
        return this;
    }

    /**
     * Adds an element to the tag begun last.
     *
     * @param region the region that contains it, with LOCAL_WRITE
     * @param offsetBytes where it begins, from the start of the region
     * @param lengthBytes how long it is, 0 or more
     * @return this
     * @throws IndexOutOfBoundsException outside the region; the operation is not staged
     * @throws IllegalArgumentException without LOCAL_WRITE, closed, of another domain, or too many elements; the
     *     operation is not staged
     * @throws IllegalStateException the operation begun last adds no tag
     */
    public TagList sge(MemoryRegion region, long offsetBytes, int lengthBytes) {
        if (memory.get(CStruct.ENUM, current() + IbvOpsWr.OPCODE) != ADD) {
            throw new IllegalStateException("only an operation that adds a tag has memory");
        }
        checkSge(region, offsetBytes, lengthBytes, LOCAL_WRITE);
        int count = addSge(region.address() + offsetBytes, lengthBytes, region.localKey());
        memory.set(CStruct.I32, current() + IbvOpsWr.TM_ADD_NUM_SGE, count);
        return this;
    }

    /**
     * Removes a tag. If a message has used it in the meantime, the completion has status TM_ERR.
     *
     * @param operationId returned in the completion
     * @param signaled whether it makes a completion
     * @param handle from {@link #handle}
     * @return this
     * @throws IllegalArgumentException the device never returned such a handle
     * @throws IllegalStateException no slot is left: flush first
     */
    public TagList remove(long operationId, boolean signaled, int handle) {
        if (Integer.toUnsignedLong(handle) > highestHandle) {
            throw new IllegalArgumentException(
                    "no tag of " + owner + " has the handle " + Integer.toUnsignedString(handle));
        }
        long slot = begin(operationId, signaled, TagOperation.DEL);
        memory.set(CStruct.U32, slot + IbvOpsWr.TM_HANDLE, handle);
        return this;
    }

    /**
     * Reports how many unexpected messages have been handled, and nothing else.
     *
     * @param operationId returned in the completion
     * @param signaled whether it makes a completion
     * @param unexpectedMessages since the queue was created, modulo 2^32
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public TagList synchronize(long operationId, boolean signaled, int unexpectedMessages) {
        begin(operationId, signaled, TagOperation.SYNC);
        return processed(unexpectedMessages);
    }

    /**
     * Makes the operation begun last also report how many unexpected messages have been handled.
     *
     * @param unexpectedMessages since the queue was created, modulo 2^32
     * @return this
     */
    public TagList processed(int unexpectedMessages) {
        long slot = current();
        memory.set(CStruct.U32, slot + IbvOpsWr.TM_UNEXPECTED_CNT, unexpectedMessages);
        memory.set(CStruct.I32, slot + IbvOpsWr.FLAGS, memory.get(CStruct.I32, slot + IbvOpsWr.FLAGS) | SYNC);
        return this;
    }

    /**
     * The slot of the operation begun last.
     *
     * @return its slot, for {@link #handle}
     */
    public int slot() {
        current();
        return currentSlot();
    }

    /**
     * The device's handle of a tag that was added.
     *
     * @param slot where the addition was
     * @return the handle, for {@link #remove}
     * @throws IllegalStateException the device has not taken the addition yet, or another operation is in its slot
     */
    public int handle(int slot) {
        Objects.checkIndex(slot, capacityWrs());
        owner.nativeAddress();
        if ((added & (1L << slot)) == 0) {
            throw new IllegalStateException("slot " + slot + " of " + owner
                    + " holds no tag that the device has taken: flush first, and ask before the slot is used again");
        }
        return memory.get(CStruct.U32, slot * IbvOpsWr.SIZE + IbvOpsWr.TM_HANDLE);
    }

    private long begin(long operationId, boolean signaled, TagOperation operation) {
        long slot = begin();
        added &= ~(1L << currentSlot());
        memory.set(CStruct.U64, slot + IbvOpsWr.WR_ID, operationId);
        memory.set(CStruct.ENUM, slot + IbvOpsWr.OPCODE, operation.value());
        memory.set(CStruct.I32, slot + IbvOpsWr.FLAGS, signaled ? SIGNALED : 0);
        memory.set(CStruct.U32, slot + IbvOpsWr.TM_UNEXPECTED_CNT, 0);
        memory.set(CStruct.U32, slot + IbvOpsWr.TM_HANDLE, 0);
        memory.set(CStruct.I32, slot + IbvOpsWr.TM_ADD_NUM_SGE, 0);
        return slot;
    }

    @Override
    protected int post(MemorySegment pointer, long queue, long first, long refused) {
        int result = PacketOps.postSrqOps(pointer, queue, first, refused);
        long end = memory.get(CStruct.PTR, refused - memory.address());
        if (result == 0 || end != 0) {
            noteHandles(first, end);
        }
        return result;
    }

    /** Remembers the handles of what the device took: from one operation to another, or to the end of the list. */
    private void noteHandles(long first, long end) {
        for (long at = first; at != 0 && at != end; ) {
            long slot = at - memory.address();
            if (memory.get(CStruct.ENUM, slot + IbvOpsWr.OPCODE) == ADD) {
                added |= 1L << (slot / IbvOpsWr.SIZE);
                highestHandle = Math.max(
                        highestHandle, Integer.toUnsignedLong(memory.get(CStruct.U32, slot + IbvOpsWr.TM_HANDLE)));
            }
            at = memory.get(CStruct.PTR, slot + IbvOpsWr.NEXT);
        }
    }
}
