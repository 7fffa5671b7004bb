package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_odp_caps}: on-demand paging of a device. Source: infiniband/verbs.h */
public final class IbvOdpCaps {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_odp_caps",
            CStruct.U64.withName("general_caps"),
            CStruct.group(
                            CStruct.U32.withName("rc_odp_caps"),
                            CStruct.U32.withName("uc_odp_caps"),
                            CStruct.U32.withName("ud_odp_caps"))
                    .withName("per_transport_caps"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long GENERAL_CAPS = CStruct.offset(LAYOUT, "general_caps");
    public static final long PER_TRANSPORT_CAPS_RC_ODP_CAPS = CStruct.offset(LAYOUT, "per_transport_caps.rc_odp_caps");
    public static final long PER_TRANSPORT_CAPS_UC_ODP_CAPS = CStruct.offset(LAYOUT, "per_transport_caps.uc_odp_caps");
    public static final long PER_TRANSPORT_CAPS_UD_ODP_CAPS = CStruct.offset(LAYOUT, "per_transport_caps.ud_odp_caps");

    /** {@code IBV_ODP_SUPPORT}. */
    public static final long SUPPORT = 1;

    /** {@code IBV_ODP_SUPPORT_IMPLICIT}. */
    public static final long SUPPORT_IMPLICIT = 2;

    private IbvOdpCaps() {}
}
