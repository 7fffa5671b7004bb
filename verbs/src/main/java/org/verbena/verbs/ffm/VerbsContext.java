package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/**
 * {@code struct verbs_context}: an open device with the functions that came later; it grows at its top. Source:
 * infiniband/verbs.h
 */
public final class VerbsContext {
    public static final StructLayout LAYOUT = CStruct.struct(
            "verbs_context",
            CStruct.PTR.withName("query_port"),
            CStruct.PTR.withName("advise_mr"),
            CStruct.PTR.withName("alloc_null_mr"),
            CStruct.PTR.withName("read_counters"),
            CStruct.PTR.withName("attach_counters_point_flow"),
            CStruct.PTR.withName("create_counters"),
            CStruct.PTR.withName("destroy_counters"),
            CStruct.PTR.withName("reg_dm_mr"),
            CStruct.PTR.withName("alloc_dm"),
            CStruct.PTR.withName("free_dm"),
            CStruct.PTR.withName("modify_flow_action_esp"),
            CStruct.PTR.withName("destroy_flow_action"),
            CStruct.PTR.withName("create_flow_action_esp"),
            CStruct.PTR.withName("modify_qp_rate_limit"),
            CStruct.PTR.withName("alloc_parent_domain"),
            CStruct.PTR.withName("dealloc_td"),
            CStruct.PTR.withName("alloc_td"),
            CStruct.PTR.withName("modify_cq"),
            CStruct.PTR.withName("post_srq_ops"),
            CStruct.PTR.withName("destroy_rwq_ind_table"),
            CStruct.PTR.withName("create_rwq_ind_table"),
            CStruct.PTR.withName("destroy_wq"),
            CStruct.PTR.withName("modify_wq"),
            CStruct.PTR.withName("create_wq"),
            CStruct.PTR.withName("query_rt_values"),
            CStruct.PTR.withName("create_cq_ex"),
            CStruct.PTR.withName("priv"),
            CStruct.PTR.withName("query_device_ex"),
            CStruct.PTR.withName("ibv_destroy_flow"),
            CStruct.PTR.withName("ABI_placeholder2"),
            CStruct.PTR.withName("ibv_create_flow"),
            CStruct.PTR.withName("ABI_placeholder1"),
            CStruct.PTR.withName("open_qp"),
            CStruct.PTR.withName("create_qp_ex"),
            CStruct.PTR.withName("get_srq_num"),
            CStruct.PTR.withName("create_srq_ex"),
            CStruct.PTR.withName("open_xrcd"),
            CStruct.PTR.withName("close_xrcd"),
            CStruct.U64.withName("_ABI_placeholder3"),
            CStruct.SIZE.withName("sz"),
            IbvContext.LAYOUT.withName("context"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long QUERY_PORT = CStruct.offset(LAYOUT, "query_port");
    public static final long ADVISE_MR = CStruct.offset(LAYOUT, "advise_mr");
    public static final long ALLOC_NULL_MR = CStruct.offset(LAYOUT, "alloc_null_mr");
    public static final long READ_COUNTERS = CStruct.offset(LAYOUT, "read_counters");
    public static final long ATTACH_COUNTERS_POINT_FLOW = CStruct.offset(LAYOUT, "attach_counters_point_flow");
    public static final long CREATE_COUNTERS = CStruct.offset(LAYOUT, "create_counters");
    public static final long DESTROY_COUNTERS = CStruct.offset(LAYOUT, "destroy_counters");
    public static final long REG_DM_MR = CStruct.offset(LAYOUT, "reg_dm_mr");
    public static final long ALLOC_DM = CStruct.offset(LAYOUT, "alloc_dm");
    public static final long FREE_DM = CStruct.offset(LAYOUT, "free_dm");
    public static final long MODIFY_FLOW_ACTION_ESP = CStruct.offset(LAYOUT, "modify_flow_action_esp");
    public static final long DESTROY_FLOW_ACTION = CStruct.offset(LAYOUT, "destroy_flow_action");
    public static final long CREATE_FLOW_ACTION_ESP = CStruct.offset(LAYOUT, "create_flow_action_esp");
    public static final long MODIFY_QP_RATE_LIMIT = CStruct.offset(LAYOUT, "modify_qp_rate_limit");
    public static final long ALLOC_PARENT_DOMAIN = CStruct.offset(LAYOUT, "alloc_parent_domain");
    public static final long DEALLOC_TD = CStruct.offset(LAYOUT, "dealloc_td");
    public static final long ALLOC_TD = CStruct.offset(LAYOUT, "alloc_td");
    public static final long MODIFY_CQ = CStruct.offset(LAYOUT, "modify_cq");
    public static final long POST_SRQ_OPS = CStruct.offset(LAYOUT, "post_srq_ops");
    public static final long DESTROY_RWQ_IND_TABLE = CStruct.offset(LAYOUT, "destroy_rwq_ind_table");
    public static final long CREATE_RWQ_IND_TABLE = CStruct.offset(LAYOUT, "create_rwq_ind_table");
    public static final long DESTROY_WQ = CStruct.offset(LAYOUT, "destroy_wq");
    public static final long MODIFY_WQ = CStruct.offset(LAYOUT, "modify_wq");
    public static final long CREATE_WQ = CStruct.offset(LAYOUT, "create_wq");
    public static final long QUERY_RT_VALUES = CStruct.offset(LAYOUT, "query_rt_values");
    public static final long CREATE_CQ_EX = CStruct.offset(LAYOUT, "create_cq_ex");
    public static final long PRIV = CStruct.offset(LAYOUT, "priv");
    public static final long QUERY_DEVICE_EX = CStruct.offset(LAYOUT, "query_device_ex");
    public static final long IBV_DESTROY_FLOW = CStruct.offset(LAYOUT, "ibv_destroy_flow");
    public static final long ABI_PLACEHOLDER2 = CStruct.offset(LAYOUT, "ABI_placeholder2");
    public static final long IBV_CREATE_FLOW = CStruct.offset(LAYOUT, "ibv_create_flow");
    public static final long ABI_PLACEHOLDER1 = CStruct.offset(LAYOUT, "ABI_placeholder1");
    public static final long OPEN_QP = CStruct.offset(LAYOUT, "open_qp");
    public static final long CREATE_QP_EX = CStruct.offset(LAYOUT, "create_qp_ex");
    public static final long GET_SRQ_NUM = CStruct.offset(LAYOUT, "get_srq_num");
    public static final long CREATE_SRQ_EX = CStruct.offset(LAYOUT, "create_srq_ex");
    public static final long OPEN_XRCD = CStruct.offset(LAYOUT, "open_xrcd");
    public static final long CLOSE_XRCD = CStruct.offset(LAYOUT, "close_xrcd");
    public static final long ABI_PLACEHOLDER3 = CStruct.offset(LAYOUT, "_ABI_placeholder3");
    public static final long SZ = CStruct.offset(LAYOUT, "sz");
    public static final long CONTEXT = CStruct.offset(LAYOUT, "context");

    private VerbsContext() {}
}
