package org.verbena.verbs.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions that C headers call inline through pointers in {@code ibv_context.ops} and {@code verbs_context}. The
 * pointer is the first argument of each; it is read once, when its owner is opened.
 *
 * <p>Only poll_cq is a critical call, and only on drivers whose library stays in user space there ({@code
 * DriverFamily}). rxe and siw enter the kernel to post, and a blocked critical call stops the garbage collector.
 *
 * <p>Source: infiniband/verbs.h
 */
public final class VerbsOps {
    private static final LazyHandle QUERY_PORT =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U8, CStruct.PTR, CStruct.U64));

    /**
     * {@code int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr, size_t
     * port_attr_len);}
     */
    public static int queryPort(MemorySegment function, long context, byte portNum, long portAttr, long portAttrLen) {
        try {
            return (int) QUERY_PORT.get().invokeExact(function, context, portNum, portAttr, portAttrLen);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle REQ_NOTIFY_CQ =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32));

    /** {@code int req_notify_cq(struct ibv_cq *cq, int solicited_only);} */
    public static int reqNotifyCq(MemorySegment function, long cq, int solicitedOnly) {
        try {
            return (int) REQ_NOTIFY_CQ.invokeExact(function, cq, solicitedOnly);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POST_SEND =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /** {@code int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);} */
    public static int postSend(MemorySegment function, long qp, long wr, long badWr) {
        try {
            return (int) POST_SEND.invokeExact(function, qp, wr, badWr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POST_RECV =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /** {@code int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);} */
    public static int postRecv(MemorySegment function, long qp, long wr, long badWr) {
        try {
            return (int) POST_RECV.invokeExact(function, qp, wr, badWr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POST_SRQ_RECV =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /**
     * {@code int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr, struct ibv_recv_wr **bad_recv_wr);}
     */
    public static int postSrqRecv(MemorySegment function, long srq, long recvWr, long badRecvWr) {
        try {
            return (int) POST_SRQ_RECV.invokeExact(function, srq, recvWr, badRecvWr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POLL_CQ = NativeLibrary.functionPointer(
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.PTR), Linker.Option.critical(false));

    /** {@code int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);} */
    public static int pollCq(MemorySegment function, long cq, int numEntries, long wc) {
        try {
            return (int) POLL_CQ.invokeExact(function, cq, numEntries, wc);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POLL_CQ_IN_KERNEL =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.PTR));

    /**
     * The same, where it may enter the kernel: {@code int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc
     * *wc);}
     */
    public static int pollCqInKernel(MemorySegment function, long cq, int numEntries, long wc) {
        try {
            return (int) POLL_CQ_IN_KERNEL.invokeExact(function, cq, numEntries, wc);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle ALLOC_MW =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.U32), Errno.CAPTURE);

    /** {@code struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);} */
    public static long allocMw(MemorySegment function, MemorySegment errno, long pd, int type) {
        try {
            return (long) ALLOC_MW.get().invokeExact(function, errno, pd, type);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle BIND_MW =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /** {@code int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);} */
    public static int bindMw(MemorySegment function, long qp, long mw, long mwBind) {
        try {
            return (int) BIND_MW.invokeExact(function, qp, mw, mwBind);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle DEALLOC_MW = new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int dealloc_mw(struct ibv_mw *mw);} */
    public static int deallocMw(MemorySegment function, long mw) {
        try {
            return (int) DEALLOC_MW.get().invokeExact(function, mw);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle ADVISE_MR = new LazyHandle(
            FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U32, CStruct.U32, CStruct.PTR, CStruct.U32));

    /**
     * {@code int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge
     * *sg_list, uint32_t num_sges);}
     */
    public static int adviseMr(MemorySegment function, long pd, int advice, int flags, long sgList, int numSges) {
        try {
            return (int) ADVISE_MR.get().invokeExact(function, pd, advice, flags, sgList, numSges);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle ALLOC_NULL_MR =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_mr *alloc_null_mr(struct ibv_pd *pd);} */
    public static long allocNullMr(MemorySegment function, MemorySegment errno, long pd) {
        try {
            return (long) ALLOC_NULL_MR.get().invokeExact(function, errno, pd);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle REG_DM_MR = new LazyHandle(
            FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U64, CStruct.U32),
            Errno.CAPTURE);

    /**
     * {@code struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length, unsigned
     * int access);}
     */
    public static long regDmMr(
            MemorySegment function, MemorySegment errno, long pd, long dm, long dmOffset, long length, int access) {
        try {
            return (long) REG_DM_MR.get().invokeExact(function, errno, pd, dm, dmOffset, length, access);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle ALLOC_DM =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);} */
    public static long allocDm(MemorySegment function, MemorySegment errno, long context, long attr) {
        try {
            return (long) ALLOC_DM.get().invokeExact(function, errno, context, attr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle FREE_DM = new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int free_dm(struct ibv_dm *dm);} */
    public static int freeDm(MemorySegment function, long dm) {
        try {
            return (int) FREE_DM.get().invokeExact(function, dm);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle MEMCPY_TO_DM =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.U64, CStruct.PTR, CStruct.U64));

    /** {@code int memcpy_to_dm(struct ibv_dm *dm, uint64_t dm_offset, const void *host_addr, size_t length);} */
    public static int memcpyToDm(MemorySegment function, long dm, long dmOffset, long hostAddr, long length) {
        try {
            return (int) MEMCPY_TO_DM.get().invokeExact(function, dm, dmOffset, hostAddr, length);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle MEMCPY_FROM_DM =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U64, CStruct.U64));

    /** {@code int memcpy_from_dm(void *host_addr, struct ibv_dm *dm, uint64_t dm_offset, size_t length);} */
    public static int memcpyFromDm(MemorySegment function, long hostAddr, long dm, long dmOffset, long length) {
        try {
            return (int) MEMCPY_FROM_DM.get().invokeExact(function, hostAddr, dm, dmOffset, length);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle MODIFY_QP_RATE_LIMIT =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);} */
    public static int modifyQpRateLimit(MemorySegment function, long qp, long attr) {
        try {
            return (int) MODIFY_QP_RATE_LIMIT.get().invokeExact(function, qp, attr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle ALLOC_PARENT_DOMAIN =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr
     * *attr);}
     */
    public static long allocParentDomain(MemorySegment function, MemorySegment errno, long context, long attr) {
        try {
            return (long) ALLOC_PARENT_DOMAIN.get().invokeExact(function, errno, context, attr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle ALLOC_TD =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr);} */
    public static long allocTd(MemorySegment function, MemorySegment errno, long context, long initAttr) {
        try {
            return (long) ALLOC_TD.get().invokeExact(function, errno, context, initAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle DEALLOC_TD = new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int dealloc_td(struct ibv_td *td);} */
    public static int deallocTd(MemorySegment function, long td) {
        try {
            return (int) DEALLOC_TD.get().invokeExact(function, td);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle MODIFY_CQ =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);} */
    public static int modifyCq(MemorySegment function, long cq, long attr) {
        try {
            return (int) MODIFY_CQ.get().invokeExact(function, cq, attr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle QUERY_RT_VALUES =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);} */
    public static int queryRtValues(MemorySegment function, long context, long values) {
        try {
            return (int) QUERY_RT_VALUES.get().invokeExact(function, context, values);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle CREATE_CQ_EX =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init_attr);} */
    public static long createCqEx(MemorySegment function, MemorySegment errno, long context, long initAttr) {
        try {
            return (long) CREATE_CQ_EX.get().invokeExact(function, errno, context, initAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle QUERY_DEVICE_EX =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR, CStruct.U64));

    /**
     * {@code int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input, struct
     * ibv_device_attr_ex *attr, size_t attr_size);}
     */
    public static int queryDeviceEx(MemorySegment function, long context, long input, long attr, long attrSize) {
        try {
            return (int) QUERY_DEVICE_EX.get().invokeExact(function, context, input, attr, attrSize);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle OPEN_QP =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);} */
    public static long openQp(MemorySegment function, MemorySegment errno, long context, long attr) {
        try {
            return (long) OPEN_QP.get().invokeExact(function, errno, context, attr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle CREATE_QP_EX =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *qp_init_attr_ex);}
     */
    public static long createQpEx(MemorySegment function, MemorySegment errno, long context, long qpInitAttrEx) {
        try {
            return (long) CREATE_QP_EX.get().invokeExact(function, errno, context, qpInitAttrEx);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle GET_SRQ_NUM =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);} */
    public static int getSrqNum(MemorySegment function, long srq, long srqNum) {
        try {
            return (int) GET_SRQ_NUM.get().invokeExact(function, srq, srqNum);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle CREATE_SRQ_EX =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex
     * *srq_init_attr_ex);}
     */
    public static long createSrqEx(MemorySegment function, MemorySegment errno, long context, long srqInitAttrEx) {
        try {
            return (long) CREATE_SRQ_EX.get().invokeExact(function, errno, context, srqInitAttrEx);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle OPEN_XRCD =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *xrcd_init_attr);} */
    public static long openXrcd(MemorySegment function, MemorySegment errno, long context, long xrcdInitAttr) {
        try {
            return (long) OPEN_XRCD.get().invokeExact(function, errno, context, xrcdInitAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle CLOSE_XRCD = new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int close_xrcd(struct ibv_xrcd *xrcd);} */
    public static int closeXrcd(MemorySegment function, long xrcd) {
        try {
            return (int) CLOSE_XRCD.get().invokeExact(function, xrcd);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POST_WQ_RECV =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /** {@code int post_recv(struct ibv_wq *current, struct ibv_recv_wr *recv_wr, struct ibv_recv_wr **bad_recv_wr);} */
    public static int postWqRecv(MemorySegment function, long wq, long recvWr, long badRecvWr) {
        try {
            return (int) POST_WQ_RECV.invokeExact(function, wq, recvWr, badRecvWr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private VerbsOps() {}
}
