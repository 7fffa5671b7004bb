package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/**
 * {@code struct ibv_rwq_ind_table_init_attr}: what a table of receive work queues is created with. Source:
 * infiniband/verbs.h
 */
public final class IbvRwqIndTableInitAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_rwq_ind_table_init_attr",
            CStruct.U32.withName("log_ind_tbl_size"),
            CStruct.PTR.withName("ind_tbl"),
            CStruct.U32.withName("comp_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long LOG_IND_TBL_SIZE = CStruct.offset(LAYOUT, "log_ind_tbl_size");
    public static final long IND_TBL = CStruct.offset(LAYOUT, "ind_tbl");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");

    private IbvRwqIndTableInitAttr() {}
}
