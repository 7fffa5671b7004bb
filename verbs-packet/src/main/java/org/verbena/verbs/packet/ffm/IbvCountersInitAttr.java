package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_counters_init_attr}: what counters are created with. Source: infiniband/verbs.h */
public final class IbvCountersInitAttr {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_counters_init_attr", CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvCountersInitAttr() {}
}
