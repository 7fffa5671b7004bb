package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/**
 * {@code struct ibv_context_ops}: the functions that a provider implements and that headers call inline. Source:
 * infiniband/verbs.h
 */
public final class IbvContextOps {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_context_ops",
            CStruct.PTR.withName("_compat_query_device"),
            CStruct.PTR.withName("_compat_query_port"),
            CStruct.PTR.withName("_compat_alloc_pd"),
            CStruct.PTR.withName("_compat_dealloc_pd"),
            CStruct.PTR.withName("_compat_reg_mr"),
            CStruct.PTR.withName("_compat_rereg_mr"),
            CStruct.PTR.withName("_compat_dereg_mr"),
            CStruct.PTR.withName("alloc_mw"),
            CStruct.PTR.withName("bind_mw"),
            CStruct.PTR.withName("dealloc_mw"),
            CStruct.PTR.withName("_compat_create_cq"),
            CStruct.PTR.withName("poll_cq"),
            CStruct.PTR.withName("req_notify_cq"),
            CStruct.PTR.withName("_compat_cq_event"),
            CStruct.PTR.withName("_compat_resize_cq"),
            CStruct.PTR.withName("_compat_destroy_cq"),
            CStruct.PTR.withName("_compat_create_srq"),
            CStruct.PTR.withName("_compat_modify_srq"),
            CStruct.PTR.withName("_compat_query_srq"),
            CStruct.PTR.withName("_compat_destroy_srq"),
            CStruct.PTR.withName("post_srq_recv"),
            CStruct.PTR.withName("_compat_create_qp"),
            CStruct.PTR.withName("_compat_query_qp"),
            CStruct.PTR.withName("_compat_modify_qp"),
            CStruct.PTR.withName("_compat_destroy_qp"),
            CStruct.PTR.withName("post_send"),
            CStruct.PTR.withName("post_recv"),
            CStruct.PTR.withName("_compat_create_ah"),
            CStruct.PTR.withName("_compat_destroy_ah"),
            CStruct.PTR.withName("_compat_attach_mcast"),
            CStruct.PTR.withName("_compat_detach_mcast"),
            CStruct.PTR.withName("_compat_async_event"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMPAT_QUERY_DEVICE = CStruct.offset(LAYOUT, "_compat_query_device");
    public static final long COMPAT_QUERY_PORT = CStruct.offset(LAYOUT, "_compat_query_port");
    public static final long COMPAT_ALLOC_PD = CStruct.offset(LAYOUT, "_compat_alloc_pd");
    public static final long COMPAT_DEALLOC_PD = CStruct.offset(LAYOUT, "_compat_dealloc_pd");
    public static final long COMPAT_REG_MR = CStruct.offset(LAYOUT, "_compat_reg_mr");
    public static final long COMPAT_REREG_MR = CStruct.offset(LAYOUT, "_compat_rereg_mr");
    public static final long COMPAT_DEREG_MR = CStruct.offset(LAYOUT, "_compat_dereg_mr");
    public static final long ALLOC_MW = CStruct.offset(LAYOUT, "alloc_mw");
    public static final long BIND_MW = CStruct.offset(LAYOUT, "bind_mw");
    public static final long DEALLOC_MW = CStruct.offset(LAYOUT, "dealloc_mw");
    public static final long COMPAT_CREATE_CQ = CStruct.offset(LAYOUT, "_compat_create_cq");
    public static final long POLL_CQ = CStruct.offset(LAYOUT, "poll_cq");
    public static final long REQ_NOTIFY_CQ = CStruct.offset(LAYOUT, "req_notify_cq");
    public static final long COMPAT_CQ_EVENT = CStruct.offset(LAYOUT, "_compat_cq_event");
    public static final long COMPAT_RESIZE_CQ = CStruct.offset(LAYOUT, "_compat_resize_cq");
    public static final long COMPAT_DESTROY_CQ = CStruct.offset(LAYOUT, "_compat_destroy_cq");
    public static final long COMPAT_CREATE_SRQ = CStruct.offset(LAYOUT, "_compat_create_srq");
    public static final long COMPAT_MODIFY_SRQ = CStruct.offset(LAYOUT, "_compat_modify_srq");
    public static final long COMPAT_QUERY_SRQ = CStruct.offset(LAYOUT, "_compat_query_srq");
    public static final long COMPAT_DESTROY_SRQ = CStruct.offset(LAYOUT, "_compat_destroy_srq");
    public static final long POST_SRQ_RECV = CStruct.offset(LAYOUT, "post_srq_recv");
    public static final long COMPAT_CREATE_QP = CStruct.offset(LAYOUT, "_compat_create_qp");
    public static final long COMPAT_QUERY_QP = CStruct.offset(LAYOUT, "_compat_query_qp");
    public static final long COMPAT_MODIFY_QP = CStruct.offset(LAYOUT, "_compat_modify_qp");
    public static final long COMPAT_DESTROY_QP = CStruct.offset(LAYOUT, "_compat_destroy_qp");
    public static final long POST_SEND = CStruct.offset(LAYOUT, "post_send");
    public static final long POST_RECV = CStruct.offset(LAYOUT, "post_recv");
    public static final long COMPAT_CREATE_AH = CStruct.offset(LAYOUT, "_compat_create_ah");
    public static final long COMPAT_DESTROY_AH = CStruct.offset(LAYOUT, "_compat_destroy_ah");
    public static final long COMPAT_ATTACH_MCAST = CStruct.offset(LAYOUT, "_compat_attach_mcast");
    public static final long COMPAT_DETACH_MCAST = CStruct.offset(LAYOUT, "_compat_detach_mcast");
    public static final long COMPAT_ASYNC_EVENT = CStruct.offset(LAYOUT, "_compat_async_event");

    private IbvContextOps() {}
}
