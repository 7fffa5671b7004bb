package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_qp_attr}: the state of a queue pair. Source: infiniband/verbs.h */
public final class IbvQpAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_qp_attr",
            CStruct.ENUM.withName("qp_state"),
            CStruct.ENUM.withName("cur_qp_state"),
            CStruct.ENUM.withName("path_mtu"),
            CStruct.ENUM.withName("path_mig_state"),
            CStruct.U32.withName("qkey"),
            CStruct.U32.withName("rq_psn"),
            CStruct.U32.withName("sq_psn"),
            CStruct.U32.withName("dest_qp_num"),
            CStruct.U32.withName("qp_access_flags"),
            IbvQpCap.LAYOUT.withName("cap"),
            IbvAhAttr.LAYOUT.withName("ah_attr"),
            IbvAhAttr.LAYOUT.withName("alt_ah_attr"),
            CStruct.U16.withName("pkey_index"),
            CStruct.U16.withName("alt_pkey_index"),
            CStruct.U8.withName("en_sqd_async_notify"),
            CStruct.U8.withName("sq_draining"),
            CStruct.U8.withName("max_rd_atomic"),
            CStruct.U8.withName("max_dest_rd_atomic"),
            CStruct.U8.withName("min_rnr_timer"),
            CStruct.U8.withName("port_num"),
            CStruct.U8.withName("timeout"),
            CStruct.U8.withName("retry_cnt"),
            CStruct.U8.withName("rnr_retry"),
            CStruct.U8.withName("alt_port_num"),
            CStruct.U8.withName("alt_timeout"),
            CStruct.U32.withName("rate_limit"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long QP_STATE = CStruct.offset(LAYOUT, "qp_state");
    public static final long CUR_QP_STATE = CStruct.offset(LAYOUT, "cur_qp_state");
    public static final long PATH_MTU = CStruct.offset(LAYOUT, "path_mtu");
    public static final long PATH_MIG_STATE = CStruct.offset(LAYOUT, "path_mig_state");
    public static final long QKEY = CStruct.offset(LAYOUT, "qkey");
    public static final long RQ_PSN = CStruct.offset(LAYOUT, "rq_psn");
    public static final long SQ_PSN = CStruct.offset(LAYOUT, "sq_psn");
    public static final long DEST_QP_NUM = CStruct.offset(LAYOUT, "dest_qp_num");
    public static final long QP_ACCESS_FLAGS = CStruct.offset(LAYOUT, "qp_access_flags");
    public static final long CAP = CStruct.offset(LAYOUT, "cap");
    public static final long AH_ATTR = CStruct.offset(LAYOUT, "ah_attr");
    public static final long ALT_AH_ATTR = CStruct.offset(LAYOUT, "alt_ah_attr");
    public static final long PKEY_INDEX = CStruct.offset(LAYOUT, "pkey_index");
    public static final long ALT_PKEY_INDEX = CStruct.offset(LAYOUT, "alt_pkey_index");
    public static final long EN_SQD_ASYNC_NOTIFY = CStruct.offset(LAYOUT, "en_sqd_async_notify");
    public static final long SQ_DRAINING = CStruct.offset(LAYOUT, "sq_draining");
    public static final long MAX_RD_ATOMIC = CStruct.offset(LAYOUT, "max_rd_atomic");
    public static final long MAX_DEST_RD_ATOMIC = CStruct.offset(LAYOUT, "max_dest_rd_atomic");
    public static final long MIN_RNR_TIMER = CStruct.offset(LAYOUT, "min_rnr_timer");
    public static final long PORT_NUM = CStruct.offset(LAYOUT, "port_num");
    public static final long TIMEOUT = CStruct.offset(LAYOUT, "timeout");
    public static final long RETRY_CNT = CStruct.offset(LAYOUT, "retry_cnt");
    public static final long RNR_RETRY = CStruct.offset(LAYOUT, "rnr_retry");
    public static final long ALT_PORT_NUM = CStruct.offset(LAYOUT, "alt_port_num");
    public static final long ALT_TIMEOUT = CStruct.offset(LAYOUT, "alt_timeout");
    public static final long RATE_LIMIT = CStruct.offset(LAYOUT, "rate_limit");

    private IbvQpAttr() {}
}
