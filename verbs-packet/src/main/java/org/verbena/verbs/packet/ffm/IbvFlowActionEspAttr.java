package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_action_esp_attr}: how ESP packets are changed. Source: infiniband/verbs.h */
public final class IbvFlowActionEspAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_flow_action_esp_attr",
            CStruct.PTR.withName("esp_attr"),
            CStruct.ENUM.withName("keymat_proto"),
            CStruct.U16.withName("keymat_len"),
            CStruct.PTR.withName("keymat_ptr"),
            CStruct.ENUM.withName("replay_proto"),
            CStruct.U16.withName("replay_len"),
            CStruct.PTR.withName("replay_ptr"),
            CStruct.PTR.withName("esp_encap"),
            CStruct.U32.withName("comp_mask"),
            CStruct.U32.withName("esn"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long ESP_ATTR = CStruct.offset(LAYOUT, "esp_attr");
    public static final long KEYMAT_PROTO = CStruct.offset(LAYOUT, "keymat_proto");
    public static final long KEYMAT_LEN = CStruct.offset(LAYOUT, "keymat_len");
    public static final long KEYMAT_PTR = CStruct.offset(LAYOUT, "keymat_ptr");
    public static final long REPLAY_PROTO = CStruct.offset(LAYOUT, "replay_proto");
    public static final long REPLAY_LEN = CStruct.offset(LAYOUT, "replay_len");
    public static final long REPLAY_PTR = CStruct.offset(LAYOUT, "replay_ptr");
    public static final long ESP_ENCAP = CStruct.offset(LAYOUT, "esp_encap");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long ESN = CStruct.offset(LAYOUT, "esn");

    private IbvFlowActionEspAttr() {}
}
