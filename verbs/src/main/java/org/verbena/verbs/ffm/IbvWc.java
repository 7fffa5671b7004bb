package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_wc}: a work completion. Source: infiniband/verbs.h */
public final class IbvWc {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_wc",
            CStruct.U64.withName("wr_id"),
            CStruct.ENUM.withName("status"),
            CStruct.ENUM.withName("opcode"),
            CStruct.U32.withName("vendor_err"),
            CStruct.U32.withName("byte_len"),
            CStruct.union(CStruct.U32.withName("imm_data"), CStruct.U32.withName("invalidated_rkey")),
            CStruct.U32.withName("qp_num"),
            CStruct.U32.withName("src_qp"),
            CStruct.U32.withName("wc_flags"),
            CStruct.U16.withName("pkey_index"),
            CStruct.U16.withName("slid"),
            CStruct.U8.withName("sl"),
            CStruct.U8.withName("dlid_path_bits"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long WR_ID = CStruct.offset(LAYOUT, "wr_id");
    public static final long STATUS = CStruct.offset(LAYOUT, "status");
    public static final long OPCODE = CStruct.offset(LAYOUT, "opcode");
    public static final long VENDOR_ERR = CStruct.offset(LAYOUT, "vendor_err");
    public static final long BYTE_LEN = CStruct.offset(LAYOUT, "byte_len");
    public static final long IMM_DATA = CStruct.offset(LAYOUT, "imm_data");
    public static final long INVALIDATED_RKEY = CStruct.offset(LAYOUT, "invalidated_rkey");
    public static final long QP_NUM = CStruct.offset(LAYOUT, "qp_num");
    public static final long SRC_QP = CStruct.offset(LAYOUT, "src_qp");
    public static final long WC_FLAGS = CStruct.offset(LAYOUT, "wc_flags");
    public static final long PKEY_INDEX = CStruct.offset(LAYOUT, "pkey_index");
    public static final long SLID = CStruct.offset(LAYOUT, "slid");
    public static final long SL = CStruct.offset(LAYOUT, "sl");
    public static final long DLID_PATH_BITS = CStruct.offset(LAYOUT, "dlid_path_bits");

    private IbvWc() {}
}
