package org.verbena.cm.ffm;

/** Constants of librdmacm that are not enums of the Java API. Source: rdma/rdma_cma.h */
public final class RdmaCmConstants {
    public static final int RDMA_OPTION_ID = 0;
    public static final int RDMA_OPTION_IB = 1;
    public static final int RDMA_OPTION_ID_TOS = 0;
    public static final int RDMA_OPTION_ID_REUSEADDR = 1;
    public static final int RDMA_OPTION_ID_AFONLY = 2;
    public static final int RDMA_OPTION_ID_ACK_TIMEOUT = 3;
    public static final int RDMA_OPTION_IB_PATH = 1;

    public static final int RDMA_MAX_RESP_RES = 0xFF;
    public static final int RDMA_MAX_INIT_DEPTH = 0xFF;

    public static final int RDMA_UDP_QKEY = 0x01234567;

    public static final int RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1;
    public static final int RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 2;

    public static final int RAI_PASSIVE = 0x1;
    public static final int RAI_NUMERICHOST = 0x2;
    public static final int RAI_NOROUTE = 0x4;
    public static final int RAI_FAMILY = 0x8;

    private RdmaCmConstants() {}
}
