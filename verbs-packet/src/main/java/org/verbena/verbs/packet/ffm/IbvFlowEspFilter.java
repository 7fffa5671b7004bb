package org.verbena.verbs.packet.ffm;

import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct ibv_flow_esp_filter}: which ESP packets match. Source: infiniband/verbs.h */
public final class IbvFlowEspFilter {
    public static final StructLayout LAYOUT =
            CStruct.struct("ibv_flow_esp_filter", CStruct.U32.withName("spi"), CStruct.U32.withName("seq"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long SPI = CStruct.offset(LAYOUT, "spi");
    public static final long SEQ = CStruct.offset(LAYOUT, "seq");

    private IbvFlowEspFilter() {}
}
