package org.verbena.cm.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
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

    /** {@code sizeof(struct sockaddr_storage)}: room for any address. */
    public static final long STORAGE_BYTES = 128;

    /** The same place in every kind. */
    private static final long FAMILY = SockaddrIn.SIN_FAMILY;

    private Sockaddr() {}

    /**
     * The address of an id's own end.
     *
     * @param id a {@code rdma_cm_id}
     * @return any kind of address
     */
    public static MemorySegment local(MemorySegment id) {
        return id.asSlice(RdmaCmId.ROUTE + RdmaRoute.ADDR + RdmaAddr.SRC_STORAGE, STORAGE_BYTES);
    }

    /**
     * The address of an id's peer.
     *
     * @param id a {@code rdma_cm_id}
     * @return any kind of address
     */
    public static MemorySegment remote(MemorySegment id) {
        return id.asSlice(RdmaCmId.ROUTE + RdmaRoute.ADDR + RdmaAddr.DST_STORAGE, STORAGE_BYTES);
    }

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
            MemorySegment segment = arena.allocate(SockaddrIn6.LAYOUT);
            segment.set(CStruct.U16, FAMILY, (short) AF_INET6);
            segment.set(CStruct.BE16, SockaddrIn6.SIN6_PORT, (short) address.getPort());
            MemorySegment.copy(bytes, 0, segment, CStruct.U8, SockaddrIn6.SIN6_ADDR, bytes.length);
            segment.set(CStruct.U32, SockaddrIn6.SIN6_SCOPE_ID, ipv6.getScopeId());
            return segment;
        }
        MemorySegment segment = arena.allocate(SockaddrIn.LAYOUT);
        segment.set(CStruct.U16, FAMILY, (short) AF_INET);
        segment.set(CStruct.BE16, SockaddrIn.SIN_PORT, (short) address.getPort());
        MemorySegment.copy(bytes, 0, segment, CStruct.U8, SockaddrIn.SIN_ADDR, bytes.length);
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
        MemorySegment segment = arena.allocate(SockaddrIb.LAYOUT);
        segment.set(CStruct.U16, FAMILY, (short) AF_IB);
        segment.set(CStruct.BE16, SockaddrIb.SIB_PKEY, (short) partitionKey);
        segment.set(CStruct.BE32, SockaddrIb.SIB_FLOWINFO, flowInfo);
        MemorySegment.copy(gid, 0, segment, CStruct.U8, SockaddrIb.SIB_ADDR, 16);
        segment.set(CStruct.BE64, SockaddrIb.SIB_SID, serviceId);
        segment.set(CStruct.BE64, SockaddrIb.SIB_SID_MASK, serviceIdMask);
        segment.set(CStruct.U64, SockaddrIb.SIB_SCOPE_ID, scopeId);
        return segment;
    }

    /**
     * What kind of address it is.
     *
     * @param sockaddr any kind
     * @return {@link #AF_INET} ...
     */
    public static int family(MemorySegment sockaddr) {
        return Short.toUnsignedInt(sockaddr.get(CStruct.U16, FAMILY));
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
                                    sockaddr.asSlice(SockaddrIn.SIN_ADDR, 4).toArray(CStruct.U8)),
                            Short.toUnsignedInt(sockaddr.get(CStruct.BE16, SockaddrIn.SIN_PORT)));
                case AF_INET6 -> {
                    byte[] bytes = sockaddr.asSlice(SockaddrIn6.SIN6_ADDR, 16).toArray(CStruct.U8);
                    int scope = sockaddr.get(CStruct.U32, SockaddrIn6.SIN6_SCOPE_ID);
                    // getByAddress(null, bytes, scope) keeps an IPv4-mapped address IPv6, as the kernel has it.
                    yield new InetSocketAddress(
                            Inet6Address.getByAddress(null, bytes, scope == 0 ? -1 : scope),
                            Short.toUnsignedInt(sockaddr.get(CStruct.BE16, SockaddrIn6.SIN6_PORT)));
                }
                default -> null;
            };
        } catch (UnknownHostException wrongLength) {
            throw new AssertionError(wrongLength);
        }
    }

    /**
     * Reads an InfiniBand address's GID.
     *
     * @param sockaddr a {@code sockaddr_ib}
     * @return 16 bytes
     */
    public static byte[] ibGid(MemorySegment sockaddr) {
        return sockaddr.asSlice(SockaddrIb.SIB_ADDR, 16).toArray(CStruct.U8);
    }

    /**
     * Reads an InfiniBand address's service id.
     *
     * @param sockaddr a {@code sockaddr_ib}
     * @return {@code sib_sid}
     */
    public static long ibServiceId(MemorySegment sockaddr) {
        return sockaddr.get(CStruct.BE64, SockaddrIb.SIB_SID);
    }

    /**
     * Reads an InfiniBand address's partition key.
     *
     * @param sockaddr a {@code sockaddr_ib}
     * @return {@code sib_pkey}
     */
    public static int ibPartitionKey(MemorySegment sockaddr) {
        return Short.toUnsignedInt(sockaddr.get(CStruct.BE16, SockaddrIb.SIB_PKEY));
    }

    /**
     * Reads which bits of an InfiniBand address's service id count.
     *
     * @param sockaddr a {@code sockaddr_ib}
     * @return {@code sib_sid_mask}
     */
    public static long ibServiceIdMask(MemorySegment sockaddr) {
        return sockaddr.get(CStruct.BE64, SockaddrIb.SIB_SID_MASK);
    }
}
