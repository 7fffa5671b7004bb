package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_query_device_ex_input}: what a device is asked. Source: infiniband/verbs.h */
public final class IbvQueryDeviceExInput {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_query_device_ex_input", CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvQueryDeviceExInput() {}
}
