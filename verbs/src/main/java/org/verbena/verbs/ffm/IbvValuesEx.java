package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_values_ex}: values of a device at this moment. Source: infiniband/verbs.h */
public final class IbvValuesEx {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_values_ex",
            CStruct.U32.withName("comp_mask"),
            CStruct.group(CStruct.U64.withName("tv_sec"), CStruct.U64.withName("tv_nsec"))
                    .withName("raw_clock"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long COMP_MASK = CStruct.offset(LAYOUT, "comp_mask");
    public static final long RAW_CLOCK_TV_SEC = CStruct.offset(LAYOUT, "raw_clock.tv_sec");
    public static final long RAW_CLOCK_TV_NSEC = CStruct.offset(LAYOUT, "raw_clock.tv_nsec");

    private IbvValuesEx() {}
}
