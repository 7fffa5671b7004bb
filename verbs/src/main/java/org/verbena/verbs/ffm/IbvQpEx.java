package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_qp_ex}: a queue pair with the functions that build work requests. Source: infiniband/verbs.h */
public final class IbvQpEx {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_qp_ex",
            IbvQp.LAYOUT.withName("qp_base"),
            CStruct.U64.withName("comp_mask"),
            CStruct.U64.withName("wr_id"),
            CStruct.U32.withName("wr_flags"),
            CStruct.PTR.withName("wr_atomic_cmp_swp"),
            CStruct.PTR.withName("wr_atomic_fetch_add"),
            CStruct.PTR.withName("wr_bind_mw"),
            CStruct.PTR.withName("wr_local_inv"),
            CStruct.PTR.withName("wr_rdma_read"),
            CStruct.PTR.withName("wr_rdma_write"),
            CStruct.PTR.withName("wr_rdma_write_imm"),
            CStruct.PTR.withName("wr_send"),
            CStruct.PTR.withName("wr_send_imm"),
            CStruct.PTR.withName("wr_send_inv"),
            CStruct.PTR.withName("wr_send_tso"),
            CStruct.PTR.withName("wr_set_ud_addr"),
            CStruct.PTR.withName("wr_set_xrc_srqn"),
            CStruct.PTR.withName("wr_set_inline_data"),
            CStruct.PTR.withName("wr_set_inline_data_list"),
            CStruct.PTR.withName("wr_set_sge"),
            CStruct.PTR.withName("wr_set_sge_list"),
            CStruct.PTR.withName("wr_start"),
            CStruct.PTR.withName("wr_complete"),
            CStruct.PTR.withName("wr_abort"),
            CStruct.PTR.withName("wr_atomic_write"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long QP_BASE = CStruct.offset(LAYOUT, "qp_base");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long WR_ID = CStruct.offset(LAYOUT, "wr_id");
    public static final long WR_FLAGS = CStruct.offset(LAYOUT, "wr_flags");
    public static final long WR_ATOMIC_CMP_SWP = CStruct.offset(LAYOUT, "wr_atomic_cmp_swp");
    public static final long WR_ATOMIC_FETCH_ADD = CStruct.offset(LAYOUT, "wr_atomic_fetch_add");
    public static final long WR_BIND_MW = CStruct.offset(LAYOUT, "wr_bind_mw");
    public static final long WR_LOCAL_INV = CStruct.offset(LAYOUT, "wr_local_inv");
    public static final long WR_RDMA_READ = CStruct.offset(LAYOUT, "wr_rdma_read");
    public static final long WR_RDMA_WRITE = CStruct.offset(LAYOUT, "wr_rdma_write");
    public static final long WR_RDMA_WRITE_IMM = CStruct.offset(LAYOUT, "wr_rdma_write_imm");
    public static final long WR_SEND = CStruct.offset(LAYOUT, "wr_send");
    public static final long WR_SEND_IMM = CStruct.offset(LAYOUT, "wr_send_imm");
    public static final long WR_SEND_INV = CStruct.offset(LAYOUT, "wr_send_inv");
    public static final long WR_SEND_TSO = CStruct.offset(LAYOUT, "wr_send_tso");
    public static final long WR_SET_UD_ADDR = CStruct.offset(LAYOUT, "wr_set_ud_addr");
    public static final long WR_SET_XRC_SRQN = CStruct.offset(LAYOUT, "wr_set_xrc_srqn");
    public static final long WR_SET_INLINE_DATA = CStruct.offset(LAYOUT, "wr_set_inline_data");
    public static final long WR_SET_INLINE_DATA_LIST = CStruct.offset(LAYOUT, "wr_set_inline_data_list");
    public static final long WR_SET_SGE = CStruct.offset(LAYOUT, "wr_set_sge");
    public static final long WR_SET_SGE_LIST = CStruct.offset(LAYOUT, "wr_set_sge_list");
    public static final long WR_START = CStruct.offset(LAYOUT, "wr_start");
    public static final long WR_COMPLETE = CStruct.offset(LAYOUT, "wr_complete");
    public static final long WR_ABORT = CStruct.offset(LAYOUT, "wr_abort");
    public static final long WR_ATOMIC_WRITE = CStruct.offset(LAYOUT, "wr_atomic_write");

    private IbvQpEx() {}
}
