package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_context}: an open device. Source: infiniband/verbs.h */
public final class IbvContext {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_context",
            CStruct.PTR.withName("device"),
            IbvContextOps.LAYOUT.withName("ops"),
            CStruct.I32.withName("cmd_fd"),
            CStruct.I32.withName("async_fd"),
            CStruct.I32.withName("num_comp_vectors"),
            CStruct.PTHREAD_MUTEX.withName("mutex"),
            CStruct.PTR.withName("abi_compat"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long DEVICE = CStruct.offset(LAYOUT, "device");
    public static final long OPS = CStruct.offset(LAYOUT, "ops");
    public static final long CMD_FD = CStruct.offset(LAYOUT, "cmd_fd");
    public static final long ASYNC_FD = CStruct.offset(LAYOUT, "async_fd");
    public static final long NUM_COMP_VECTORS = CStruct.offset(LAYOUT, "num_comp_vectors");
    public static final long MUTEX = CStruct.offset(LAYOUT, "mutex");
    public static final long ABI_COMPAT = CStruct.offset(LAYOUT, "abi_compat");

    private IbvContext() {}
}
