package org.verbena.cm.ffm;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.CStruct;

/**
 * {@code struct sockaddr} and its kinds for IPv4, IPv6 and InfiniBand. Source: sockaddr(3type), ip(7), ipv6(7),
 * infiniband/ib.h
 */
public final class Sockaddr {
    public static final int AF_UNSPEC = 0;
    public static final int AF_INET = 2;
    public static final int AF_INET6 = 10;
    public static final int AF_IB = 27;

    private static final ValueLayout.OfShort BE16 = ValueLayout.JAVA_SHORT.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfInt BE32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfLong BE64 = ValueLayout.JAVA_LONG.withOrder(ByteOrder.BIG_ENDIAN);

    /** {@code struct sockaddr_in}. */
    public static final StructLayout IN = CStruct.struct(
            "sockaddr_in",
            ValueLayout.JAVA_SHORT.withName("sin_family"),
            BE16.withName("sin_port"),
            CStruct.array(4, JAVA_BYTE).withName("sin_addr"),
            CStruct.array(8, JAVA_BYTE).withName("sin_zero"));

    /** {@code struct sockaddr_in6}. */
    public static final StructLayout IN6 = CStruct.struct(
            "sockaddr_in6",
            ValueLayout.JAVA_SHORT.withName("sin6_family"),
            BE16.withName("sin6_port"),
            BE32.withName("sin6_flowinfo"),
            CStruct.array(16, JAVA_BYTE).withName("sin6_addr"),
            ValueLayout.JAVA_INT.withName("sin6_scope_id"));

    /** {@code struct sockaddr_ib}. */
    public static final StructLayout IB = CStruct.struct(
            "sockaddr_ib",
            ValueLayout.JAVA_SHORT.withName("sib_family"),
            BE16.withName("sib_pkey"),
            BE32.withName("sib_flowinfo"),
            CStruct.array(16, JAVA_BYTE).withName("sib_addr"),
            BE64.withName("sib_sid"),
            BE64.withName("sib_sid_mask"),
            ValueLayout.JAVA_LONG.withName("sib_scope_id"));

    /** {@code sizeof(struct sockaddr_storage)}: room for any address. */
    public static final long STORAGE_BYTES = 128;

    private static final long FAMILY = 0;
    private static final long SIN_PORT = CStruct.offset(IN, "sin_port");
    private static final long SIN_ADDR = CStruct.offset(IN, "sin_addr");
    private static final long SIN6_PORT = CStruct.offset(IN6, "sin6_port");
    private static final long SIN6_ADDR = CStruct.offset(IN6, "sin6_addr");
    private static final long SIN6_SCOPE_ID = CStruct.offset(IN6, "sin6_scope_id");
    private static final long SIB_PKEY = CStruct.offset(IB, "sib_pkey");
    private static final long SIB_FLOWINFO = CStruct.offset(IB, "sib_flowinfo");
    private static final long SIB_ADDR = CStruct.offset(IB, "sib_addr");
    private static final long SIB_SID = CStruct.offset(IB, "sib_sid");
    private static final long SIB_SID_MASK = CStruct.offset(IB, "sib_sid_mask");
    private static final long SIB_SCOPE_ID = CStruct.offset(IB, "sib_scope_id");

    private Sockaddr() {}

    /**
     * Writes an IP address.
     *
     * @param arena owns the result
     * @param address resolved
     * @return a {@code sockaddr_in} or {@code sockaddr_in6}
     * @throws IllegalArgumentException if the address is not resolved
     */
    public static MemorySegment write(Arena arena, InetSocketAddress address) {
        if (address.isUnresolved()) {
            throw new IllegalArgumentException(address + " is not resolved: look its host name up first");
        }
        byte[] bytes = address.getAddress().getAddress();
        if (address.getAddress() instanceof Inet6Address ipv6) {
            MemorySegment segment = arena.allocate(IN6);
            segment.set(ValueLayout.JAVA_SHORT, FAMILY, (short) AF_INET6);
            segment.set(BE16, SIN6_PORT, (short) address.getPort());
            MemorySegment.copy(bytes, 0, segment, JAVA_BYTE, SIN6_ADDR, bytes.length);
            segment.set(ValueLayout.JAVA_INT, SIN6_SCOPE_ID, ipv6.getScopeId());
            return segment;
        }
        MemorySegment segment = arena.allocate(IN);
        segment.set(ValueLayout.JAVA_SHORT, FAMILY, (short) AF_INET);
        segment.set(BE16, SIN_PORT, (short) address.getPort());
        MemorySegment.copy(bytes, 0, segment, JAVA_BYTE, SIN_ADDR, bytes.length);
        return segment;
    }

    /**
     * Writes an InfiniBand address.
     *
     * @param arena owns the result
     * @param gid 16 bytes
     * @param partitionKey 0xffff for the default partition
     * @param flowInfo flow label and traffic class
     * @param serviceId what is listened on or connected to
     * @param serviceIdMask which bits of it count
     * @param scopeId zone
     * @return a {@code sockaddr_ib}
     */
    public static MemorySegment writeIb(
            Arena arena, byte[] gid, int partitionKey, int flowInfo, long serviceId, long serviceIdMask, long scopeId) {
        MemorySegment segment = arena.allocate(IB);
        segment.set(ValueLayout.JAVA_SHORT, FAMILY, (short) AF_IB);
        segment.set(BE16, SIB_PKEY, (short) partitionKey);
        segment.set(BE32, SIB_FLOWINFO, flowInfo);
        MemorySegment.copy(gid, 0, segment, JAVA_BYTE, SIB_ADDR, 16);
        segment.set(BE64, SIB_SID, serviceId);
        segment.set(BE64, SIB_SID_MASK, serviceIdMask);
        segment.set(ValueLayout.JAVA_LONG, SIB_SCOPE_ID, scopeId);
        return segment;
    }

    /**
     * What kind of address it is.
     *
     * @param sockaddr any kind
     * @return {@link #AF_INET} ...
     */
    public static int family(MemorySegment sockaddr) {
        return Short.toUnsignedInt(sockaddr.get(ValueLayout.JAVA_SHORT, FAMILY));
    }

    /**
     * Reads an IP address.
     *
     * @param sockaddr any kind, with as much room as its kind takes
     * @return null if it is of another kind, or not set
     */
    public static @Nullable InetSocketAddress read(MemorySegment sockaddr) {
        try {
            return switch (family(sockaddr)) {
                case AF_INET ->
                    new InetSocketAddress(
                            InetAddress.getByAddress(
                                    sockaddr.asSlice(SIN_ADDR, 4).toArray(JAVA_BYTE)),
                            Short.toUnsignedInt(sockaddr.get(BE16, SIN_PORT)));
                case AF_INET6 -> {
                    byte[] bytes = sockaddr.asSlice(SIN6_ADDR, 16).toArray(JAVA_BYTE);
                    int scope = sockaddr.get(ValueLayout.JAVA_INT, SIN6_SCOPE_ID);
                    // getByAddress(null, bytes, scope) keeps an IPv4-mapped address IPv6, as the kernel has it.
                    yield new InetSocketAddress(
                            Inet6Address.getByAddress(null, bytes, scope == 0 ? -1 : scope),
                            Short.toUnsignedInt(sockaddr.get(BE16, SIN6_PORT)));
                }
                default -> null;
            };
        } catch (UnknownHostException wrongLength) {
            throw new AssertionError(wrongLength);
        }
    }

    /**
     * How much room an address takes.
     *
     * @param family {@link #AF_INET} ...
     * @return bytes; 0 for a family that is not known here
     */
    public static long sizeBytes(int family) {
        return switch (family) {
            case AF_INET -> IN.byteSize();
            case AF_INET6 -> IN6.byteSize();
            case AF_IB -> IB.byteSize();
            default -> 0;
        };
    }

    /**
     * Reads an InfiniBand address's GID.
     *
     * @param sockaddr a {@code sockaddr_ib}
     * @return 16 bytes
     */
    public static byte[] ibGid(MemorySegment sockaddr) {
        return sockaddr.asSlice(SIB_ADDR, 16).toArray(JAVA_BYTE);
    }

    /**
     * Reads an InfiniBand address's service id.
     *
     * @param sockaddr a {@code sockaddr_ib}
     * @return {@code sib_sid}
     */
    public static long ibServiceId(MemorySegment sockaddr) {
        return sockaddr.get(BE64, SIB_SID);
    }

    /**
     * Reads an InfiniBand address's partition key.
     *
     * @param sockaddr a {@code sockaddr_ib}
     * @return {@code sib_pkey}
     */
    public static int ibPartitionKey(MemorySegment sockaddr) {
        return Short.toUnsignedInt(sockaddr.get(BE16, SIB_PKEY));
    }

    /**
     * Reads which bits of an InfiniBand address's service id count.
     *
     * @param sockaddr a {@code sockaddr_ib}
     * @return {@code sib_sid_mask}
     */
    public static long ibServiceIdMask(MemorySegment sockaddr) {
        return sockaddr.get(BE64, SIB_SID_MASK);
    }
}
