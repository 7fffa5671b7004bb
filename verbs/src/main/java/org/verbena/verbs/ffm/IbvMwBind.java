package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_mw_bind}: how a type 1 window is bound. Source: infiniband/verbs.h */
public final class IbvMwBind {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_mw_bind",
            CStruct.U64.withName("wr_id"),
            CStruct.U32.withName("send_flags"),
            IbvMwBindInfo.LAYOUT.withName("bind_info"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long WR_ID = CStruct.offset(LAYOUT, "wr_id");
    public static final long SEND_FLAGS = CStruct.offset(LAYOUT, "send_flags");
    public static final long BIND_INFO = CStruct.offset(LAYOUT, "bind_info");

    private IbvMwBind() {}
}
