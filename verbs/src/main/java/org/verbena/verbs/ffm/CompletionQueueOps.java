package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions that C headers call inline through pointers in {@code ibv_cq_ex}. The pointer is the first argument of
 * each; it is read once, when its owner is made. Source: infiniband/verbs.h
 */
public final class CompletionQueueOps {
    private static final MethodHandle START_POLL =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);} */
    public static int startPoll(MemorySegment function, long cq, long attr) {
        try {
            return (int) START_POLL.invokeExact(function, cq, attr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CQ_READ_INT =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int cq_read_int(struct ibv_cq_ex *cq);} */
    public static int cqReadInt(MemorySegment function, long cq) {
        try {
            return (int) CQ_READ_INT.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CQ_READ_BYTE =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U8, CStruct.PTR));

    /** {@code uint8_t cq_read_byte(struct ibv_cq_ex *cq);} */
    public static byte cqReadByte(MemorySegment function, long cq) {
        try {
            return (byte) CQ_READ_BYTE.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CQ_READ_SHORT =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U16, CStruct.PTR));

    /** {@code uint16_t cq_read_short(struct ibv_cq_ex *cq);} */
    public static short cqReadShort(MemorySegment function, long cq) {
        try {
            return (short) CQ_READ_SHORT.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CQ_READ_LONG =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U64, CStruct.PTR));

    /** {@code uint64_t cq_read_long(struct ibv_cq_ex *cq);} */
    public static long cqReadLong(MemorySegment function, long cq) {
        try {
            return (long) CQ_READ_LONG.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle CQ_CALL = NativeLibrary.functionPointer(FunctionDescriptor.ofVoid(CStruct.PTR));

    /** {@code void cq_call(struct ibv_cq_ex *cq);} */
    public static void cqCall(MemorySegment function, long cq) {
        try {
            CQ_CALL.invokeExact(function, cq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle READ_TM_INFO =
            NativeLibrary.functionPointer(FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.PTR));

    /** {@code void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *tm_info);} */
    public static void readTmInfo(MemorySegment function, long cq, long tmInfo) {
        try {
            READ_TM_INFO.invokeExact(function, cq, tmInfo);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private CompletionQueueOps() {}
}
