package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_qp_cap}: the sizes of a queue pair. Source: infiniband/verbs.h */
public final class IbvQpCap {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_qp_cap",
            CStruct.U32.withName("max_send_wr"),
            CStruct.U32.withName("max_recv_wr"),
            CStruct.U32.withName("max_send_sge"),
            CStruct.U32.withName("max_recv_sge"),
            CStruct.U32.withName("max_inline_data"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long MAX_SEND_WR = CStruct.offset(LAYOUT, "max_send_wr");
    public static final long MAX_RECV_WR = CStruct.offset(LAYOUT, "max_recv_wr");
    public static final long MAX_SEND_SGE = CStruct.offset(LAYOUT, "max_send_sge");
    public static final long MAX_RECV_SGE = CStruct.offset(LAYOUT, "max_recv_sge");
    public static final long MAX_INLINE_DATA = CStruct.offset(LAYOUT, "max_inline_data");

    private IbvQpCap() {}
}
