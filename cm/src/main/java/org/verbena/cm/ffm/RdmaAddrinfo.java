package org.verbena.cm.ffm;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.CStruct;

/** {@code struct rdma_addrinfo}. Source: rdma_getaddrinfo(3) */
@SuppressWarnings("restricted") // gives pointers from C their sizes
public final class RdmaAddrinfo {
    public static final int RAI_PASSIVE = 0x1;
    public static final int RAI_NUMERICHOST = 0x2;
    public static final int RAI_NOROUTE = 0x4;
    public static final int RAI_FAMILY = 0x8;

    public static final StructLayout LAYOUT = CStruct.struct(
            "rdma_addrinfo",
            JAVA_INT.withName("ai_flags"),
            JAVA_INT.withName("ai_family"),
            JAVA_INT.withName("ai_qp_type"),
            JAVA_INT.withName("ai_port_space"),
            JAVA_INT.withName("ai_src_len"),
            JAVA_INT.withName("ai_dst_len"),
            CStruct.PTR.withName("ai_src_addr"),
            CStruct.PTR.withName("ai_dst_addr"),
            CStruct.PTR.withName("ai_src_canonname"),
            CStruct.PTR.withName("ai_dst_canonname"),
            JAVA_LONG.withName("ai_route_len"),
            CStruct.PTR.withName("ai_route"),
            JAVA_LONG.withName("ai_connect_len"),
            CStruct.PTR.withName("ai_connect"),
            CStruct.PTR.withName("ai_next"));

    private static final long FLAGS = CStruct.offset(LAYOUT, "ai_flags");
    private static final long FAMILY = CStruct.offset(LAYOUT, "ai_family");
    private static final long QP_TYPE = CStruct.offset(LAYOUT, "ai_qp_type");
    private static final long PORT_SPACE = CStruct.offset(LAYOUT, "ai_port_space");
    private static final long SRC_LEN = CStruct.offset(LAYOUT, "ai_src_len");
    private static final long DST_LEN = CStruct.offset(LAYOUT, "ai_dst_len");
    private static final long SRC_ADDR = CStruct.offset(LAYOUT, "ai_src_addr");
    private static final long DST_ADDR = CStruct.offset(LAYOUT, "ai_dst_addr");
    private static final long SRC_CANONNAME = CStruct.offset(LAYOUT, "ai_src_canonname");
    private static final long DST_CANONNAME = CStruct.offset(LAYOUT, "ai_dst_canonname");
    private static final long ROUTE_LEN = CStruct.offset(LAYOUT, "ai_route_len");
    private static final long ROUTE = CStruct.offset(LAYOUT, "ai_route");
    private static final long CONNECT_LEN = CStruct.offset(LAYOUT, "ai_connect_len");
    private static final long CONNECT = CStruct.offset(LAYOUT, "ai_connect");
    private static final long NEXT = CStruct.offset(LAYOUT, "ai_next");

    private RdmaAddrinfo() {}

    /** Gives a pointer from C the struct's size. */
    public static MemorySegment at(long pointer) {
        return MemorySegment.ofAddress(pointer).reinterpret(LAYOUT.byteSize());
    }

    public static int flags(MemorySegment info) {
        return info.get(JAVA_INT, FLAGS);
    }

    public static void flags(MemorySegment info, int value) {
        info.set(JAVA_INT, FLAGS, value);
    }

    public static int family(MemorySegment info) {
        return info.get(JAVA_INT, FAMILY);
    }

    public static void family(MemorySegment info, int value) {
        info.set(JAVA_INT, FAMILY, value);
    }

    public static int qpType(MemorySegment info) {
        return info.get(JAVA_INT, QP_TYPE);
    }

    public static void qpType(MemorySegment info, int value) {
        info.set(JAVA_INT, QP_TYPE, value);
    }

    public static int portSpace(MemorySegment info) {
        return info.get(JAVA_INT, PORT_SPACE);
    }

    public static void portSpace(MemorySegment info, int value) {
        info.set(JAVA_INT, PORT_SPACE, value);
    }

    /** {@code ai_src_addr} with its length; empty if it has none. */
    public static MemorySegment sourceAddress(MemorySegment info) {
        return sized(info.get(CStruct.PTR, SRC_ADDR), info.get(JAVA_INT, SRC_LEN));
    }

    public static void sourceAddress(MemorySegment info, MemorySegment sockaddr) {
        info.set(CStruct.PTR, SRC_ADDR, sockaddr.address());
        info.set(JAVA_INT, SRC_LEN, (int) sockaddr.byteSize());
    }

    /** {@code ai_dst_addr} with its length; empty if it has none. */
    public static MemorySegment destinationAddress(MemorySegment info) {
        return sized(info.get(CStruct.PTR, DST_ADDR), info.get(JAVA_INT, DST_LEN));
    }

    public static @Nullable String sourceName(MemorySegment info) {
        return string(info.get(CStruct.PTR, SRC_CANONNAME));
    }

    public static @Nullable String destinationName(MemorySegment info) {
        return string(info.get(CStruct.PTR, DST_CANONNAME));
    }

    /** {@code ai_route}, copied. */
    public static byte[] route(MemorySegment info) {
        return sized(info.get(CStruct.PTR, ROUTE), info.get(JAVA_LONG, ROUTE_LEN))
                .toArray(JAVA_BYTE);
    }

    /** {@code ai_connect}, copied. */
    public static byte[] connect(MemorySegment info) {
        return sized(info.get(CStruct.PTR, CONNECT), info.get(JAVA_LONG, CONNECT_LEN))
                .toArray(JAVA_BYTE);
    }

    /** {@code ai_next}: NULL at the end. */
    public static long next(MemorySegment info) {
        return info.get(CStruct.PTR, NEXT);
    }

    private static MemorySegment sized(long pointer, long lengthBytes) {
        return pointer == 0
                ? MemorySegment.NULL
                : MemorySegment.ofAddress(pointer).reinterpret(lengthBytes);
    }

    private static @Nullable String string(long pointer) {
        return pointer == 0
                ? null
                : MemorySegment.ofAddress(pointer).reinterpret(Long.MAX_VALUE).getString(0);
    }
}
