package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_rss_caps}: receive-side scaling of a device. Source: infiniband/verbs.h */
public final class IbvRssCaps {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_rss_caps",
            CStruct.U32.withName("supported_qpts"),
            CStruct.U32.withName("max_rwq_indirection_tables"),
            CStruct.U32.withName("max_rwq_indirection_table_size"),
            CStruct.U64.withName("rx_hash_fields_mask"),
            CStruct.U8.withName("rx_hash_function"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long SUPPORTED_QPTS = CStruct.offset(LAYOUT, "supported_qpts");
    public static final long MAX_RWQ_INDIRECTION_TABLES = CStruct.offset(LAYOUT, "max_rwq_indirection_tables");
    public static final long MAX_RWQ_INDIRECTION_TABLE_SIZE = CStruct.offset(LAYOUT, "max_rwq_indirection_table_size");
    public static final long RX_HASH_FIELDS_MASK = CStruct.offset(LAYOUT, "rx_hash_fields_mask");
    public static final long RX_HASH_FUNCTION = CStruct.offset(LAYOUT, "rx_hash_function");

    private IbvRssCaps() {}
}
