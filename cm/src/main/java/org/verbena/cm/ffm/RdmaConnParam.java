package org.verbena.cm.ffm;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct rdma_conn_param}. Source: rdma_connect(3) */
@SuppressWarnings("restricted") // gives pointers from C their sizes
public final class RdmaConnParam {
    public static final StructLayout LAYOUT = CStruct.struct(
            "rdma_conn_param",
            CStruct.PTR.withName("private_data"),
            JAVA_BYTE.withName("private_data_len"),
            JAVA_BYTE.withName("responder_resources"),
            JAVA_BYTE.withName("initiator_depth"),
            JAVA_BYTE.withName("flow_control"),
            JAVA_BYTE.withName("retry_count"),
            JAVA_BYTE.withName("rnr_retry_count"),
            JAVA_BYTE.withName("srq"),
            JAVA_INT.withName("qp_num"));

    private static final long PRIVATE_DATA = CStruct.offset(LAYOUT, "private_data");
    private static final long PRIVATE_DATA_LEN = CStruct.offset(LAYOUT, "private_data_len");
    private static final long RESPONDER_RESOURCES = CStruct.offset(LAYOUT, "responder_resources");
    private static final long INITIATOR_DEPTH = CStruct.offset(LAYOUT, "initiator_depth");
    private static final long FLOW_CONTROL = CStruct.offset(LAYOUT, "flow_control");
    private static final long RETRY_COUNT = CStruct.offset(LAYOUT, "retry_count");
    private static final long RNR_RETRY_COUNT = CStruct.offset(LAYOUT, "rnr_retry_count");
    private static final long SRQ = CStruct.offset(LAYOUT, "srq");
    private static final long QP_NUM = CStruct.offset(LAYOUT, "qp_num");

    private RdmaConnParam() {}

    /** Points the struct at a copy of the bytes. */
    public static void privateData(MemorySegment param, byte[] bytes, Arena arena) {
        param.set(
                CStruct.PTR,
                PRIVATE_DATA,
                bytes.length == 0 ? 0L : arena.allocateFrom(JAVA_BYTE, bytes).address());
        param.set(JAVA_BYTE, PRIVATE_DATA_LEN, (byte) bytes.length);
    }

    /** Copies the bytes that the struct points to. */
    public static byte[] privateData(MemorySegment param) {
        int length = Byte.toUnsignedInt(param.get(JAVA_BYTE, PRIVATE_DATA_LEN));
        long data = param.get(CStruct.PTR, PRIVATE_DATA);
        return data == 0
                ? new byte[0]
                : MemorySegment.ofAddress(data).reinterpret(length).toArray(JAVA_BYTE);
    }

    public static void responderResources(MemorySegment param, int value) {
        param.set(JAVA_BYTE, RESPONDER_RESOURCES, (byte) value);
    }

    public static int responderResources(MemorySegment param) {
        return Byte.toUnsignedInt(param.get(JAVA_BYTE, RESPONDER_RESOURCES));
    }

    public static void initiatorDepth(MemorySegment param, int value) {
        param.set(JAVA_BYTE, INITIATOR_DEPTH, (byte) value);
    }

    public static int initiatorDepth(MemorySegment param) {
        return Byte.toUnsignedInt(param.get(JAVA_BYTE, INITIATOR_DEPTH));
    }

    public static void flowControl(MemorySegment param, boolean value) {
        param.set(JAVA_BYTE, FLOW_CONTROL, (byte) (value ? 1 : 0));
    }

    public static boolean flowControl(MemorySegment param) {
        return param.get(JAVA_BYTE, FLOW_CONTROL) != 0;
    }

    public static void retryCount(MemorySegment param, int value) {
        param.set(JAVA_BYTE, RETRY_COUNT, (byte) value);
    }

    public static int retryCount(MemorySegment param) {
        return Byte.toUnsignedInt(param.get(JAVA_BYTE, RETRY_COUNT));
    }

    public static void rnrRetryCount(MemorySegment param, int value) {
        param.set(JAVA_BYTE, RNR_RETRY_COUNT, (byte) value);
    }

    public static int rnrRetryCount(MemorySegment param) {
        return Byte.toUnsignedInt(param.get(JAVA_BYTE, RNR_RETRY_COUNT));
    }

    public static void srq(MemorySegment param, boolean value) {
        param.set(JAVA_BYTE, SRQ, (byte) (value ? 1 : 0));
    }

    public static boolean srq(MemorySegment param) {
        return param.get(JAVA_BYTE, SRQ) != 0;
    }

    public static void qpNum(MemorySegment param, int value) {
        param.set(JAVA_INT, QP_NUM, value);
    }

    public static int qpNum(MemorySegment param) {
        return param.get(JAVA_INT, QP_NUM);
    }
}
