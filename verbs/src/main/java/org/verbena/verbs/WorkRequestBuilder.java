package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvQpEx;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.NativeHeap;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.WorkRequestOps;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.SendOperation;

/**
 * Builds flushes and atomic writes, which a {@link SendQueue} cannot post, and the writes and sends that go with them.
 * It builds directly in the device's queue, between {@link #start()} and {@link #complete()} or {@link #abort()}: an
 * operation, then what it needs. Post all else to the queue pair's {@link SendQueue}.
 *
 * <pre>{@code
 * builder.start();
 * builder.write(1, SendFlags.SIGNALED, remoteAddress, remoteKey).sge(region, 0, 64);
 * builder.flush(2, SendFlags.SIGNALED, remoteAddress, remoteKey, 64, true, false);
 * builder.complete();
 * }</pre>
 *
 * <p>One thread at a time, and nothing else may be posted to the queue pair before the batch is complete: providers
 * hold a lock. Each operation costs several native calls, where a {@link SendQueue} needs one for a list. An invalid
 * work request throws before the device sees it; the work requests begun since the start can then only be discarded
 * with {@link #abort()}.
 *
 * <p>Source: ibv_wr_post(3)
 */
public final class WorkRequestBuilder {
    private final QueuePair queuePair;
    private final long address;
    private final MemorySegment struct;
    private final int operations;
    private final int maxInlineBytes;
    private final MemorySegment scratch;
    private final MemorySegment start;
    private final MemorySegment complete;
    private final MemorySegment abort;
    private final MemorySegment setSge;
    private final MemorySegment setInline;

    private boolean building;
    private boolean refused;
    private boolean needsData;
    private boolean inlineAnnounced;

    WorkRequestBuilder(QueuePair queuePair, long ibvQpEx, QueuePairExtension extension, QueuePairCapabilities sizes) {
        this.queuePair = queuePair;
        this.address = ibvQpEx;
        this.operations = NativeConstant.mask(extension.sendOperations());
        boolean flushes = extension.sendOperations().contains(SendOperation.FLUSH);
        this.struct = Pointers.view(ibvQpEx, IbvQpEx.SIZE + (flushes ? Long.BYTES : 0));
        this.maxInlineBytes = sizes.maxInlineBytes();
        this.start = function(IbvQpEx.WR_START);
        this.complete = function(IbvQpEx.WR_COMPLETE);
        this.abort = function(IbvQpEx.WR_ABORT);
        this.setSge = function(IbvQpEx.WR_SET_SGE);
        this.setInline = function(IbvQpEx.WR_SET_INLINE_DATA);
        this.scratch = NativeHeap.allocate(Long.BYTES);
    }

    private MemorySegment function(long offset) {
        long pointer = struct.get(CStruct.PTR, offset);
        if (pointer == 0) {
            throw Failures.failure("ibv_wr_*", "function at offset " + offset, Errno.EOPNOTSUPP);
        }
        return Pointers.function(pointer);
    }

    /**
     * Begins a batch.
     *
     * @throws IllegalStateException a batch has been begun and neither completed nor aborted
     */
    public void start() {
        queuePair.nativeAddress();
        if (building) {
            throw new IllegalStateException("a batch is being built: complete or abort it first");
        }
        building = true;
        refused = false;
        needsData = false;
        WorkRequestOps.wrCall(start, address);
    }

    /**
     * Posts the batch to the device.
     *
     * @throws VerbsException the device refused: nothing of the batch was taken
     * @throws IllegalStateException there is no batch, or something in it was refused here: abort it
     */
    public void complete() {
        requireBatch();
        building = false;
        int result = WorkRequestOps.wrComplete(complete, address);
        if (result != 0) {
            throw Failures.failure("ibv_wr_complete", queuePair.toString(), Math.abs(result));
        }
    }

    /** Discards the batch: nothing of it is posted. */
    public void abort() {
        if (building) {
            building = false;
            WorkRequestOps.wrCall(abort, address);
        }
    }

    private void requireBatch() {
        queuePair.nativeAddress();
        if (!building) {
            throw new IllegalStateException("no batch has been begun: start first");
        }
        if (refused) {
            throw new IllegalStateException("a work request of the batch was refused: abort it");
        }
    }

    private MemorySegment begin(SendOperation operation, long offset, long workRequestId, int flags) {
        requireBatch();
        if ((operations & operation.value()) == 0) {
            throw new IllegalArgumentException(
                    operation + " is not among the send operations that " + queuePair + " was created for");
        }
        if ((flags & ~SendQueue.ALL_FLAGS) != 0) {
            throw new IllegalArgumentException("unknown flags in 0x" + Integer.toHexString(flags) + "; see SendFlags");
        }
        struct.set(CStruct.U64, IbvQpEx.WR_ID, workRequestId);
        struct.set(CStruct.U32, IbvQpEx.WR_FLAGS, flags);
        inlineAnnounced = (flags & SendFlags.INLINE) != 0;
        needsData = true;
        return function(offset);
    }

    /**
     * Begins a send.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}; with INLINE data follows by {@link #inline}, without by {@link #sge}
     * @return this
     */
    public WorkRequestBuilder send(long workRequestId, int flags) {
        WorkRequestOps.wrCall(begin(SendOperation.SEND, IbvQpEx.WR_SEND, workRequestId, flags), address);
        return this;
    }

    /**
     * Begins a write.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key
     * @return this
     */
    public WorkRequestBuilder write(long workRequestId, int flags, long remoteAddress, int remoteKey) {
        WorkRequestOps.wrRemote(
                begin(SendOperation.RDMA_WRITE, IbvQpEx.WR_RDMA_WRITE, workRequestId, flags),
                address,
                remoteKey,
                remoteAddress);
        return this;
    }

    /**
     * Builds an atomic write of 8 bytes; nothing follows.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param remoteAddress where, in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key
     * @param value what to write, in host order
     * @return this
     */
    public WorkRequestBuilder atomicWrite(
            long workRequestId, int flags, long remoteAddress, int remoteKey, long value) {
        requireAligned(remoteAddress);
        MemorySegment function = begin(SendOperation.ATOMIC_WRITE, IbvQpEx.WR_ATOMIC_WRITE, workRequestId, flags);
        scratch.set(CStruct.U64, 0, value);
        WorkRequestOps.wrAtomicWrite(function, address, remoteKey, remoteAddress, scratch.address());
        needsData = false;
        return this;
    }

    /**
     * Builds a flush: makes earlier writes visible to all, or persistent, at the peer; nothing follows.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key, of a region with FLUSH_GLOBAL or FLUSH_PERSISTENT
     * @param lengthBytes how much
     * @param persistent persistent, or else visible
     * @param wholeRegion the whole region, or else the range
     * @return this
     */
    public WorkRequestBuilder flush(
            long workRequestId,
            int flags,
            long remoteAddress,
            int remoteKey,
            long lengthBytes,
            boolean persistent,
            boolean wholeRegion) {
        // Behind what rdma-core 44 has; a library that lacks it has refused to create a queue pair with FLUSH.
        MemorySegment function = begin(SendOperation.FLUSH, IbvQpEx.SIZE, workRequestId, flags);
        WorkRequestOps.wrFlush(
                function,
                address,
                remoteKey,
                remoteAddress,
                lengthBytes,
                (byte) (persistent ? FLUSH_PERSISTENT : FLUSH_GLOBAL),
                (byte) (wholeRegion ? 1 : 0));
        needsData = false;
        return this;
    }

    private static final int FLUSH_GLOBAL = 1;
    private static final int FLUSH_PERSISTENT = 2;

    private static void requireAligned(long remoteAddress) {
        if ((remoteAddress & (Long.BYTES - 1)) != 0) {
            throw new IllegalArgumentException(
                    "an atomic's remote address 0x" + Long.toHexString(remoteAddress) + " is not a multiple of 8");
        }
    }

    /**
     * Sets the single element of the work request begun last.
     *
     * @param region the region that contains it
     * @param offsetBytes where it begins
     * @param lengthBytes how long it is
     * @return this
     * @throws IndexOutOfBoundsException outside the region: abort the batch
     * @throws IllegalArgumentException closed, or of another protection domain: abort the batch
     */
    public WorkRequestBuilder sge(MemoryRegion region, long offsetBytes, int lengthBytes) {
        check(region, offsetBytes, lengthBytes);
        if (lengthBytes == 0) {
            // Not the length 0, which some adapters take for 2^31 bytes.
            WorkRequestOps.wrSetSgeList(function(IbvQpEx.WR_SET_SGE_LIST), address, 0, scratch.address());
        } else {
            WorkRequestOps.wrSetSge(setSge, address, region.localKey(), region.address() + offsetBytes, lengthBytes);
        }
        needsData = false;
        return this;
    }

    /**
     * Copies data into the work request begun last.
     *
     * @param data native memory, all of it; can be reused when this returns
     * @return this
     * @throws IllegalArgumentException longer than may be inline, or on the heap: abort the batch
     */
    public WorkRequestBuilder inline(MemorySegment data) {
        checkInline(data);
        WorkRequestOps.wrSetInlineData(setInline, address, data.address(), data.byteSize());
        needsData = false;
        return this;
    }

    private void checkInline(MemorySegment data) {
        requireData();
        if (!inlineAnnounced) {
            // Most providers do not check the flag here, but rxe takes what follows for an SGE without it.
            throw refuse("inline data follows a work request that was begun without SendFlags.INLINE");
        }
        if (!data.isNative()) {
            throw refuse("inline data must be native memory here; SendQueue.inline takes any");
        }
        if (data.byteSize() > maxInlineBytes) {
            throw refuse(data.byteSize() + " bytes are more than the " + maxInlineBytes + " that may be inline");
        }
    }

    private void check(MemoryRegion region, long offsetBytes, int lengthBytes) {
        requireData();
        if (inlineAnnounced) {
            throw refuse("an SGE follows a work request that was begun with SendFlags.INLINE");
        }
        if (offsetBytes < 0 || lengthBytes < 0 || offsetBytes > region.lengthBytes() - lengthBytes) {
            refused = true;
            throw new IndexOutOfBoundsException("offset " + offsetBytes + " and length " + lengthBytes
                    + " are outside the " + region + "; abort the batch");
        }
        if (!region.isOpen()) {
            throw refuse("the " + region + " is closed");
        }
        if (!region.domain().sharesMemoryWith(queuePair.domain())) {
            throw refuse("the " + region + " is registered in another protection domain than " + queuePair);
        }
    }

    private void requireData() {
        requireBatch();
        if (!needsData) {
            throw new IllegalStateException("the work request has its data, or takes none");
        }
    }

    private IllegalArgumentException refuse(String reason) {
        refused = true;
        return new IllegalArgumentException(reason + "; abort the batch");
    }

    /** Frees the native memory, when the queue pair is destroyed. */
    void free() {
        NativeHeap.free(scratch);
    }
}
