package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_send_wr}: a work request of a send queue. Source: infiniband/verbs.h */
public final class IbvSendWr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_send_wr",
            CStruct.U64.withName("wr_id"),
            CStruct.PTR.withName("next"),
            CStruct.PTR.withName("sg_list"),
            CStruct.I32.withName("num_sge"),
            CStruct.ENUM.withName("opcode"),
            CStruct.U32.withName("send_flags"),
            CStruct.union(CStruct.U32.withName("imm_data"), CStruct.U32.withName("invalidate_rkey")),
            CStruct.union(
                            CStruct.group(CStruct.U64.withName("remote_addr"), CStruct.U32.withName("rkey"))
                                    .withName("rdma"),
                            CStruct.group(
                                            CStruct.U64.withName("remote_addr"),
                                            CStruct.U64.withName("compare_add"),
                                            CStruct.U64.withName("swap"),
                                            CStruct.U32.withName("rkey"))
                                    .withName("atomic"),
                            CStruct.group(
                                            CStruct.PTR.withName("ah"),
                                            CStruct.U32.withName("remote_qpn"),
                                            CStruct.U32.withName("remote_qkey"))
                                    .withName("ud"))
                    .withName("wr"),
            CStruct.union(CStruct.group(CStruct.U32.withName("remote_srqn")).withName("xrc"))
                    .withName("qp_type"),
            CStruct.union(
                    CStruct.group(
                                    CStruct.PTR.withName("mw"),
                                    CStruct.U32.withName("rkey"),
                                    IbvMwBindInfo.LAYOUT.withName("bind_info"))
                            .withName("bind_mw"),
                    CStruct.group(
                                    CStruct.PTR.withName("hdr"),
                                    CStruct.U16.withName("hdr_sz"),
                                    CStruct.U16.withName("mss"))
                            .withName("tso")));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long WR_ID = CStruct.offset(LAYOUT, "wr_id");
    public static final long NEXT = CStruct.offset(LAYOUT, "next");
    public static final long SG_LIST = CStruct.offset(LAYOUT, "sg_list");
    public static final long NUM_SGE = CStruct.offset(LAYOUT, "num_sge");
    public static final long OPCODE = CStruct.offset(LAYOUT, "opcode");
    public static final long SEND_FLAGS = CStruct.offset(LAYOUT, "send_flags");
    public static final long IMM_DATA = CStruct.offset(LAYOUT, "imm_data");
    public static final long INVALIDATE_RKEY = CStruct.offset(LAYOUT, "invalidate_rkey");
    public static final long WR_RDMA_REMOTE_ADDR = CStruct.offset(LAYOUT, "wr.rdma.remote_addr");
    public static final long WR_RDMA_RKEY = CStruct.offset(LAYOUT, "wr.rdma.rkey");
    public static final long WR_ATOMIC_REMOTE_ADDR = CStruct.offset(LAYOUT, "wr.atomic.remote_addr");
    public static final long WR_ATOMIC_COMPARE_ADD = CStruct.offset(LAYOUT, "wr.atomic.compare_add");
    public static final long WR_ATOMIC_SWAP = CStruct.offset(LAYOUT, "wr.atomic.swap");
    public static final long WR_ATOMIC_RKEY = CStruct.offset(LAYOUT, "wr.atomic.rkey");
    public static final long WR_UD_AH = CStruct.offset(LAYOUT, "wr.ud.ah");
    public static final long WR_UD_REMOTE_QPN = CStruct.offset(LAYOUT, "wr.ud.remote_qpn");
    public static final long WR_UD_REMOTE_QKEY = CStruct.offset(LAYOUT, "wr.ud.remote_qkey");
    public static final long QP_TYPE_XRC_REMOTE_SRQN = CStruct.offset(LAYOUT, "qp_type.xrc.remote_srqn");
    public static final long BIND_MW_MW = CStruct.offset(LAYOUT, "bind_mw.mw");
    public static final long BIND_MW_RKEY = CStruct.offset(LAYOUT, "bind_mw.rkey");
    public static final long BIND_MW_BIND_INFO = CStruct.offset(LAYOUT, "bind_mw.bind_info");
    public static final long TSO_HDR = CStruct.offset(LAYOUT, "tso.hdr");
    public static final long TSO_HDR_SZ = CStruct.offset(LAYOUT, "tso.hdr_sz");
    public static final long TSO_MSS = CStruct.offset(LAYOUT, "tso.mss");

    private IbvSendWr() {}
}
