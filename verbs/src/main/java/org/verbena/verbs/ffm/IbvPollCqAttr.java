package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_poll_cq_attr}: how an extended completion queue is polled. Source: infiniband/verbs.h */
public final class IbvPollCqAttr {
    public static final StructLayout LAYOUT = CStruct.struct("ibv_poll_cq_attr", CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvPollCqAttr() {}
}
