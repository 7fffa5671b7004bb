package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_cq}: a completion queue. Source: infiniband/verbs.h */
public final class IbvCq {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_cq",
            CStruct.PTR.withName("context"),
            CStruct.PTR.withName("channel"),
            CStruct.PTR.withName("cq_context"),
            CStruct.U32.withName("handle"),
            CStruct.I32.withName("cqe"),
            CStruct.PTHREAD_MUTEX.withName("mutex"),
            CStruct.PTHREAD_COND.withName("cond"),
            CStruct.U32.withName("comp_events_completed"),
            CStruct.U32.withName("async_events_completed"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long CHANNEL = CStruct.offset(LAYOUT, "channel");
    public static final long CQ_CONTEXT = CStruct.offset(LAYOUT, "cq_context");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");
    public static final long CQE = CStruct.offset(LAYOUT, "cqe");
    public static final long MUTEX = CStruct.offset(LAYOUT, "mutex");
    public static final long COND = CStruct.offset(LAYOUT, "cond");
    public static final long COMP_EVENTS_COMPLETED = CStruct.offset(LAYOUT, "comp_events_completed");
    public static final long ASYNC_EVENTS_COMPLETED = CStruct.offset(LAYOUT, "async_events_completed");

    private IbvCq() {}
}
