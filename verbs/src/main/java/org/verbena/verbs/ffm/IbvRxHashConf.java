package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_rx_hash_conf}: how received packets are spread. Source: infiniband/verbs.h */
public final class IbvRxHashConf {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_rx_hash_conf",
            CStruct.U8.withName("rx_hash_function"),
            CStruct.U8.withName("rx_hash_key_len"),
            CStruct.PTR.withName("rx_hash_key"),
            CStruct.U64.withName("rx_hash_fields_mask"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long RX_HASH_FUNCTION = CStruct.offset(LAYOUT, "rx_hash_function");
    public static final long RX_HASH_KEY_LEN = CStruct.offset(LAYOUT, "rx_hash_key_len");
    public static final long RX_HASH_KEY = CStruct.offset(LAYOUT, "rx_hash_key");
    public static final long RX_HASH_FIELDS_MASK = CStruct.offset(LAYOUT, "rx_hash_fields_mask");

    private IbvRxHashConf() {}
}
