package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_cq_ex}: a completion queue with the functions that read completions. Source: infiniband/verbs.h */
public final class IbvCqEx {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_cq_ex",
            CStruct.PTR.withName("context"),
            CStruct.PTR.withName("channel"),
            CStruct.PTR.withName("cq_context"),
            CStruct.U32.withName("handle"),
            CStruct.I32.withName("cqe"),
            CStruct.PTHREAD_MUTEX.withName("mutex"),
            CStruct.PTHREAD_COND.withName("cond"),
            CStruct.U32.withName("comp_events_completed"),
            CStruct.U32.withName("async_events_completed"),
            CStruct.U32.withName("comp_mask"),
            CStruct.ENUM.withName("status"),
            CStruct.U64.withName("wr_id"),
            CStruct.PTR.withName("start_poll"),
            CStruct.PTR.withName("next_poll"),
            CStruct.PTR.withName("end_poll"),
            CStruct.PTR.withName("read_opcode"),
            CStruct.PTR.withName("read_vendor_err"),
            CStruct.PTR.withName("read_byte_len"),
            CStruct.PTR.withName("read_imm_data"),
            CStruct.PTR.withName("read_qp_num"),
            CStruct.PTR.withName("read_src_qp"),
            CStruct.PTR.withName("read_wc_flags"),
            CStruct.PTR.withName("read_slid"),
            CStruct.PTR.withName("read_sl"),
            CStruct.PTR.withName("read_dlid_path_bits"),
            CStruct.PTR.withName("read_completion_ts"),
            CStruct.PTR.withName("read_cvlan"),
            CStruct.PTR.withName("read_flow_tag"),
            CStruct.PTR.withName("read_tm_info"),
            CStruct.PTR.withName("read_completion_wallclock_ns"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    public static final long CHANNEL = CStruct.offset(LAYOUT, "channel");
    public static final long CQ_CONTEXT = CStruct.offset(LAYOUT, "cq_context");
    public static final long HANDLE = CStruct.offset(LAYOUT, "handle");
    public static final long CQE = CStruct.offset(LAYOUT, "cqe");
    public static final long MUTEX = CStruct.offset(LAYOUT, "mutex");
    public static final long COND = CStruct.offset(LAYOUT, "cond");
    public static final long COMP_EVENTS_COMPLETED = CStruct.offset(LAYOUT, "comp_events_completed");
    public static final long ASYNC_EVENTS_COMPLETED = CStruct.offset(LAYOUT, "async_events_completed");
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long STATUS = CStruct.offset(LAYOUT, "status");
    public static final long WR_ID = CStruct.offset(LAYOUT, "wr_id");
    public static final long START_POLL = CStruct.offset(LAYOUT, "start_poll");
    public static final long NEXT_POLL = CStruct.offset(LAYOUT, "next_poll");
    public static final long END_POLL = CStruct.offset(LAYOUT, "end_poll");
    public static final long READ_OPCODE = CStruct.offset(LAYOUT, "read_opcode");
    public static final long READ_VENDOR_ERR = CStruct.offset(LAYOUT, "read_vendor_err");
    public static final long READ_BYTE_LEN = CStruct.offset(LAYOUT, "read_byte_len");
    public static final long READ_IMM_DATA = CStruct.offset(LAYOUT, "read_imm_data");
    public static final long READ_QP_NUM = CStruct.offset(LAYOUT, "read_qp_num");
    public static final long READ_SRC_QP = CStruct.offset(LAYOUT, "read_src_qp");
    public static final long READ_WC_FLAGS = CStruct.offset(LAYOUT, "read_wc_flags");
    public static final long READ_SLID = CStruct.offset(LAYOUT, "read_slid");
    public static final long READ_SL = CStruct.offset(LAYOUT, "read_sl");
    public static final long READ_DLID_PATH_BITS = CStruct.offset(LAYOUT, "read_dlid_path_bits");
    public static final long READ_COMPLETION_TS = CStruct.offset(LAYOUT, "read_completion_ts");
    public static final long READ_CVLAN = CStruct.offset(LAYOUT, "read_cvlan");
    public static final long READ_FLOW_TAG = CStruct.offset(LAYOUT, "read_flow_tag");
    public static final long READ_TM_INFO = CStruct.offset(LAYOUT, "read_tm_info");
    public static final long READ_COMPLETION_WALLCLOCK_NS = CStruct.offset(LAYOUT, "read_completion_wallclock_ns");

    private IbvCqEx() {}
}
