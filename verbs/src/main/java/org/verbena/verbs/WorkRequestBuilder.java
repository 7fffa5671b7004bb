package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvDataBuf;
import org.verbena.verbs.ffm.IbvMwBindInfo;
import org.verbena.verbs.ffm.IbvQpEx;
import org.verbena.verbs.ffm.IbvSge;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.NativeHeap;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.ffm.WorkRequestOps;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.SendOperation;

/**
 * Builds work requests directly in the device's queue, between {@link #start()} and {@link #complete()} or {@link
 * #abort()}: an operation, then what it needs.
 *
 * <pre>{@code
 * builder.start();
 * builder.write(1, SendFlags.SIGNALED, remoteAddress, remoteKey).piece(region, 0, 64);
 * builder.complete();
 * }</pre>
 *
 * <p>One thread at a time, and nothing else may be posted to the queue pair in between: providers hold a lock. Each
 * operation costs several native calls; {@link SendQueue} needs one for a list, and is the faster of the two on most
 * devices. An invalid work request throws before the device sees it; the work requests begun since the start can then
 * only be discarded with {@link #abort()}.
 *
 * <p>Source: ibv_wr_post(3)
 */
public final class WorkRequestBuilder {
    private static final int LOCAL_WRITE = AccessFlag.LOCAL_WRITE.value();

    private final QueuePair queuePair;
    private final long address;
    private final MemorySegment struct;
    private final int operations;
    private final int maxSges;
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
    private int rights;

    WorkRequestBuilder(QueuePair queuePair, long ibvQpEx, QueuePairExtension extension, QueuePairCapabilities sizes) {
        this.queuePair = queuePair;
        this.address = ibvQpEx;
        this.operations = NativeConstant.mask(extension.sendOperations());
        boolean flushes = extension.sendOperations().contains(SendOperation.FLUSH);
        this.struct = Pointers.view(ibvQpEx, IbvQpEx.SIZE + (flushes ? Long.BYTES : 0));
        this.maxSges = Math.max(1, sizes.maxSendSges());
        this.maxInlineBytes = sizes.maxInlineBytes();
        this.start = function(IbvQpEx.WR_START);
        this.complete = function(IbvQpEx.WR_COMPLETE);
        this.abort = function(IbvQpEx.WR_ABORT);
        this.setSge = function(IbvQpEx.WR_SET_SGE);
        this.setInline = function(IbvQpEx.WR_SET_INLINE_DATA);
        this.scratch =
                NativeHeap.allocate(Math.max(maxSges * Math.max(IbvSge.SIZE, IbvDataBuf.SIZE), IbvMwBindInfo.SIZE));
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

    private MemorySegment begin(SendOperation operation, long offset, long workRequestId, int flags, int neededRights) {
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
        rights = neededRights;
        needsData = true;
        return function(offset);
    }

    /**
     * Begins a send.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}; with INLINE data follows by {@link #inline}, without by {@link #piece}
     * @return this
     */
    public WorkRequestBuilder send(long workRequestId, int flags) {
        WorkRequestOps.wrCall(begin(SendOperation.SEND, IbvQpEx.WR_SEND, workRequestId, flags, 0), address);
        return this;
    }

    /**
     * Begins a send with immediate data.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param immediate 32 bits in host order
     * @return this
     */
    public WorkRequestBuilder sendWithImmediate(long workRequestId, int flags, int immediate) {
        WorkRequestOps.wrInt(
                begin(SendOperation.SEND_WITH_IMM, IbvQpEx.WR_SEND_IMM, workRequestId, flags, 0),
                address,
                Pointers.bigEndian(immediate));
        return this;
    }

    /**
     * Begins a send that invalidates a key of the peer.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param remoteKey the peer's key
     * @return this
     */
    public WorkRequestBuilder sendWithInvalidate(long workRequestId, int flags, int remoteKey) {
        WorkRequestOps.wrInt(
                begin(SendOperation.SEND_WITH_INV, IbvQpEx.WR_SEND_INV, workRequestId, flags, 0), address, remoteKey);
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
                begin(SendOperation.RDMA_WRITE, IbvQpEx.WR_RDMA_WRITE, workRequestId, flags, 0),
                address,
                remoteKey,
                remoteAddress);
        return this;
    }

    /**
     * Begins a write with immediate data.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key
     * @param immediate 32 bits in host order
     * @return this
     */
    public WorkRequestBuilder writeWithImmediate(
            long workRequestId, int flags, long remoteAddress, int remoteKey, int immediate) {
        WorkRequestOps.wrRdmaWriteImm(
                begin(SendOperation.RDMA_WRITE_WITH_IMM, IbvQpEx.WR_RDMA_WRITE_IMM, workRequestId, flags, 0),
                address,
                remoteKey,
                remoteAddress,
                Pointers.bigEndian(immediate));
        return this;
    }

    /**
     * Begins a read.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param remoteAddress where, in the peer's memory
     * @param remoteKey the peer's key
     * @return this
     */
    public WorkRequestBuilder read(long workRequestId, int flags, long remoteAddress, int remoteKey) {
        WorkRequestOps.wrRemote(
                begin(SendOperation.RDMA_READ, IbvQpEx.WR_RDMA_READ, workRequestId, flags, LOCAL_WRITE),
                address,
                remoteKey,
                remoteAddress);
        return this;
    }

    /**
     * Begins an atomic compare-and-swap; one piece of 8 bytes follows.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param remoteAddress where, in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key
     * @param expected swap only if the old value equals this
     * @param value the new value
     * @return this
     */
    public WorkRequestBuilder compareAndSwap(
            long workRequestId, int flags, long remoteAddress, int remoteKey, long expected, long value) {
        requireAligned(remoteAddress);
        WorkRequestOps.wrAtomicCmpSwp(
                begin(SendOperation.ATOMIC_CMP_AND_SWP, IbvQpEx.WR_ATOMIC_CMP_SWP, workRequestId, flags, LOCAL_WRITE),
                address,
                remoteKey,
                remoteAddress,
                expected,
                value);
        return this;
    }

    /**
     * Begins an atomic add; one piece of 8 bytes follows.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param remoteAddress where, in the peer's memory; a multiple of 8
     * @param remoteKey the peer's key
     * @param add what to add
     * @return this
     */
    public WorkRequestBuilder fetchAndAdd(long workRequestId, int flags, long remoteAddress, int remoteKey, long add) {
        requireAligned(remoteAddress);
        WorkRequestOps.wrAtomicFetchAdd(
                begin(
                        SendOperation.ATOMIC_FETCH_AND_ADD,
                        IbvQpEx.WR_ATOMIC_FETCH_ADD,
                        workRequestId,
                        flags,
                        LOCAL_WRITE),
                address,
                remoteKey,
                remoteAddress,
                add);
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
        MemorySegment function = begin(SendOperation.ATOMIC_WRITE, IbvQpEx.WR_ATOMIC_WRITE, workRequestId, flags, 0);
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
        MemorySegment function = begin(SendOperation.FLUSH, IbvQpEx.SIZE, workRequestId, flags, 0);
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

    /**
     * Builds the binding of a type 2 memory window; nothing follows.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param window not bound now
     * @param key the window's new key
     * @param region what it is a window into
     * @param offsetBytes where it begins
     * @param lengthBytes how long it is
     * @param access what the peer may do
     * @return this
     */
    public WorkRequestBuilder bindWindow(
            long workRequestId,
            int flags,
            MemoryWindow window,
            int key,
            MemoryRegion region,
            long offsetBytes,
            long lengthBytes,
            Set<AccessFlag> access) {
        window.checkBinding(region, offsetBytes, lengthBytes);
        MemorySegment function = begin(SendOperation.BIND_MW, IbvQpEx.WR_BIND_MW, workRequestId, flags, 0);
        MemoryWindow.writeBinding(scratch, 0, region, offsetBytes, lengthBytes, access);
        WorkRequestOps.wrBindMw(function, address, window.nativeAddress(), key, scratch.address());
        needsData = false;
        return this;
    }

    /**
     * Builds the invalidation of a key of this side; nothing follows.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param key the key
     * @return this
     */
    public WorkRequestBuilder localInvalidate(long workRequestId, int flags, int key) {
        WorkRequestOps.wrInt(
                begin(SendOperation.LOCAL_INV, IbvQpEx.WR_LOCAL_INV, workRequestId, flags, 0), address, key);
        needsData = false;
        return this;
    }

    /**
     * Begins a segmented send.
     *
     * @param workRequestId returned in the completion
     * @param flags of {@link SendFlags}
     * @param header native memory, up to 65535 bytes
     * @param segmentBytes the largest payload of a segment, up to 65535
     * @return this
     */
    public WorkRequestBuilder sendSegmented(long workRequestId, int flags, MemorySegment header, int segmentBytes) {
        if (!header.isNative()) {
            throw new IllegalArgumentException("the header must be native memory");
        }
        int headerBytes = (int) Math.min(header.byteSize(), Integer.MAX_VALUE);
        Ranges.check("the header's length", headerBytes, 1, 0xffff);
        Ranges.check("segmentBytes", segmentBytes, 1, 0xffff);
        WorkRequestOps.wrSendTso(
                begin(SendOperation.TSO, IbvQpEx.WR_SEND_TSO, workRequestId, flags, 0),
                address,
                header.address(),
                (short) headerBytes,
                (short) segmentBytes);
        return this;
    }

    private static void requireAligned(long remoteAddress) {
        if ((remoteAddress & (Long.BYTES - 1)) != 0) {
            throw new IllegalArgumentException(
                    "an atomic's remote address 0x" + Long.toHexString(remoteAddress) + " is not a multiple of 8");
        }
    }

    /**
     * Sets the destination of the datagram begun last.
     *
     * @param handle resolved; stays open until the completion
     * @param queuePairNumber the peer's queue pair
     * @param qkey the peer's Q_Key
     * @return this
     */
    public WorkRequestBuilder to(AddressHandle handle, int queuePairNumber, int qkey) {
        requireBatch();
        WorkRequestOps.wrSetUdAddr(
                function(IbvQpEx.WR_SET_UD_ADDR), address, handle.nativeAddress(), queuePairNumber, qkey);
        return this;
    }

    /**
     * Sets the shared receive queue of the peer for the work request begun last.
     *
     * @param number the queue's number
     * @return this
     */
    public WorkRequestBuilder toSharedReceiveQueue(int number) {
        requireBatch();
        WorkRequestOps.wrInt(function(IbvQpEx.WR_SET_XRC_SRQN), address, number);
        return this;
    }

    /**
     * Sets the single element of the work request begun last.
     *
     * @param region the region that contains it
     * @param offsetBytes where it begins
     * @param lengthBytes how long it is
     * @return this
     * @throws IndexOutOfBoundsException outside the region: abort the batch
     * @throws IllegalArgumentException without the right the work request needs: abort the batch
     */
    public WorkRequestBuilder piece(MemoryRegion region, long offsetBytes, int lengthBytes) {
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
     * Sets several elements of one region for the work request begun last.
     *
     * @param region the region that contains them
     * @param offsetsBytes where each begins
     * @param lengthsBytes how long each is
     * @return this
     * @throws IndexOutOfBoundsException outside the region: abort the batch
     * @throws IllegalArgumentException without the right the work request needs, or too many: abort the batch
     */
    public WorkRequestBuilder pieces(MemoryRegion region, long[] offsetsBytes, int[] lengthsBytes) {
        requireData();
        if (offsetsBytes.length != lengthsBytes.length || offsetsBytes.length > maxSges) {
            throw refuse(offsetsBytes.length + " pieces, of at most " + maxSges);
        }
        int count = 0;
        for (int i = 0; i < offsetsBytes.length; i++) {
            check(region, offsetsBytes[i], lengthsBytes[i]);
            if (lengthsBytes[i] == 0) {
                continue;
            }
            long sge = count * IbvSge.SIZE;
            count++;
            scratch.set(CStruct.U64, sge + IbvSge.ADDR, region.address() + offsetsBytes[i]);
            scratch.set(CStruct.U32, sge + IbvSge.LENGTH, lengthsBytes[i]);
            scratch.set(CStruct.U32, sge + IbvSge.LKEY, region.localKey());
        }
        WorkRequestOps.wrSetSgeList(function(IbvQpEx.WR_SET_SGE_LIST), address, count, scratch.address());
        needsData = false;
        return this;
    }

    /**
     * Copies data into the work request begun last.
     *
     * @param data native memory, all of it; can be reused when this returns
     * @return this
     * @throws IllegalArgumentException longer than may be inline, on the heap, or a read or atomic: abort the batch
     */
    public WorkRequestBuilder inline(MemorySegment data) {
        checkInline(data.byteSize(), data.isNative());
        WorkRequestOps.wrSetInlineData(setInline, address, data.address(), data.byteSize());
        needsData = false;
        return this;
    }

    /**
     * Copies several pieces of data into the work request begun last.
     *
     * <p>librxe of rdma-core 44 forgets to count them, and sends no byte without an error: take {@link #inline} there.
     *
     * @param pieces native memory, all of each
     * @return this
     * @throws IllegalArgumentException too many, longer than may be inline, on the heap, or a read or atomic: abort the
     *     batch
     */
    public WorkRequestBuilder inlineList(MemorySegment... pieces) {
        if (pieces.length > maxSges) {
            throw refuse(pieces.length + " pieces, of at most " + maxSges);
        }
        long total = 0;
        boolean allNative = true;
        for (int i = 0; i < pieces.length; i++) {
            total += pieces[i].byteSize();
            allNative &= pieces[i].isNative();
            scratch.set(CStruct.PTR, i * IbvDataBuf.SIZE + IbvDataBuf.ADDR, pieces[i].address());
            scratch.set(CStruct.SIZE, i * IbvDataBuf.SIZE + IbvDataBuf.LENGTH, pieces[i].byteSize());
        }
        checkInline(total, allNative);
        WorkRequestOps.wrSetInlineDataList(
                function(IbvQpEx.WR_SET_INLINE_DATA_LIST), address, pieces.length, scratch.address());
        needsData = false;
        return this;
    }

    private void checkInline(long lengthBytes, boolean allNative) {
        requireData();
        if (rights != 0) {
            throw refuse("reads and atomics cannot be inline: their data comes from the peer");
        }
        if (!inlineAnnounced) {
            // Most providers do not look at the flag here, but rxe takes what follows for a piece without it.
            throw refuse("inline data follows a work request that was begun without SendFlags.INLINE");
        }
        if (!allNative) {
            throw refuse("inline data must be native memory here; SendQueue.inline takes any");
        }
        if (lengthBytes > maxInlineBytes) {
            throw refuse(lengthBytes + " bytes are more than the " + maxInlineBytes + " that may be inline");
        }
    }

    private void check(MemoryRegion region, long offsetBytes, int lengthBytes) {
        requireData();
        if (inlineAnnounced) {
            throw refuse("a piece follows a work request that was begun with SendFlags.INLINE");
        }
        if (offsetBytes < 0 || lengthBytes < 0 || offsetBytes > region.lengthBytes() - lengthBytes) {
            refused = true;
            throw new IndexOutOfBoundsException("offset " + offsetBytes + " and length " + lengthBytes
                    + " are outside the " + region + "; abort the batch");
        }
        if ((region.accessMask() & rights) != rights) {
            throw refuse("the " + region + " has the rights " + region.access() + " and needs "
                    + NativeConstant.set(AccessFlag.class, rights));
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

    /** Gives the native memory back, when the queue pair is destroyed. */
    void free() {
        NativeHeap.free(scratch);
    }
}
