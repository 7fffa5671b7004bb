package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow}: a steering rule in force. Source: infiniband/verbs.h */
public final class IbvFlow {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow",
            CStruct.U32.withName("comp_mask"),
            CStruct.PTR.withName("context"),
            CStruct.U32.withName("handle"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");

    private IbvFlow() {}
}
