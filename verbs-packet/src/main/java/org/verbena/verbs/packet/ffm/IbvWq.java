package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_wq}: a receive work queue. Source: infiniband/verbs.h */
public final class IbvWq {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_wq",
            CStruct.PTR.withName("context"),
            CStruct.PTR.withName("wq_context"),
            CStruct.PTR.withName("pd"),
            CStruct.PTR.withName("cq"),
            CStruct.U32.withName("wq_num"),
            CStruct.U32.withName("handle"),
            CStruct.ENUM.withName("state"),
            CStruct.ENUM.withName("wq_type"),
            CStruct.PTR.withName("post_recv"),
            CStruct.PTHREAD_MUTEX.withName("mutex"),
            CStruct.PTHREAD_COND.withName("cond"),
            CStruct.U32.withName("events_completed"),
            CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long WQ_CONTEXT = CStruct.offset(LAYOUT, "wq_context");
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long CQ = CStruct.offset(LAYOUT, "cq");
    public static final long WQ_NUM = CStruct.offset(LAYOUT, "wq_num");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");
    public static final long STATE = CStruct.offset(LAYOUT, "state");
    public static final long WQ_TYPE = CStruct.offset(LAYOUT, "wq_type");
    public static final long POST_RECV = CStruct.offset(LAYOUT, "post_recv");
    public static final long MUTEX = CStruct.offset(LAYOUT, "mutex");
    public static final long COND = CStruct.offset(LAYOUT, "cond");
    public static final long EVENTS_COMPLETED = CStruct.offset(LAYOUT, "events_completed");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvWq() {}
}
