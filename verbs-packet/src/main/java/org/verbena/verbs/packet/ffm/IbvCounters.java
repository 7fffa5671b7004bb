package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_counters}: numbers that rules count. Source: infiniband/verbs.h */
public final class IbvCounters {
    public static final StructLayout LAYOUT = CStruct.struct("ibv_counters", CStruct.PTR.withName("context"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");

    private IbvCounters() {}
}
