package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions that C headers call inline through pointers in {@code ibv_qp_ex}. The pointer is the first argument of
 * each; it is read once, when its owner is made. Source: infiniband/verbs.h
 */
public final class WorkRequestOps {
    private static final MethodHandle WR_CALL = NativeLibrary.functionPointer(FunctionDescriptor.ofVoid(CStruct.PTR));

    /** {@code void wr_call(struct ibv_qp_ex *qp);} */
    public static void wrCall(MemorySegment function, long qp) {
        try {
            WR_CALL.invokeExact(function, qp);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_COMPLETE =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int wr_complete(struct ibv_qp_ex *qp);} */
    public static int wrComplete(MemorySegment function, long qp) {
        try {
            return (int) WR_COMPLETE.invokeExact(function, qp);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_REMOTE =
            NativeLibrary.functionPointer(FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32, CStruct.U64));

    /** {@code void wr_remote(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr);} */
    public static void wrRemote(MemorySegment function, long qp, int rkey, long remoteAddr) {
        try {
            WR_REMOTE.invokeExact(function, qp, rkey, remoteAddr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_ATOMIC_WRITE = NativeLibrary.functionPointer(
            FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32, CStruct.U64, CStruct.PTR));

    /**
     * {@code void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr);}
     */
    public static void wrAtomicWrite(MemorySegment function, long qp, int rkey, long remoteAddr, long atomicWr) {
        try {
            WR_ATOMIC_WRITE.invokeExact(function, qp, rkey, remoteAddr, atomicWr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_FLUSH = NativeLibrary.functionPointer(
            FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32, CStruct.U64, CStruct.U64, CStruct.U8, CStruct.U8));

    /**
     * {@code void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type, uint8_t
     * level);}
     */
    public static void wrFlush(
            MemorySegment function, long qp, int rkey, long remoteAddr, long len, byte type, byte level) {
        try {
            WR_FLUSH.invokeExact(function, qp, rkey, remoteAddr, len, type, level);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_SET_INLINE_DATA =
            NativeLibrary.functionPointer(FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.PTR, CStruct.U64));

    /** {@code void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length);} */
    public static void wrSetInlineData(MemorySegment function, long qp, long addr, long length) {
        try {
            WR_SET_INLINE_DATA.invokeExact(function, qp, addr, length);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_SET_SGE = NativeLibrary.functionPointer(
            FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32, CStruct.U64, CStruct.U32));

    /** {@code void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length);} */
    public static void wrSetSge(MemorySegment function, long qp, int lkey, long addr, int length) {
        try {
            WR_SET_SGE.invokeExact(function, qp, lkey, addr, length);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_SET_SGE_LIST =
            NativeLibrary.functionPointer(FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U64, CStruct.PTR));

    /** {@code void wr_set_sge_list(struct ibv_qp_ex *qp, size_t num_sge, const struct ibv_sge *sg_list);} */
    public static void wrSetSgeList(MemorySegment function, long qp, long numSge, long sgList) {
        try {
            WR_SET_SGE_LIST.invokeExact(function, qp, numSge, sgList);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private WorkRequestOps() {}
}
