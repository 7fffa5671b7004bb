package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_attr}: a steering rule; its parts follow. Source: infiniband/verbs.h */
public final class IbvFlowAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_attr",
            CStruct.U32.withName("comp_mask"),
            CStruct.ENUM.withName("type"),
            CStruct.U16.withName("size"),
            CStruct.U16.withName("priority"),
            CStruct.U8.withName("num_of_specs"),
            CStruct.U8.withName("port"),
            CStruct.U32.withName("flags"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long TYPE = CStruct.offset(LAYOUT, "type");
    public static final long SIZE_MEMBER = CStruct.offset(LAYOUT, "size");
    public static final long PRIORITY = CStruct.offset(LAYOUT, "priority");
    public static final long NUM_OF_SPECS = CStruct.offset(LAYOUT, "num_of_specs");
    public static final long PORT = CStruct.offset(LAYOUT, "port");
    public static final long FLAGS = CStruct.offset(LAYOUT, "flags");

    private IbvFlowAttr() {}
}
