package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_spec_action_tag}: the part of a rule that marks packets. Source: infiniband/verbs.h */
public final class IbvFlowSpecActionTag {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_spec_action_tag",
            CStruct.ENUM.withName("type"),
            CStruct.U16.withName("size"),
            CStruct.U32.withName("tag_id"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long TYPE = CStruct.offset(LAYOUT, "type");
    public static final long SIZE_MEMBER = CStruct.offset(LAYOUT, "size");
    public static final long TAG_ID = CStruct.offset(LAYOUT, "tag_id");

    private IbvFlowSpecActionTag() {}
}
