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

    private static final MethodHandle WR_INT =
            NativeLibrary.functionPointer(FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32));

    /** {@code void wr_int(struct ibv_qp_ex *qp, uint32_t value);} */
    public static void wrInt(MemorySegment function, long qp, int value) {
        try {
            WR_INT.invokeExact(function, qp, value);
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

    private static final MethodHandle WR_RDMA_WRITE_IMM = NativeLibrary.functionPointer(
            FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32, CStruct.U64, CStruct.U32));

    /** {@code void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 imm_data);} */
    public static void wrRdmaWriteImm(MemorySegment function, long qp, int rkey, long remoteAddr, int immData) {
        try {
            WR_RDMA_WRITE_IMM.invokeExact(function, qp, rkey, remoteAddr, immData);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_ATOMIC_CMP_SWP = NativeLibrary.functionPointer(
            FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32, CStruct.U64, CStruct.U64, CStruct.U64));

    /**
     * {@code void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
     * uint64_t swap);}
     */
    public static void wrAtomicCmpSwp(
            MemorySegment function, long qp, int rkey, long remoteAddr, long compare, long swap) {
        try {
            WR_ATOMIC_CMP_SWP.invokeExact(function, qp, rkey, remoteAddr, compare, swap);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_ATOMIC_FETCH_ADD = NativeLibrary.functionPointer(
            FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U32, CStruct.U64, CStruct.U64));

    /** {@code void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t add);} */
    public static void wrAtomicFetchAdd(MemorySegment function, long qp, int rkey, long remoteAddr, long add) {
        try {
            WR_ATOMIC_FETCH_ADD.invokeExact(function, qp, rkey, remoteAddr, add);
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

    private static final MethodHandle WR_BIND_MW = NativeLibrary.functionPointer(
            FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.PTR, CStruct.U32, CStruct.PTR));

    /**
     * {@code void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info
     * *bind_info);}
     */
    public static void wrBindMw(MemorySegment function, long qp, long mw, int rkey, long bindInfo) {
        try {
            WR_BIND_MW.invokeExact(function, qp, mw, rkey, bindInfo);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_SEND_TSO = NativeLibrary.functionPointer(
            FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.PTR, CStruct.U16, CStruct.U16));

    /** {@code void wr_send_tso(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz, uint16_t mss);} */
    public static void wrSendTso(MemorySegment function, long qp, long hdr, short hdrSz, short mss) {
        try {
            WR_SEND_TSO.invokeExact(function, qp, hdr, hdrSz, mss);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle WR_SET_UD_ADDR = NativeLibrary.functionPointer(
            FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.PTR, CStruct.U32, CStruct.U32));

    /**
     * {@code void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey);}
     */
    public static void wrSetUdAddr(MemorySegment function, long qp, long ah, int remoteQpn, int remoteQkey) {
        try {
            WR_SET_UD_ADDR.invokeExact(function, qp, ah, remoteQpn, remoteQkey);
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

    private static final MethodHandle WR_SET_INLINE_DATA_LIST =
            NativeLibrary.functionPointer(FunctionDescriptor.ofVoid(CStruct.PTR, CStruct.U64, CStruct.PTR));

    /**
     * {@code void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t num_buf, const struct ibv_data_buf *buf_list);}
     */
    public static void wrSetInlineDataList(MemorySegment function, long qp, long numBuf, long bufList) {
        try {
            WR_SET_INLINE_DATA_LIST.invokeExact(function, qp, numBuf, bufList);
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
