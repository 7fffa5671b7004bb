package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_recv_wr}: a work request of a receive queue. Source: infiniband/verbs.h */
public final class IbvRecvWr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_recv_wr",
            CStruct.U64.withName("wr_id"),
            CStruct.PTR.withName("next"),
            CStruct.PTR.withName("sg_list"),
            CStruct.I32.withName("num_sge"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long WR_ID = CStruct.offset(LAYOUT, "wr_id");
    public static final long NEXT = CStruct.offset(LAYOUT, "next");
    public static final long SG_LIST = CStruct.offset(LAYOUT, "sg_list");
    public static final long NUM_SGE = CStruct.offset(LAYOUT, "num_sge");

    private IbvRecvWr() {}
}
