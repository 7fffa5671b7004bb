package org.verbena.verbs.packet.ffm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.LazyHandle;
import org.verbena.verbs.ffm.NativeLibrary;

/**
 * The functions of raw packets that C headers call inline through pointers in {@code verbs_context}. The pointer is the
 * first argument of each. Source: infiniband/verbs.h
 */
public final class PacketOps {
    private static final LazyHandle CREATE_FLOW =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_flow *ibv_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr);} */
    public static long createFlow(MemorySegment function, MemorySegment errno, long qp, long flowAttr) {
        try {
            return (long) CREATE_FLOW.get().invokeExact(function, errno, qp, flowAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle DESTROY_FLOW = new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int ibv_destroy_flow(struct ibv_flow *flow);} */
    public static int destroyFlow(MemorySegment function, long flow) {
        try {
            return (int) DESTROY_FLOW.get().invokeExact(function, flow);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle CREATE_FLOW_ACTION_ESP =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code struct ibv_flow_action *create_flow_action_esp(struct ibv_context *context, struct
     * ibv_flow_action_esp_attr *attr);}
     */
    public static long createFlowActionEsp(MemorySegment function, MemorySegment errno, long context, long attr) {
        try {
            return (long) CREATE_FLOW_ACTION_ESP.get().invokeExact(function, errno, context, attr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle MODIFY_FLOW_ACTION_ESP =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int modify_flow_action_esp(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *attr);} */
    public static int modifyFlowActionEsp(MemorySegment function, long action, long attr) {
        try {
            return (int) MODIFY_FLOW_ACTION_ESP.get().invokeExact(function, action, attr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle DESTROY_FLOW_ACTION =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int destroy_flow_action(struct ibv_flow_action *action);} */
    public static int destroyFlowAction(MemorySegment function, long action) {
        try {
            return (int) DESTROY_FLOW_ACTION.get().invokeExact(function, action);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle CREATE_COUNTERS =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code struct ibv_counters *create_counters(struct ibv_context *context, struct ibv_counters_init_attr
     * *init_attr);}
     */
    public static long createCounters(MemorySegment function, MemorySegment errno, long context, long initAttr) {
        try {
            return (long) CREATE_COUNTERS.get().invokeExact(function, errno, context, initAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle DESTROY_COUNTERS = new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int destroy_counters(struct ibv_counters *counters);} */
    public static int destroyCounters(MemorySegment function, long counters) {
        try {
            return (int) DESTROY_COUNTERS.get().invokeExact(function, counters);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle ATTACH_COUNTERS_POINT_FLOW =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /**
     * {@code int attach_counters_point_flow(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr, struct
     * ibv_flow *flow);}
     */
    public static int attachCountersPointFlow(MemorySegment function, long counters, long attr, long flow) {
        try {
            return (int) ATTACH_COUNTERS_POINT_FLOW.get().invokeExact(function, counters, attr, flow);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle READ_COUNTERS =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.U32, CStruct.U32));

    /**
     * {@code int read_counters(struct ibv_counters *counters, uint64_t *counters_value, uint32_t ncounters, uint32_t
     * flags);}
     */
    public static int readCounters(
            MemorySegment function, long counters, long countersValue, int ncounters, int flags) {
        try {
            return (int) READ_COUNTERS.get().invokeExact(function, counters, countersValue, ncounters, flags);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle CREATE_WQ =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /** {@code struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr);} */
    public static long createWq(MemorySegment function, MemorySegment errno, long context, long wqInitAttr) {
        try {
            return (long) CREATE_WQ.get().invokeExact(function, errno, context, wqInitAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle MODIFY_WQ =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR));

    /** {@code int modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr);} */
    public static int modifyWq(MemorySegment function, long wq, long wqAttr) {
        try {
            return (int) MODIFY_WQ.get().invokeExact(function, wq, wqAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle DESTROY_WQ = new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int destroy_wq(struct ibv_wq *wq);} */
    public static int destroyWq(MemorySegment function, long wq) {
        try {
            return (int) DESTROY_WQ.get().invokeExact(function, wq);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle CREATE_RWQ_IND_TABLE =
            new LazyHandle(FunctionDescriptor.of(CStruct.PTR, CStruct.PTR, CStruct.PTR), Errno.CAPTURE);

    /**
     * {@code struct ibv_rwq_ind_table *create_rwq_ind_table(struct ibv_context *context, struct
     * ibv_rwq_ind_table_init_attr *init_attr);}
     */
    public static long createRwqIndTable(MemorySegment function, MemorySegment errno, long context, long initAttr) {
        try {
            return (long) CREATE_RWQ_IND_TABLE.get().invokeExact(function, errno, context, initAttr);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final LazyHandle DESTROY_RWQ_IND_TABLE =
            new LazyHandle(FunctionDescriptor.of(CStruct.U32, CStruct.PTR));

    /** {@code int destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table);} */
    public static int destroyRwqIndTable(MemorySegment function, long rwqIndTable) {
        try {
            return (int) DESTROY_RWQ_IND_TABLE.get().invokeExact(function, rwqIndTable);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private static final MethodHandle POST_SRQ_OPS =
            NativeLibrary.functionPointer(FunctionDescriptor.of(CStruct.U32, CStruct.PTR, CStruct.PTR, CStruct.PTR));

    /** {@code int post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);} */
    public static int postSrqOps(MemorySegment function, long srq, long op, long badOp) {
        try {
            return (int) POST_SRQ_OPS.invokeExact(function, srq, op, badOp);
        } catch (Throwable thrown) {
            throw NativeLibrary.unexpected(thrown);
        }
    }

    private PacketOps() {}
}
