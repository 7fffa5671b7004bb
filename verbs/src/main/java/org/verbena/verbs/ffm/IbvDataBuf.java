package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_data_buf}: a piece of memory. Source: infiniband/verbs.h */
public final class IbvDataBuf {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_data_buf", CStruct.PTR.withName("addr"), CStruct.SIZE.withName("length"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long ADDR = CStruct.offset(LAYOUT, "addr");
    public static final long LENGTH = CStruct.offset(LAYOUT, "length");

    private IbvDataBuf() {}
}
