package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/**
 * {@code struct ib_uverbs_flow_action_esp_replay_bmp}: how repeated packets are recognised. Source:
 * infiniband/ib_user_ioctl_verbs.h
 */
public final class IbUverbsFlowActionEspReplayBmp {
    public static final StructLayout LAYOUT =
            CStruct.struct("ib_uverbs_flow_action_esp_replay_bmp", CStruct.U32.withName("size"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long SIZE_MEMBER = CStruct.offset(LAYOUT, "size");

    private IbUverbsFlowActionEspReplayBmp() {}
}
