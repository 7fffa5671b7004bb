package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_rwq_ind_table}: a table of receive work queues. Source: infiniband/verbs.h */
public final class IbvRwqIndTable {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_rwq_ind_table",
            CStruct.PTR.withName("context"),
            CStruct.I32.withName("ind_tbl_handle"),
            CStruct.I32.withName("ind_tbl_num"),
            CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long IND_TBL_HANDLE = CStruct.offset(LAYOUT, "ind_tbl_handle");
    public static final long IND_TBL_NUM = CStruct.offset(LAYOUT, "ind_tbl_num");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvRwqIndTable() {}
}
