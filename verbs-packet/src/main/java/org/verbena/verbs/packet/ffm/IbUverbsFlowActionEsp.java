package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ib_uverbs_flow_action_esp}: a security association. Source: infiniband/ib_user_ioctl_verbs.h */
public final class IbUverbsFlowActionEsp {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ib_uverbs_flow_action_esp",
            CStruct.U32.withName("spi"),
            CStruct.U32.withName("seq"),
            CStruct.U32.withName("tfc_pad"),
            CStruct.U32.withName("flags"),
            CStruct.U64.withName("hard_limit_pkts"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long SPI = CStruct.offset(LAYOUT, "spi");
    public static final long SEQ = CStruct.offset(LAYOUT, "seq");
    public static final long TFC_PAD = CStruct.offset(LAYOUT, "tfc_pad");
    public static final long FLAGS = CStruct.offset(LAYOUT, "flags");
    public static final long HARD_LIMIT_PKTS = CStruct.offset(LAYOUT, "hard_limit_pkts");

    private IbUverbsFlowActionEsp() {}
}
