package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_gid_entry}: a GID with its index, port, type and network interface. Source: infiniband/verbs.h */
public final class IbvGidEntry {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_gid_entry",
            CStruct.array(2, CStruct.U64).withName("gid"),
            CStruct.U32.withName("gid_index"),
            CStruct.U32.withName("port_num"),
            CStruct.U32.withName("gid_type"),
            CStruct.U32.withName("ndev_ifindex"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long GID = CStruct.offset(LAYOUT, "gid");
    public static final long GID_INDEX = CStruct.offset(LAYOUT, "gid_index");
    public static final long PORT_NUM = CStruct.offset(LAYOUT, "port_num");
    public static final long GID_TYPE = CStruct.offset(LAYOUT, "gid_type");
    public static final long NDEV_IFINDEX = CStruct.offset(LAYOUT, "ndev_ifindex");

    private IbvGidEntry() {}
}
