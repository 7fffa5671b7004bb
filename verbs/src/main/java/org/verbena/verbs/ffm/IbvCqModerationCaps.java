package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_cq_moderation_caps}: moderation of completion events of a device. Source: infiniband/verbs.h */
public final class IbvCqModerationCaps {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_cq_moderation_caps", CStruct.U16.withName("max_cq_count"), CStruct.U16.withName("max_cq_period"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long MAX_CQ_COUNT = CStruct.offset(LAYOUT, "max_cq_count");
    public static final long MAX_CQ_PERIOD = CStruct.offset(LAYOUT, "max_cq_period");

    private IbvCqModerationCaps() {}
}
