package org.verbena.cm.ffm;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import org.verbena.verbs.ffm.CStruct;

/**
 * {@code struct rdma_cm_id} and what it holds: {@code rdma_route}, {@code rdma_addr}, {@code rdma_ib_addr}. Source:
 * rdma/rdma_cma.h
 */
@SuppressWarnings("restricted") // gives pointers from C their sizes
public final class RdmaCmId {
    /** {@code struct rdma_ib_addr}. */
    public static final StructLayout IB_ADDR = CStruct.struct(
            "rdma_ib_addr",
            CStruct.array(2, JAVA_LONG).withName("sgid"),
            CStruct.array(2, JAVA_LONG).withName("dgid"),
            CStruct.array(2, JAVA_BYTE).withName("pkey"));

    /** {@code struct rdma_addr}. */
    public static final StructLayout ADDR = CStruct.struct(
            "rdma_addr",
            CStruct.array(Sockaddr.STORAGE_BYTES / 8, JAVA_LONG).withName("src_addr"),
            CStruct.array(Sockaddr.STORAGE_BYTES / 8, JAVA_LONG).withName("dst_addr"),
            IB_ADDR.withName("addr"));

    /** {@code struct rdma_route}. */
    public static final StructLayout ROUTE = CStruct.struct(
            "rdma_route", ADDR.withName("addr"), CStruct.PTR.withName("path_rec"), JAVA_INT.withName("num_paths"));

    /** {@code struct rdma_cm_id}. */
    public static final StructLayout LAYOUT = CStruct.struct(
            "rdma_cm_id",
            CStruct.PTR.withName("verbs"),
            CStruct.PTR.withName("channel"),
            CStruct.PTR.withName("context"),
            CStruct.PTR.withName("qp"),
            ROUTE.withName("route"),
            JAVA_INT.withName("ps"),
            JAVA_BYTE.withName("port_num"),
            CStruct.PTR.withName("event"),
            CStruct.PTR.withName("send_cq_channel"),
            CStruct.PTR.withName("send_cq"),
            CStruct.PTR.withName("recv_cq_channel"),
            CStruct.PTR.withName("recv_cq"),
            CStruct.PTR.withName("srq"),
            CStruct.PTR.withName("pd"),
            JAVA_INT.withName("qp_type"));

    private static final long VERBS = CStruct.offset(LAYOUT, "verbs");
    private static final long CHANNEL = CStruct.offset(LAYOUT, "channel");
    private static final long CONTEXT = CStruct.offset(LAYOUT, "context");
    private static final long QP = CStruct.offset(LAYOUT, "qp");
    private static final long SRC_ADDR = CStruct.offset(LAYOUT, "route.addr.src_addr");
    private static final long DST_ADDR = CStruct.offset(LAYOUT, "route.addr.dst_addr");
    private static final long PS = CStruct.offset(LAYOUT, "ps");
    private static final long PORT_NUM = CStruct.offset(LAYOUT, "port_num");
    private static final long SEND_CQ_CHANNEL = CStruct.offset(LAYOUT, "send_cq_channel");
    private static final long SEND_CQ = CStruct.offset(LAYOUT, "send_cq");
    private static final long RECV_CQ_CHANNEL = CStruct.offset(LAYOUT, "recv_cq_channel");
    private static final long RECV_CQ = CStruct.offset(LAYOUT, "recv_cq");
    private static final long SRQ = CStruct.offset(LAYOUT, "srq");
    private static final long PD = CStruct.offset(LAYOUT, "pd");
    private static final long QP_TYPE = CStruct.offset(LAYOUT, "qp_type");

    private RdmaCmId() {}

    /** Gives a pointer from C the struct's size. */
    public static MemorySegment at(long pointer) {
        return MemorySegment.ofAddress(pointer).reinterpret(LAYOUT.byteSize());
    }

    /** {@code struct ibv_context *verbs}: NULL until the id is bound to a device. */
    public static long verbs(MemorySegment id) {
        return id.get(CStruct.PTR, VERBS);
    }

    /** {@code struct rdma_event_channel *channel}. */
    public static long channel(MemorySegment id) {
        return id.get(CStruct.PTR, CHANNEL);
    }

    /** {@code void *context}, as a number. */
    public static long context(MemorySegment id) {
        return id.get(JAVA_LONG, CONTEXT);
    }

    /** {@code void *context}, as a number. */
    public static void context(MemorySegment id, long value) {
        id.set(JAVA_LONG, CONTEXT, value);
    }

    /** {@code struct ibv_qp *qp}. */
    public static long qp(MemorySegment id) {
        return id.get(CStruct.PTR, QP);
    }

    /** {@code struct ibv_qp *qp}. */
    public static void qp(MemorySegment id, long value) {
        id.set(CStruct.PTR, QP, value);
    }

    /** {@code route.addr.src_addr}: the local address. */
    public static MemorySegment localAddress(MemorySegment id) {
        return id.asSlice(SRC_ADDR, Sockaddr.STORAGE_BYTES);
    }

    /** {@code route.addr.dst_addr}: the peer's address. */
    public static MemorySegment remoteAddress(MemorySegment id) {
        return id.asSlice(DST_ADDR, Sockaddr.STORAGE_BYTES);
    }

    /** {@code enum rdma_port_space ps}. */
    public static int portSpace(MemorySegment id) {
        return id.get(JAVA_INT, PS);
    }

    /** {@code uint8_t port_num}: the device's port, from 1; 0 until the id is bound to one. */
    public static int portNumber(MemorySegment id) {
        return Byte.toUnsignedInt(id.get(JAVA_BYTE, PORT_NUM));
    }

    /** {@code struct ibv_comp_channel *send_cq_channel}. */
    public static long sendCqChannel(MemorySegment id) {
        return id.get(CStruct.PTR, SEND_CQ_CHANNEL);
    }

    /** {@code struct ibv_cq *send_cq}. */
    public static long sendCq(MemorySegment id) {
        return id.get(CStruct.PTR, SEND_CQ);
    }

    /** {@code struct ibv_comp_channel *recv_cq_channel}. */
    public static long recvCqChannel(MemorySegment id) {
        return id.get(CStruct.PTR, RECV_CQ_CHANNEL);
    }

    /** {@code struct ibv_cq *recv_cq}. */
    public static long recvCq(MemorySegment id) {
        return id.get(CStruct.PTR, RECV_CQ);
    }

    /** {@code struct ibv_srq *srq}. */
    public static long srq(MemorySegment id) {
        return id.get(CStruct.PTR, SRQ);
    }

    /** {@code struct ibv_pd *pd}: librdmacm's own, until a queue pair with another one is made. */
    public static long pd(MemorySegment id) {
        return id.get(CStruct.PTR, PD);
    }

    /** {@code enum ibv_qp_type qp_type}. */
    public static int qpType(MemorySegment id) {
        return id.get(JAVA_INT, QP_TYPE);
    }

    /**
     * Checks the layout by reading back what was just written at both ends of the struct.
     *
     * @throws UnsupportedOperationException librdmacm has another layout
     */
    public static void requireKnownLayout(MemorySegment id, long channel, long context, int portSpace, int qpType) {
        boolean known = channel(id) == channel
                && context(id) == context
                && portSpace(id) == portSpace
                && qpType(id) == qpType
                && verbs(id) == 0
                && qp(id) == 0
                && srq(id) == 0;
        if (!known) {
            throw new UnsupportedOperationException(CmLibrary.LIBRARY
                    + " has a layout of struct rdma_cm_id that this version of Verbena does not know (rdma-core 17 to"
                    + " 64 are known): use a newer Verbena, or an older rdma-core");
        }
    }
}
