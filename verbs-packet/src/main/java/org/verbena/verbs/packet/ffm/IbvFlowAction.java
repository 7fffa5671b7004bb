package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_action}: a change to packets. Source: infiniband/verbs.h */
public final class IbvFlowAction {
    public static final StructLayout LAYOUT = CStruct.struct("ibv_flow_action", CStruct.PTR.withName("context"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");

    private IbvFlowAction() {}
}
