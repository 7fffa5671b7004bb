package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_spec_counter_action}: the part of a rule that counts packets. Source: infiniband/verbs.h */
public final class IbvFlowSpecCounterAction {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_spec_counter_action",
            CStruct.ENUM.withName("type"),
            CStruct.U16.withName("size"),
            CStruct.PTR.withName("counters"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long TYPE = CStruct.offset(LAYOUT, "type");
    public static final long SIZE_MEMBER = CStruct.offset(LAYOUT, "size");
    public static final long COUNTERS = CStruct.offset(LAYOUT, "counters");

    private IbvFlowSpecCounterAction() {}
}
