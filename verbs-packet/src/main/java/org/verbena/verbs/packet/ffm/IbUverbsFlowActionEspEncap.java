package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/**
 * {@code struct ib_uverbs_flow_action_esp_encap}: a header around ESP packets. Source: infiniband/ib_user_ioctl_verbs.h
 */
public final class IbUverbsFlowActionEspEncap {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ib_uverbs_flow_action_esp_encap",
            CStruct.PTR.withName("val_ptr"),
            CStruct.PTR.withName("next_ptr"),
            CStruct.U16.withName("len"),
            CStruct.U16.withName("type"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long VAL_PTR = CStruct.offset(LAYOUT, "val_ptr");
    public static final long NEXT_PTR = CStruct.offset(LAYOUT, "next_ptr");
    public static final long LEN = CStruct.offset(LAYOUT, "len");
    public static final long TYPE = CStruct.offset(LAYOUT, "type");

    private IbUverbsFlowActionEspEncap() {}
}
