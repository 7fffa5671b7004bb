package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_qp}: a queue pair. Source: infiniband/verbs.h */
public final class IbvQp {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_qp",
            CStruct.PTR.withName("context"),
            CStruct.PTR.withName("qp_context"),
            CStruct.PTR.withName("pd"),
            CStruct.PTR.withName("send_cq"),
            CStruct.PTR.withName("recv_cq"),
            CStruct.PTR.withName("srq"),
            CStruct.U32.withName("handle"),
            CStruct.U32.withName("qp_num"),
            CStruct.ENUM.withName("state"),
            CStruct.ENUM.withName("qp_type"),
            CStruct.PTHREAD_MUTEX.withName("mutex"),
            CStruct.PTHREAD_COND.withName("cond"),
            CStruct.U32.withName("events_completed"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long QP_CONTEXT = CStruct.offset(LAYOUT, "qp_context");
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long SEND_CQ = CStruct.offset(LAYOUT, "send_cq");
    public static final long RECV_CQ = CStruct.offset(LAYOUT, "recv_cq");
    public static final long SRQ = CStruct.offset(LAYOUT, "srq");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");
    public static final long QP_NUM = CStruct.offset(LAYOUT, "qp_num");
    public static final long STATE = CStruct.offset(LAYOUT, "state");
    public static final long QP_TYPE = CStruct.offset(LAYOUT, "qp_type");
    public static final long MUTEX = CStruct.offset(LAYOUT, "mutex");
    public static final long COND = CStruct.offset(LAYOUT, "cond");
    public static final long EVENTS_COMPLETED = CStruct.offset(LAYOUT, "events_completed");

    private IbvQp() {}
}
