package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_device}: an RDMA device. Source: infiniband/verbs.h */
public final class IbvDevice {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_device",
            CStruct.group(CStruct.PTR.withName("_dummy1"), CStruct.PTR.withName("_dummy2"))
                    .withName("_ops"),
            CStruct.ENUM.withName("node_type"),
            CStruct.ENUM.withName("transport_type"),
            CStruct.array(64, CStruct.U8).withName("name"),
            CStruct.array(64, CStruct.U8).withName("dev_name"),
            CStruct.array(256, CStruct.U8).withName("dev_path"),
            CStruct.array(256, CStruct.U8).withName("ibdev_path"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long OPS__DUMMY1 = CStruct.offset(LAYOUT, "_ops._dummy1");
    public static final long OPS__DUMMY2 = CStruct.offset(LAYOUT, "_ops._dummy2");
    public static final long NODE_TYPE = CStruct.offset(LAYOUT, "node_type");
    public static final long TRANSPORT_TYPE = CStruct.offset(LAYOUT, "transport_type");
    public static final long NAME = CStruct.offset(LAYOUT, "name");
    public static final long DEV_NAME = CStruct.offset(LAYOUT, "dev_name");
    public static final long DEV_PATH = CStruct.offset(LAYOUT, "dev_path");
    public static final long IBDEV_PATH = CStruct.offset(LAYOUT, "ibdev_path");

    private IbvDevice() {}
}
