package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvWc;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.WorkCompletionOpcode;

/**
 * A reusable array of work completions, read in place: {@link CompletionQueue#poll} fills it, accessors take the index.
 * One thread at a time; nothing allocates.
 *
 * <p>In a completion that is not {@link #isSuccess}, only the work request's id, the status, the queue pair's number
 * and the vendor error are valid: the other accessors throw, so that a failure cannot be overlooked.
 *
 * <p>Source: ibv_poll_cq(3)
 */
public final class WorkCompletions implements AutoCloseable {
    private static final int SUCCESS = CompletionStatus.SUCCESS.value();
    private static final int WITH_IMMEDIATE = 1 << 1;
    private static final int WITH_INVALIDATE = 1 << 3;
    private static final int WITH_GLOBAL_ROUTE = 1;
    private static final int CHECKSUM_OK = 1 << 2;

    private final Arena arena = Arena.ofShared();
    private final int capacity;
    private final MemorySegment array;
    private final long address;
    private int count;

    /**
     * An empty array.
     *
     * @param capacity the most completions that one poll can take, 1 or more
     */
    public WorkCompletions(int capacity) {
        if (capacity < 1) {
            throw new IllegalArgumentException("capacity " + capacity + " is below 1");
        }
        this.capacity = capacity;
        this.array = arena.allocate(IbvWc.LAYOUT, capacity);
        this.address = array.address();
    }

    /**
     * The capacity.
     *
     * @return 1 or more
     */
    public int capacity() {
        return capacity;
    }

    /**
     * The number of completions that the last poll took.
     *
     * @return 0 to capacity
     */
    public int count() {
        return count;
    }

    void setCount(int polled) {
        count = polled;
    }

    /**
     * The address of the C array.
     *
     * @return its address
     * @throws IllegalStateException after {@link #close()}
     */
    long nativeAddress() {
        if (!arena.scope().isAlive()) {
            throw new IllegalStateException("WorkCompletions are closed");
        }
        return address;
    }

    /**
     * The id of the work request.
     *
     * @param index 0 to count - 1
     * @return the id that it was posted with
     */
    public long workRequestId(int index) {
        return array.get(CStruct.U64, at(index) + IbvWc.WR_ID);
    }

    /**
     * Whether it succeeded.
     *
     * @param index 0 to count - 1
     * @return false if it failed; {@link #status} says why
     */
    public boolean isSuccess(int index) {
        return array.get(CStruct.ENUM, at(index) + IbvWc.STATUS) == SUCCESS;
    }

    /**
     * The status.
     *
     * @param index 0 to count - 1
     * @return the status
     */
    public CompletionStatus status(int index) {
        return CompletionStatus.of(array.get(CStruct.ENUM, at(index) + IbvWc.STATUS));
    }

    /**
     * The vendor error code.
     *
     * @param index 0 to count - 1
     * @return 0 if it has none
     */
    public int vendorError(int index) {
        return array.get(CStruct.U32, at(index) + IbvWc.VENDOR_ERR);
    }

    /**
     * The queue pair of the work request.
     *
     * @param index 0 to count - 1
     * @return the number of the local queue pair
     */
    public int queuePairNumber(int index) {
        return array.get(CStruct.U32, at(index) + IbvWc.QP_NUM);
    }

    /**
     * The operation.
     *
     * @param index 0 to count - 1
     * @return the operation
     * @throws IllegalStateException the completion is no success
     */
    public WorkCompletionOpcode opcode(int index) {
        return WorkCompletionOpcode.of(opcodeValue(index));
    }

    /**
     * The operation, as C's value.
     *
     * @param index 0 to count - 1
     * @return C's opcode
     * @throws IllegalStateException the completion is no success
     */
    public int opcodeValue(int index) {
        return array.get(CStruct.ENUM, successAt(index) + IbvWc.OPCODE);
    }

    /**
     * Whether it completes a receive.
     *
     * @param index 0 to count - 1
     * @return false for what was posted to a send queue
     * @throws IllegalStateException the completion is no success
     */
    public boolean isReceive(int index) {
        return (opcodeValue(index) & RECEIVE_BIT) != 0;
    }

    /** {@code IBV_WC_RECV}: the bit that all completions of receives have. */
    private static final int RECEIVE_BIT = 1 << 7;

    /**
     * The number of bytes transferred. Meaningless for sends and writes.
     *
     * @param index 0 to count - 1
     * @return bytes; for datagrams the 40 bytes of the global route header are counted
     * @throws IllegalStateException the completion is no success
     */
    public int lengthBytes(int index) {
        return array.get(CStruct.U32, successAt(index) + IbvWc.BYTE_LEN);
    }

    /**
     * C's flags.
     *
     * @param index 0 to count - 1
     * @return a mask of ibv_wc_flags
     * @throws IllegalStateException the completion is no success
     */
    public int flags(int index) {
        return array.get(CStruct.U32, successAt(index) + IbvWc.WC_FLAGS);
    }

    /**
     * Whether there is {@link #immediateData}.
     *
     * @param index 0 to count - 1
     * @return true if the peer sent some
     */
    public boolean hasImmediateData(int index) {
        return (flags(index) & WITH_IMMEDIATE) != 0;
    }

    /**
     * The immediate data.
     *
     * @param index 0 to count - 1
     * @return 32 bits in host order
     */
    public int immediateData(int index) {
        return Pointers.bigEndian(array.get(CStruct.U32, successAt(index) + IbvWc.IMM_DATA));
    }

    /**
     * Whether there is an {@link #invalidatedKey}.
     *
     * @param index 0 to count - 1
     * @return true if the peer invalidated a key
     */
    public boolean hasInvalidatedKey(int index) {
        return (flags(index) & WITH_INVALIDATE) != 0;
    }

    /**
     * The local key that the peer invalidated.
     *
     * @param index 0 to count - 1
     * @return the key
     */
    public int invalidatedKey(int index) {
        return array.get(CStruct.U32, successAt(index) + IbvWc.INVALIDATED_RKEY);
    }

    /**
     * Whether the first 40 bytes of the receive's buffers hold a global route header.
     *
     * @param index 0 to count - 1
     * @return true for datagrams that came with one
     */
    public boolean hasGlobalRouteHeader(int index) {
        return (flags(index) & WITH_GLOBAL_ROUTE) != 0;
    }

    /**
     * Whether the adapter verified the checksums.
     *
     * @param index 0 to count - 1
     * @return false if not, or if the device does not check
     */
    public boolean isChecksumOk(int index) {
        return (flags(index) & CHECKSUM_OK) != 0;
    }

    /**
     * The queue pair that sent a datagram.
     *
     * @param index 0 to count - 1
     * @return the number of the remote queue pair; datagrams only
     */
    public int sourceQueuePairNumber(int index) {
        return array.get(CStruct.U32, successAt(index) + IbvWc.SRC_QP);
    }

    /**
     * The source of a datagram.
     *
     * @param index 0 to count - 1
     * @return the source LID; datagrams on InfiniBand only
     */
    public int sourceLid(int index) {
        return Short.toUnsignedInt(array.get(CStruct.U16, successAt(index) + IbvWc.SLID));
    }

    /**
     * The P_Key that a datagram arrived with.
     *
     * @param index 0 to count - 1
     * @return the index in the port's table; GSI queue pairs only
     */
    public int pkeyIndex(int index) {
        return Short.toUnsignedInt(array.get(CStruct.U16, successAt(index) + IbvWc.PKEY_INDEX));
    }

    /**
     * The service level of a datagram.
     *
     * @param index 0 to count - 1
     * @return 0 to 15; datagrams only
     */
    public int serviceLevel(int index) {
        return Byte.toUnsignedInt(array.get(CStruct.U8, successAt(index) + IbvWc.SL));
    }

    /**
     * The path bits of the local LID that a datagram arrived at.
     *
     * @param index 0 to count - 1
     * @return the low bits of the destination LID; datagrams only
     */
    public int destinationPathBits(int index) {
        return Byte.toUnsignedInt(array.get(CStruct.U8, successAt(index) + IbvWc.DLID_PATH_BITS));
    }

    /**
     * The address of the C struct of a successful completion.
     *
     * @param index 0 to count - 1
     * @return its address
     */
    long addressOf(int index) {
        return nativeAddress() + successAt(index);
    }

    private long at(int index) {
        if (index < 0 || index >= count) {
            throw new IndexOutOfBoundsException("completion " + index + " of " + count);
        }
        return index * IbvWc.SIZE;
    }

    private long successAt(int index) {
        long offset = at(index);
        int status = array.get(CStruct.ENUM, offset + IbvWc.STATUS);
        if (status != SUCCESS) {
            throw new IllegalStateException("completion " + index + " is " + CompletionStatus.of(status)
                    + ": check its status first; nothing else in it is valid");
        }
        return offset;
    }

    /**
     * Describes one completion, for logs.
     *
     * @param index 0 to count - 1
     * @return its id, status and what else is valid
     */
    public String describe(int index) {
        CompletionStatus status = status(index);
        String head = "work request 0x" + Long.toHexString(workRequestId(index)) + " of queue pair "
                + queuePairNumber(index) + ": " + status;
        return isSuccess(index)
                ? head + ", " + opcode(index) + " of " + Integer.toUnsignedString(lengthBytes(index)) + " bytes"
                : head + ", " + status.meaning() + "; " + status.hint()
                        + (vendorError(index) == 0
                                ? ""
                                : " (vendor error 0x" + Integer.toHexString(vendorError(index)) + ")");
    }

    /** Frees the native array. Idempotent; no poll may be in progress. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
