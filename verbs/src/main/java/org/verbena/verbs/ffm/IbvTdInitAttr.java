package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_td_init_attr}: what a thread domain is made with. Source: infiniband/verbs.h */
public final class IbvTdInitAttr {
    public static final StructLayout LAYOUT = CStruct.struct("ibv_td_init_attr", CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvTdInitAttr() {}
}
