package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_wq_attr}: what of a receive work queue is changed. Source: infiniband/verbs.h */
public final class IbvWqAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_wq_attr",
            CStruct.U32.withName("attr_mask"),
            CStruct.ENUM.withName("wq_state"),
            CStruct.ENUM.withName("curr_wq_state"),
            CStruct.U32.withName("flags"),
            CStruct.U32.withName("flags_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long ATTR_MASK = CStruct.offset(LAYOUT, "attr_mask");
    public static final long WQ_STATE = CStruct.offset(LAYOUT, "wq_state");
    public static final long CURR_WQ_STATE = CStruct.offset(LAYOUT, "curr_wq_state");
    public static final long FLAGS = CStruct.offset(LAYOUT, "flags");
    public static final long FLAGS_MASK = CStruct.offset(LAYOUT, "flags_mask");

    private IbvWqAttr() {}
}
