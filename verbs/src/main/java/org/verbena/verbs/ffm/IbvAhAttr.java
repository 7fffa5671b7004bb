package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_ah_attr}: an address. Source: infiniband/verbs.h */
public final class IbvAhAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_ah_attr",
            IbvGlobalRoute.LAYOUT.withName("grh"),
            CStruct.U16.withName("dlid"),
            CStruct.U8.withName("sl"),
            CStruct.U8.withName("src_path_bits"),
            CStruct.U8.withName("static_rate"),
            CStruct.U8.withName("is_global"),
            CStruct.U8.withName("port_num"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long GRH = CStruct.offset(LAYOUT, "grh");
    public static final long DLID = CStruct.offset(LAYOUT, "dlid");
    public static final long SL = CStruct.offset(LAYOUT, "sl");
    public static final long SRC_PATH_BITS = CStruct.offset(LAYOUT, "src_path_bits");
    public static final long STATIC_RATE = CStruct.offset(LAYOUT, "static_rate");
    public static final long IS_GLOBAL = CStruct.offset(LAYOUT, "is_global");
    public static final long PORT_NUM = CStruct.offset(LAYOUT, "port_num");

    private IbvAhAttr() {}
}
