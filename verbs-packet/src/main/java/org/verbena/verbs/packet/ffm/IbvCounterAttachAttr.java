package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_counter_attach_attr}: what a counter counts. Source: infiniband/verbs.h */
public final class IbvCounterAttachAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_counter_attach_attr",
            CStruct.ENUM.withName("counter_desc"),
            CStruct.U32.withName("index"),
            CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COUNTER_DESC = CStruct.offset(LAYOUT, "counter_desc");
    public static final long INDEX = CStruct.offset(LAYOUT, "index");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvCounterAttachAttr() {}
}
