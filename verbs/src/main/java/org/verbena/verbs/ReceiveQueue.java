package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvRecvWr;
import org.verbena.verbs.ffm.VerbsOps;
import org.verbena.verbs.memory.AccessFlag;

/**
 * Receives are posted here: of one queue pair, shared, or of a receive work queue.
 *
 * <pre>{@code
 * queue.receive(id).sge(region, 0, 4096);
 * queue.flush();
 * }</pre>
 *
 * <p>Source: ibv_post_recv(3), ibv_post_srq_recv(3)
 */
public final class ReceiveQueue extends PostBatch {
    private static final int LOCAL_WRITE = AccessFlag.LOCAL_WRITE.value();

    /** The kind of its owner, which selects C's function that posts. */
    private enum Owner {
        QUEUE_PAIR,
        SHARED,
        WORK_QUEUE
    }

    private final Owner kind;

    ReceiveQueue(
            VerbsObject owner,
            ProtectionDomain domain,
            String function,
            MemorySegment postFunction,
            int depthWrs,
            int maxSges) {
        super(
                owner,
                domain,
                function,
                postFunction,
                depthWrs,
                maxSges,
                IbvRecvWr.SIZE,
                IbvRecvWr.NEXT,
                IbvRecvWr.SG_LIST,
                0);
        this.kind = owner instanceof SharedReceiveQueue
                ? Owner.SHARED
                : owner instanceof PacketObject ? Owner.WORK_QUEUE : Owner.QUEUE_PAIR;
    }

    /**
     * Begins a receive. Without memory it accepts only empty messages.
     *
     * @param workRequestId returned in the completion
     * @return this
     * @throws IllegalStateException no slot is left: flush first
     */
    public ReceiveQueue receive(long workRequestId) {
        long slot = begin();
        memory.set(CStruct.U64, slot + IbvRecvWr.WR_ID, workRequestId);
        memory.set(CStruct.I32, slot + IbvRecvWr.NUM_SGE, 0);
        return this;
    }

    /**
     * Adds an element to the receive begun last. A message fills the elements in order, but a device may access them in
     * any: the content of memory that two elements share is undefined.
     *
     * @param region the region that contains it, with LOCAL_WRITE
     * @param offsetBytes where it begins, from the start of the region
     * @param lengthBytes how long it is, 0 or more
     * @return this
     * @throws IndexOutOfBoundsException outside the region; the receive is not staged
     * @throws IllegalArgumentException without LOCAL_WRITE, closed, of another domain, or too many elements; the
     *     receive is not staged
     */
    public ReceiveQueue sge(MemoryRegion region, long offsetBytes, int lengthBytes) {
        checkSge(region, offsetBytes, lengthBytes, LOCAL_WRITE);
        return uncheckedSge(region.address() + offsetBytes, lengthBytes, region.localKey());
    }

    /**
     * Adds an element that the caller has checked: it lies in an open region of this queue's protection domain, with
     * LOCAL_WRITE. A device fails an invalid one, and its queue pair with it.
     *
     * @param address where it begins, from {@link MemoryRegion#address()} on
     * @param lengthBytes how long it is, 0 or more
     * @param localKey the region's {@link MemoryRegion#localKey()}
     * @return this
     * @throws IllegalArgumentException too many elements; the receive is not staged
     */
    public ReceiveQueue uncheckedSge(long address, int lengthBytes, int localKey) {
        long slot = current();
        memory.set(CStruct.I32, slot + IbvRecvWr.NUM_SGE, addSge(address, lengthBytes, localKey));
        return this;
    }

    @Override
    protected int post(MemorySegment pointer, long queue, long first, long refused) {
        return switch (kind) {
            case QUEUE_PAIR -> VerbsOps.postRecv(pointer, queue, first, refused);
            case SHARED -> VerbsOps.postSrqRecv(pointer, queue, first, refused);
            case WORK_QUEUE -> VerbsOps.postWqRecv(pointer, queue, first, refused);
        };
    }
}
