package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_spec_action_drop}: the part of a rule that drops packets. Source: infiniband/verbs.h */
public final class IbvFlowSpecActionDrop {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_flow_spec_action_drop", CStruct.ENUM.withName("type"), CStruct.U16.withName("size"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long TYPE = CStruct.offset(LAYOUT, "type");
    public static final long SIZE_MEMBER = CStruct.offset(LAYOUT, "size");

    private IbvFlowSpecActionDrop() {}
}
