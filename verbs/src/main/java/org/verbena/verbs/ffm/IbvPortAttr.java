package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/**
 * {@code struct ibv_port_attr}: the state of a port. rdma-core 56 appended {@code uint32_t active_speed_ex}; earlier
 * libraries leave it zero. Source: infiniband/verbs.h, libibverbs/verbs.c (__lib_query_port)
 */
public final class IbvPortAttr {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_port_attr",
            CStruct.ENUM.withName("state"),
            CStruct.ENUM.withName("max_mtu"),
            CStruct.ENUM.withName("active_mtu"),
            CStruct.I32.withName("gid_tbl_len"),
            CStruct.U32.withName("port_cap_flags"),
            CStruct.U32.withName("max_msg_sz"),
            CStruct.U32.withName("bad_pkey_cntr"),
            CStruct.U32.withName("qkey_viol_cntr"),
            CStruct.U16.withName("pkey_tbl_len"),
            CStruct.U16.withName("lid"),
            CStruct.U16.withName("sm_lid"),
            CStruct.U8.withName("lmc"),
            CStruct.U8.withName("max_vl_num"),
            CStruct.U8.withName("sm_sl"),
            CStruct.U8.withName("subnet_timeout"),
            CStruct.U8.withName("init_type_reply"),
            CStruct.U8.withName("active_width"),
            CStruct.U8.withName("active_speed"),
            CStruct.U8.withName("phys_state"),
            CStruct.U8.withName("link_layer"),
            CStruct.U8.withName("flags"),
            CStruct.U16.withName("port_cap_flags2"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long STATE = CStruct.offset(LAYOUT, "state");
    public static final long MAX_MTU = CStruct.offset(LAYOUT, "max_mtu");
    public static final long ACTIVE_MTU = CStruct.offset(LAYOUT, "active_mtu");
    public static final long GID_TBL_LEN = CStruct.offset(LAYOUT, "gid_tbl_len");
    public static final long PORT_CAP_FLAGS = CStruct.offset(LAYOUT, "port_cap_flags");
    public static final long MAX_MSG_SZ = CStruct.offset(LAYOUT, "max_msg_sz");
    public static final long BAD_PKEY_CNTR = CStruct.offset(LAYOUT, "bad_pkey_cntr");
    public static final long QKEY_VIOL_CNTR = CStruct.offset(LAYOUT, "qkey_viol_cntr");
    public static final long PKEY_TBL_LEN = CStruct.offset(LAYOUT, "pkey_tbl_len");
    public static final long LID = CStruct.offset(LAYOUT, "lid");
    public static final long SM_LID = CStruct.offset(LAYOUT, "sm_lid");
    public static final long LMC = CStruct.offset(LAYOUT, "lmc");
    public static final long MAX_VL_NUM = CStruct.offset(LAYOUT, "max_vl_num");
    public static final long SM_SL = CStruct.offset(LAYOUT, "sm_sl");
    public static final long SUBNET_TIMEOUT = CStruct.offset(LAYOUT, "subnet_timeout");
    public static final long INIT_TYPE_REPLY = CStruct.offset(LAYOUT, "init_type_reply");
    public static final long ACTIVE_WIDTH = CStruct.offset(LAYOUT, "active_width");
    public static final long ACTIVE_SPEED = CStruct.offset(LAYOUT, "active_speed");
    public static final long PHYS_STATE = CStruct.offset(LAYOUT, "phys_state");
    public static final long LINK_LAYER = CStruct.offset(LAYOUT, "link_layer");
    public static final long FLAGS = CStruct.offset(LAYOUT, "flags");
    public static final long PORT_CAP_FLAGS2 = CStruct.offset(LAYOUT, "port_cap_flags2");

    public static final long ACTIVE_SPEED_EX = SIZE;

    /** With what was appended. */
    public static final long EXTENDED_SIZE = ACTIVE_SPEED_EX + Integer.BYTES;

    private IbvPortAttr() {}
}
