package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvQpCap;

/**
 * The size of a queue pair. When creating one these are requests, and the device may grant more.
 *
 * <p>Source: ibv_create_qp(3)
 *
 * @param maxSendWrs work requests that may be outstanding in the send queue
 * @param maxReceiveWrs receives that may be posted; ignored with a shared receive queue
 * @param maxSendSges scatter/gather elements in a work request of the send queue
 * @param maxReceiveSges scatter/gather elements in a receive
 * @param maxInlineBytes payload that may be copied into a work request
 */
public record QueuePairCapabilities(
        int maxSendWrs, int maxReceiveWrs, int maxSendSges, int maxReceiveSges, int maxInlineBytes) {

    /** Checks that nothing is negative; the device checks its limits. */
    public QueuePairCapabilities {
        if (maxSendWrs < 0 || maxReceiveWrs < 0 || maxSendSges < 0 || maxReceiveSges < 0 || maxInlineBytes < 0) {
            throw new IllegalArgumentException("a negative size in maxSendWrs=" + maxSendWrs + ", maxReceiveWrs="
                    + maxReceiveWrs + ", maxSendSges=" + maxSendSges + ", maxReceiveSges=" + maxReceiveSges
                    + ", maxInlineBytes=" + maxInlineBytes);
        }
    }

    /**
     * The same with another limit for inline payload.
     *
     * @param bytes payload that may be copied into a work request
     * @return the sizes
     */
    public QueuePairCapabilities withMaxInlineBytes(int bytes) {
        return new QueuePairCapabilities(maxSendWrs, maxReceiveWrs, maxSendSges, maxReceiveSges, bytes);
    }

    /**
     * The same with another limit for the elements of a send.
     *
     * @param elements scatter/gather elements in one work request of the send queue
     * @return the sizes
     */
    public QueuePairCapabilities withMaxSendSges(int elements) {
        return new QueuePairCapabilities(maxSendWrs, maxReceiveWrs, elements, maxReceiveSges, maxInlineBytes);
    }

    static QueuePairCapabilities read(MemorySegment struct, long offset) {
        return new QueuePairCapabilities(
                struct.get(CStruct.U32, offset + IbvQpCap.MAX_SEND_WR),
                struct.get(CStruct.U32, offset + IbvQpCap.MAX_RECV_WR),
                struct.get(CStruct.U32, offset + IbvQpCap.MAX_SEND_SGE),
                struct.get(CStruct.U32, offset + IbvQpCap.MAX_RECV_SGE),
                struct.get(CStruct.U32, offset + IbvQpCap.MAX_INLINE_DATA));
    }

    void write(MemorySegment struct, long offset) {
        struct.set(CStruct.U32, offset + IbvQpCap.MAX_SEND_WR, maxSendWrs);
        struct.set(CStruct.U32, offset + IbvQpCap.MAX_RECV_WR, maxReceiveWrs);
        struct.set(CStruct.U32, offset + IbvQpCap.MAX_SEND_SGE, maxSendSges);
        struct.set(CStruct.U32, offset + IbvQpCap.MAX_RECV_SGE, maxReceiveSges);
        struct.set(CStruct.U32, offset + IbvQpCap.MAX_INLINE_DATA, maxInlineBytes);
    }
}
