package org.verbena.verbs.ffm;

import java.lang.foreign.StructLayout;

/** {@code struct ibv_async_event}: an event of a device, port or object. Source: infiniband/verbs.h */
public final class IbvAsyncEvent {
    public static final StructLayout LAYOUT = CStruct.struct(
            "ibv_async_event",
            CStruct.union(
                            CStruct.PTR.withName("cq"),
                            CStruct.PTR.withName("qp"),
                            CStruct.PTR.withName("srq"),
                            CStruct.PTR.withName("wq"),
                            CStruct.I32.withName("port_num"))
                    .withName("element"),
            CStruct.ENUM.withName("event_type"));

    public static final long SIZE = LAYOUT.byteSize();
    public static final long ELEMENT_CQ = CStruct.offset(LAYOUT, "element.cq");
    public static final long ELEMENT_QP = CStruct.offset(LAYOUT, "element.qp");
    public static final long ELEMENT_SRQ = CStruct.offset(LAYOUT, "element.srq");
    public static final long ELEMENT_WQ = CStruct.offset(LAYOUT, "element.wq");
    public static final long ELEMENT_PORT_NUM = CStruct.offset(LAYOUT, "element.port_num");
    public static final long EVENT_TYPE = CStruct.offset(LAYOUT, "event_type");

    private IbvAsyncEvent() {}
}
