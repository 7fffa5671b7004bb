package org.verbena.cm.ffm;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.UnionLayout;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvAhAttr;

/** {@code struct rdma_cm_event}, with {@code struct rdma_ud_param}. Source: rdma_get_cm_event(3) */
@SuppressWarnings("restricted") // gives pointers from C their sizes
public final class RdmaCmEvent {
    /** {@code struct rdma_ud_param}. */
    public static final StructLayout UD_PARAM = CStruct.struct(
            "rdma_ud_param",
            CStruct.PTR.withName("private_data"),
            JAVA_BYTE.withName("private_data_len"),
            IbvAhAttr.LAYOUT.withName("ah_attr"),
            JAVA_INT.withName("qp_num"),
            JAVA_INT.withName("qkey"));

    /** {@code union param}. */
    public static final UnionLayout PARAM = CStruct.union(
                    RdmaConnParam.LAYOUT.withName("conn"), UD_PARAM.withName("ud"))
            .withName("param");

    /** {@code struct rdma_cm_event}. */
    public static final StructLayout LAYOUT = CStruct.struct(
            "rdma_cm_event",
            CStruct.PTR.withName("id"),
            CStruct.PTR.withName("listen_id"),
            JAVA_INT.withName("event"),
            JAVA_INT.withName("status"),
            PARAM);

    private static final long ID = CStruct.offset(LAYOUT, "id");
    private static final long LISTEN_ID = CStruct.offset(LAYOUT, "listen_id");
    private static final long EVENT = CStruct.offset(LAYOUT, "event");
    private static final long STATUS = CStruct.offset(LAYOUT, "status");
    private static final long CONN = CStruct.offset(LAYOUT, "param.conn");
    private static final long UD = CStruct.offset(LAYOUT, "param.ud");
    private static final long UD_PRIVATE_DATA = CStruct.offset(UD_PARAM, "private_data");
    private static final long UD_PRIVATE_DATA_LEN = CStruct.offset(UD_PARAM, "private_data_len");
    private static final long UD_AH_ATTR = CStruct.offset(UD_PARAM, "ah_attr");
    private static final long UD_QP_NUM = CStruct.offset(UD_PARAM, "qp_num");
    private static final long UD_QKEY = CStruct.offset(UD_PARAM, "qkey");

    private RdmaCmEvent() {}

    /** Gives a pointer from C the struct's size. */
    public static MemorySegment at(long pointer) {
        return MemorySegment.ofAddress(pointer).reinterpret(LAYOUT.byteSize());
    }

    /** {@code struct rdma_cm_id *id}: the id of the event; for a connection request, the new id. */
    public static long id(MemorySegment event) {
        return event.get(CStruct.PTR, ID);
    }

    /** {@code struct rdma_cm_id *listen_id}: for a connection request, the id that listened. */
    public static long listenId(MemorySegment event) {
        return event.get(CStruct.PTR, LISTEN_ID);
    }

    /** {@code enum rdma_cm_event_type event}. */
    public static int type(MemorySegment event) {
        return event.get(JAVA_INT, EVENT);
    }

    /** {@code int status}. */
    public static int status(MemorySegment event) {
        return event.get(JAVA_INT, STATUS);
    }

    /** {@code param.conn}, for ids of connected services. */
    public static MemorySegment conn(MemorySegment event) {
        return event.asSlice(CONN, RdmaConnParam.LAYOUT.byteSize());
    }

    /** {@code param.ud}, for ids of datagram services. */
    public static MemorySegment ud(MemorySegment event) {
        return event.asSlice(UD, UD_PARAM.byteSize());
    }

    /**
     * {@code private_data} of a {@code rdma_ud_param}, copied. For multicast events it is the context of the join, and
     * not to be read.
     */
    public static byte[] udPrivateData(MemorySegment ud) {
        int length = Byte.toUnsignedInt(ud.get(JAVA_BYTE, UD_PRIVATE_DATA_LEN));
        long data = ud.get(CStruct.PTR, UD_PRIVATE_DATA);
        return data == 0
                ? new byte[0]
                : MemorySegment.ofAddress(data).reinterpret(length).toArray(JAVA_BYTE);
    }

    /** {@code private_data} of a {@code rdma_ud_param} as the number it is in multicast events. */
    public static long udContext(MemorySegment ud) {
        return ud.get(JAVA_LONG, UD_PRIVATE_DATA);
    }

    /** {@code ah_attr} of a {@code rdma_ud_param}. */
    public static MemorySegment udAddressHandle(MemorySegment ud) {
        return ud.asSlice(UD_AH_ATTR, IbvAhAttr.SIZE);
    }

    /** {@code qp_num} of a {@code rdma_ud_param}. */
    public static int udQpNum(MemorySegment ud) {
        return ud.get(JAVA_INT, UD_QP_NUM);
    }

    /** {@code qkey} of a {@code rdma_ud_param}. */
    public static int udQkey(MemorySegment ud) {
        return ud.get(JAVA_INT, UD_QKEY);
    }
}
