package org.verbena.cm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.verbena.cm.ffm.RdmaCmConstants;

/** Options of an id, of level {@code RDMA_OPTION_ID}, and the C types of their values. Source: rdma_set_option(3) */
enum IdOption {
    TOS(RdmaCmConstants.RDMA_OPTION_ID_TOS, Byte.BYTES, 255),
    REUSEADDR(RdmaCmConstants.RDMA_OPTION_ID_REUSEADDR, Integer.BYTES, 1),
    AFONLY(RdmaCmConstants.RDMA_OPTION_ID_AFONLY, Integer.BYTES, 1),
    ACK_TIMEOUT(RdmaCmConstants.RDMA_OPTION_ID_ACK_TIMEOUT, Byte.BYTES, 31);

    private final int number;
    private final int sizeBytes;
    private final int greatest;

    IdOption(int number, int sizeBytes, int greatest) {
        this.number = number;
        this.sizeBytes = sizeBytes;
        this.greatest = greatest;
    }

    /** The number in C. */
    int number() {
        return number;
    }

    /**
     * Encodes a value for C.
     *
     * @throws IllegalArgumentException it is out of range
     */
    byte[] bytes(int value) {
        if (value < 0 || value > greatest) {
            throw new IllegalArgumentException(this + " is " + value + ", but must be 0 to " + greatest);
        }
        return sizeBytes == Byte.BYTES
                ? new byte[] {(byte) value}
                : ByteBuffer.allocate(sizeBytes)
                        .order(ByteOrder.nativeOrder())
                        .putInt(value)
                        .array();
    }
}
