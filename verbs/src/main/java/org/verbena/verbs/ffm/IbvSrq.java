package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_srq}: a shared receive queue. Source: infiniband/verbs.h */
public final class IbvSrq {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_srq",
            CStruct.PTR.withName("context"),
            CStruct.PTR.withName("srq_context"),
            CStruct.PTR.withName("pd"),
            CStruct.U32.withName("handle"),
            CStruct.PTHREAD_MUTEX.withName("mutex"),
            CStruct.PTHREAD_COND.withName("cond"),
            CStruct.U32.withName("events_completed"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long SRQ_CONTEXT = CStruct.offset(LAYOUT, "srq_context");
    public static final long PD = CStruct.offset(LAYOUT, "pd");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");
    public static final long MUTEX = CStruct.offset(LAYOUT, "mutex");
    public static final long COND = CStruct.offset(LAYOUT, "cond");
    public static final long EVENTS_COMPLETED = CStruct.offset(LAYOUT, "events_completed");

    private IbvSrq() {}
}
