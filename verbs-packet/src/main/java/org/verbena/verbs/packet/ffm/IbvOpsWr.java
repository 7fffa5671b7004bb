package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_ops_wr}: a tag-matching request. Source: infiniband/verbs.h */
public final class IbvOpsWr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_ops_wr",
            CStruct.U64.withName("wr_id"),
            CStruct.PTR.withName("next"),
            CStruct.ENUM.withName("opcode"),
            CStruct.I32.withName("flags"),
            CStruct.group(
                            CStruct.U32.withName("unexpected_cnt"),
                            CStruct.U32.withName("handle"),
                            CStruct.group(
                                            CStruct.U64.withName("recv_wr_id"),
                                            CStruct.PTR.withName("sg_list"),
                                            CStruct.I32.withName("num_sge"),
                                            CStruct.U64.withName("tag"),
                                            CStruct.U64.withName("mask"))
                                    .withName("add"))
                    .withName("tm"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long WR_ID = CStruct.offset(LAYOUT, "wr_id");
    public static final long NEXT = CStruct.offset(LAYOUT, "next");
    public static final long OPCODE = CStruct.offset(LAYOUT, "opcode");
    public static final long FLAGS = CStruct.offset(LAYOUT, "flags");
    public static final long TM_UNEXPECTED_CNT = CStruct.offset(LAYOUT, "tm.unexpected_cnt");
    public static final long TM_HANDLE = CStruct.offset(LAYOUT, "tm.handle");
    public static final long TM_ADD_RECV_WR_ID = CStruct.offset(LAYOUT, "tm.add.recv_wr_id");
    public static final long TM_ADD_SG_LIST = CStruct.offset(LAYOUT, "tm.add.sg_list");
    public static final long TM_ADD_NUM_SGE = CStruct.offset(LAYOUT, "tm.add.num_sge");
    public static final long TM_ADD_TAG = CStruct.offset(LAYOUT, "tm.add.tag");
    public static final long TM_ADD_MASK = CStruct.offset(LAYOUT, "tm.add.mask");

    private IbvOpsWr() {}
}
