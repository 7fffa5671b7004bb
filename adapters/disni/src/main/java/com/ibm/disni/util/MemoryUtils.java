package com.ibm.disni.util;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/** In the place of DiSNI's class, which needs {@code --add-exports=java.base/sun.nio.ch=ALL-UNNAMED}. */
public class MemoryUtils {
    /** Has static methods only; DiSNI's class can be made as well. */
    public MemoryUtils() {}

    /**
     * Where a buffer's memory begins, whatever its position.
     *
     * @param buffer direct
     * @return the address of its byte 0
     * @throws ClassCastException the buffer is on the heap; DiSNI's class throws this
     */
    public static long getAddress(ByteBuffer buffer) {
        if (!buffer.isDirect()) {
            throw new ClassCastException("RDMA needs a direct buffer: ByteBuffer.allocateDirect");
        }
        return MemorySegment.ofBuffer(buffer.duplicate().clear()).address();
    }
}
