package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.Set;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.CompletionQueueOps;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvCqEx;
import org.verbena.verbs.ffm.IbvPollCqAttr;
import org.verbena.verbs.ffm.IbvWcTmInfo;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.work.CompletionField;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.WorkCompletionOpcode;

/**
 * Takes completions off an extended queue one by one, with only the requested fields. One thread at a time; nothing
 * allocates.
 *
 * <p>Each completion is a batch of its own for the library ({@code ibv_start_poll}, {@code ibv_end_poll}) and is copied
 * before the batch ends: providers hold a spin lock in between, which no Java code may run under, and rxe before
 * rdma-core 55 loses a completion where a batch ends by running empty in {@code ibv_next_poll}.
 *
 * <p>Source: ibv_create_cq_ex(3)
 */
public final class CompletionReader {
    private static final int SUCCESS = CompletionStatus.SUCCESS.value();

    private final CompletionQueue queue;
    private final Set<CompletionField> fields;
    private final int mask;
    private final MemorySegment struct;
    private final MemorySegment start;
    private final MemorySegment end;
    private final MemorySegment readOpcode;
    private final MemorySegment readVendorError;
    private final MemorySegment readFlags;
    private final MemorySegment readLength;
    private final MemorySegment readImmediate;
    private final MemorySegment readNumber;
    private final MemorySegment readSource;
    private final MemorySegment readSourceLid;
    private final MemorySegment readServiceLevel;
    private final MemorySegment readPathBits;
    private final MemorySegment readTimestamp;
    private final MemorySegment readVlan;
    private final MemorySegment readFlowTag;
    private final MemorySegment readTag;
    private final MemorySegment readWallclock;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment pollAttr = arena.allocate(IbvPollCqAttr.LAYOUT);
    private final MemorySegment tagInfo = arena.allocate(IbvWcTmInfo.LAYOUT);

    private boolean valid;
    private long workRequestId;
    private int status;
    private int opcode;
    private int vendorError;
    private int flags;
    private int lengthBytes;
    private int immediate;
    private int number;
    private int source;
    private int sourceLid;
    private int serviceLevel;
    private int pathBits;
    private long timestamp;
    private int vlan;
    private int flowTag;
    private long wallclock;

    CompletionReader(CompletionQueue queue, Set<CompletionField> fields) {
        this.queue = queue;
        this.fields = Set.copyOf(fields);
        this.mask = NativeConstant.mask(fields);
        this.struct = Pointers.view(queue.nativeAddress(), IbvCqEx.SIZE);
        this.start = function(IbvCqEx.START_POLL);
        this.end = function(IbvCqEx.END_POLL);
        this.readOpcode = function(IbvCqEx.READ_OPCODE);
        this.readVendorError = function(IbvCqEx.READ_VENDOR_ERR);
        this.readFlags = function(IbvCqEx.READ_WC_FLAGS);
        this.readLength = function(CompletionField.BYTE_LEN, IbvCqEx.READ_BYTE_LEN);
        this.readImmediate = function(CompletionField.IMM, IbvCqEx.READ_IMM_DATA);
        this.readNumber = function(CompletionField.QP_NUM, IbvCqEx.READ_QP_NUM);
        this.readSource = function(CompletionField.SRC_QP, IbvCqEx.READ_SRC_QP);
        this.readSourceLid = function(CompletionField.SLID, IbvCqEx.READ_SLID);
        this.readServiceLevel = function(CompletionField.SL, IbvCqEx.READ_SL);
        this.readPathBits = function(CompletionField.DLID_PATH_BITS, IbvCqEx.READ_DLID_PATH_BITS);
        this.readTimestamp = function(CompletionField.COMPLETION_TIMESTAMP, IbvCqEx.READ_COMPLETION_TS);
        this.readVlan = function(CompletionField.CVLAN, IbvCqEx.READ_CVLAN);
        this.readFlowTag = function(CompletionField.FLOW_TAG, IbvCqEx.READ_FLOW_TAG);
        this.readTag = function(CompletionField.TM_INFO, IbvCqEx.READ_TM_INFO);
        this.readWallclock =
                function(CompletionField.COMPLETION_TIMESTAMP_WALLCLOCK, IbvCqEx.READ_COMPLETION_WALLCLOCK_NS);
    }

    private MemorySegment function(long offset) {
        long pointer = struct.get(CStruct.PTR, offset);
        if (pointer == 0) {
            throw Failures.failure("ibv_create_cq_ex", "function at offset " + offset, Errno.EOPNOTSUPP);
        }
        return Pointers.function(pointer);
    }

    private MemorySegment function(CompletionField field, long offset) {
        return asked(field) ? function(offset) : MemorySegment.NULL;
    }

    private boolean asked(CompletionField field) {
        return (mask & field.value()) != 0;
    }

    /**
     * The fields that can be read.
     *
     * @return the requested fields
     */
    public Set<CompletionField> fields() {
        return EnumSet.copyOf(fields);
    }

    /**
     * Takes a completion if there is one; the accessors then return its fields, until the next call.
     *
     * @return false if the queue is empty
     * @throws VerbsException the queue is broken
     */
    public boolean tryNext() {
        long cq = queue.nativeAddress();
        valid = false;
        int result = CompletionQueueOps.startPoll(start, cq, pollAttr.address());
        if (result != 0) {
            if (result == Errno.ENOENT) {
                return false;
            }
            throw Failures.failure("ibv_start_poll", queue.toString(), Math.abs(result));
        }
        workRequestId = struct.get(CStruct.U64, IbvCqEx.WR_ID);
        status = struct.get(CStruct.ENUM, IbvCqEx.STATUS);
        vendorError = CompletionQueueOps.cqReadInt(readVendorError, cq);
        if (asked(CompletionField.QP_NUM)) {
            number = CompletionQueueOps.cqReadInt(readNumber, cq);
        }
        if (status == SUCCESS) {
            readSuccess(cq);
        }
        CompletionQueueOps.cqCall(end, cq);
        valid = true;
        return true;
    }

    private void readSuccess(long cq) {
        opcode = CompletionQueueOps.cqReadInt(readOpcode, cq);
        flags = CompletionQueueOps.cqReadInt(readFlags, cq);
        if (asked(CompletionField.BYTE_LEN)) {
            lengthBytes = CompletionQueueOps.cqReadInt(readLength, cq);
        }
        if (asked(CompletionField.IMM)) {
            immediate = CompletionQueueOps.cqReadInt(readImmediate, cq);
        }
        if (asked(CompletionField.SRC_QP)) {
            source = CompletionQueueOps.cqReadInt(readSource, cq);
        }
        if (asked(CompletionField.SLID)) {
            sourceLid = CompletionQueueOps.cqReadInt(readSourceLid, cq);
        }
        if (asked(CompletionField.SL)) {
            serviceLevel = Byte.toUnsignedInt(CompletionQueueOps.cqReadByte(readServiceLevel, cq));
        }
        if (asked(CompletionField.DLID_PATH_BITS)) {
            pathBits = Byte.toUnsignedInt(CompletionQueueOps.cqReadByte(readPathBits, cq));
        }
        if (asked(CompletionField.COMPLETION_TIMESTAMP)) {
            timestamp = CompletionQueueOps.cqReadLong(readTimestamp, cq);
        }
        if (asked(CompletionField.CVLAN)) {
            vlan = Short.toUnsignedInt(CompletionQueueOps.cqReadShort(readVlan, cq));
        }
        if (asked(CompletionField.FLOW_TAG)) {
            flowTag = CompletionQueueOps.cqReadInt(readFlowTag, cq);
        }
        if (asked(CompletionField.TM_INFO)) {
            CompletionQueueOps.readTmInfo(readTag, cq, tagInfo.address());
        }
        if (asked(CompletionField.COMPLETION_TIMESTAMP_WALLCLOCK)) {
            wallclock = CompletionQueueOps.cqReadLong(readWallclock, cq);
        }
    }

    private void requireCompletion() {
        if (!valid) {
            throw new IllegalStateException("there is no completion: tryNext first");
        }
    }

    private void requireSuccess() {
        requireCompletion();
        if (status != SUCCESS) {
            throw new IllegalStateException("the completion is " + CompletionStatus.of(status)
                    + ": check its status first; nothing else in it is valid");
        }
    }

    private void require(CompletionField field) {
        requireSuccess();
        if (!asked(field)) {
            throw new IllegalStateException(field + " was not requested when the queue was created: " + fields);
        }
    }

    /**
     * The id of the work request.
     *
     * @return the id that it was posted with
     */
    public long workRequestId() {
        requireCompletion();
        return workRequestId;
    }

    /**
     * Whether it succeeded.
     *
     * @return false if it failed; {@link #status} says why
     */
    public boolean isSuccess() {
        requireCompletion();
        return status == SUCCESS;
    }

    /**
     * The status.
     *
     * @return the status
     */
    public CompletionStatus status() {
        requireCompletion();
        return CompletionStatus.of(status);
    }

    /**
     * The vendor error code.
     *
     * @return 0 if it has none
     */
    public int vendorError() {
        requireCompletion();
        return vendorError;
    }

    /**
     * The queue pair of the work request.
     *
     * @return the number of the local queue pair; needs QP_NUM
     */
    public int queuePairNumber() {
        requireCompletion();
        if (!asked(CompletionField.QP_NUM)) {
            throw new IllegalStateException("QP_NUM was not requested when the queue was created: " + fields);
        }
        return number;
    }

    /**
     * The operation.
     *
     * @return the operation
     */
    public WorkCompletionOpcode opcode() {
        requireSuccess();
        return WorkCompletionOpcode.of(opcode);
    }

    /**
     * C's flags.
     *
     * @return a mask of ibv_wc_flags
     */
    public int flags() {
        requireSuccess();
        return flags;
    }

    /**
     * The number of bytes transferred.
     *
     * @return bytes; needs BYTE_LEN
     */
    public int lengthBytes() {
        require(CompletionField.BYTE_LEN);
        return lengthBytes;
    }

    /**
     * The immediate data.
     *
     * @return 32 bits in host order; needs IMM
     */
    public int immediateData() {
        require(CompletionField.IMM);
        return Pointers.bigEndian(immediate);
    }

    /**
     * The local key that the peer invalidated.
     *
     * @return the key; needs IMM
     */
    public int invalidatedKey() {
        require(CompletionField.IMM);
        return immediate;
    }

    /**
     * The queue pair that sent a datagram.
     *
     * @return the number of the remote queue pair; needs SRC_QP
     */
    public int sourceQueuePairNumber() {
        require(CompletionField.SRC_QP);
        return source;
    }

    /**
     * The source of a datagram.
     *
     * @return the source LID; needs SLID
     */
    public int sourceLid() {
        require(CompletionField.SLID);
        return sourceLid;
    }

    /**
     * The service level of a datagram.
     *
     * @return 0 to 15; needs SL
     */
    public int serviceLevel() {
        require(CompletionField.SL);
        return serviceLevel;
    }

    /**
     * The path bits of the local LID that a datagram arrived at.
     *
     * @return low bits; needs DLID_PATH_BITS
     */
    public int destinationPathBits() {
        require(CompletionField.DLID_PATH_BITS);
        return pathBits;
    }

    /**
     * The completion timestamp.
     *
     * @return the device's clock; needs COMPLETION_TIMESTAMP
     */
    public long timestamp() {
        require(CompletionField.COMPLETION_TIMESTAMP);
        return timestamp;
    }

    /**
     * The completion timestamp.
     *
     * @return nanoseconds since 1970; needs COMPLETION_TIMESTAMP_WALLCLOCK
     */
    public long wallclockNanos() {
        require(CompletionField.COMPLETION_TIMESTAMP_WALLCLOCK);
        return wallclock;
    }

    /**
     * The VLAN of a raw packet.
     *
     * @return the tag; needs CVLAN
     */
    public int vlan() {
        require(CompletionField.CVLAN);
        return vlan;
    }

    /**
     * The tag of the steering rule that matched.
     *
     * @return its tag; needs FLOW_TAG
     */
    public int flowTag() {
        require(CompletionField.FLOW_TAG);
        return flowTag;
    }

    /**
     * The tag of a tagged message.
     *
     * @return 64 bits; needs TM_INFO
     */
    public long tag() {
        require(CompletionField.TM_INFO);
        return tagInfo.get(CStruct.U64, IbvWcTmInfo.TAG);
    }

    /**
     * The application data that the sender put beside the tag.
     *
     * @return 32 bits; needs TM_INFO
     */
    public int tagUserData() {
        require(CompletionField.TM_INFO);
        return tagInfo.get(CStruct.U32, IbvWcTmInfo.PRIV);
    }

    /** {@code IBV_WC_TM_SYNC_REQ}. */
    static final int TAG_SYNC_REQUESTED = 1 << 4;

    /** {@code IBV_WC_TM_MATCH}. */
    static final int TAG_MATCHED = 1 << 5;

    /** {@code IBV_WC_TM_DATA_VALID}. */
    static final int TAG_DATA_VALID = 1 << 6;

    /**
     * Whether the device asks for {@code TagList.synchronize}.
     *
     * @return true if it does
     */
    public boolean isTagSynchronizationRequested() {
        return (flags() & TAG_SYNC_REQUESTED) != 0;
    }

    /**
     * Whether a message matched a tag.
     *
     * @return false if it took an ordinary receive
     */
    public boolean isTagMatched() {
        return (flags() & TAG_MATCHED) != 0;
    }

    /**
     * Whether the data of a tagged message is in its memory.
     *
     * @return false if it only matched so far
     */
    public boolean isTagDataValid() {
        return (flags() & TAG_DATA_VALID) != 0;
    }

    /** Frees the native memory, when the queue is destroyed. */
    void free() {
        arena.close();
    }
}
