package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_moderate_cq}: moderation of completion events. Source: infiniband/verbs.h */
public final class IbvModerateCq {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_moderate_cq", CStruct.U16.withName("cq_count"), CStruct.U16.withName("cq_period"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CQ_COUNT = CStruct.offset(LAYOUT, "cq_count");
    public static final long CQ_PERIOD = CStruct.offset(LAYOUT, "cq_period");

    private IbvModerateCq() {}
}
