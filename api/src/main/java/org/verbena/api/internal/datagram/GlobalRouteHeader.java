package org.verbena.api.internal.datagram;

import io.netty.buffer.ByteBuf;

/**
 * Reads the 40 bytes that a device writes in front of a datagram: the packet's IPv6 header, which InfiniBand calls
 * global route header, or, from RoCEv2 over IPv4, the IPv4 header in the last 20 bytes behind 20 that have no meaning.
 * Reused; its content cannot be trusted, and reading it allocates nothing.
 *
 * <p>Source: InfiniBand Architecture, annex A17.4.5.2; RFC 791, 3.1; RFC 8200, 3
 */
final class GlobalRouteHeader {
    static final int BYTES = 40;

    private static final int IPV4_AT = 20;
    private static final int IPV4_WITHOUT_OPTIONS = 0x45;
    private static final int IPV4_SOURCE = 12;
    private static final int IPV4_DESTINATION = 16;
    private static final int IPV6_SOURCE = 8;
    private static final int IPV6_DESTINATION = 24;

    /** How an IPv4 address begins as a GID: {@code ::ffff:a.b.c.d}. */
    private static final long MAPPED = 0xffff_0000_0000L;

    private long sourceHigh;
    private long sourceLow;
    private long destinationHigh;
    private long destinationLow;

    /**
     * Reads a header.
     *
     * @param buffer begins with it
     * @return false if it is neither
     */
    boolean read(ByteBuf buffer) {
        boolean mayBeIpv6 = buffer.getUnsignedByte(0) >> 4 == 6;
        if (buffer.getUnsignedByte(IPV4_AT) == IPV4_WITHOUT_OPTIONS && (!mayBeIpv6 || isIpv4(buffer))) {
            sourceHigh = 0;
            sourceLow = MAPPED | buffer.getUnsignedInt(IPV4_AT + IPV4_SOURCE);
            destinationHigh = 0;
            destinationLow = MAPPED | buffer.getUnsignedInt(IPV4_AT + IPV4_DESTINATION);
            return true;
        }
        if (mayBeIpv6) {
            sourceHigh = buffer.getLong(IPV6_SOURCE);
            sourceLow = buffer.getLong(IPV6_SOURCE + Long.BYTES);
            destinationHigh = buffer.getLong(IPV6_DESTINATION);
            destinationLow = buffer.getLong(IPV6_DESTINATION + Long.BYTES);
        }
        return mayBeIpv6;
    }

    /**
     * The first 20 bytes may look like IPv6 by chance; then the checksum decides, which soft RoCE leaves out on its own
     * host.
     */
    private static boolean isIpv4(ByteBuf buffer) {
        int sum = 0;
        for (int i = IPV4_AT; i < BYTES; i += Short.BYTES) {
            sum += buffer.getUnsignedShort(i);
        }
        sum = (sum & 0xffff) + (sum >>> 16);
        return ((sum & 0xffff) + (sum >>> 16)) == 0xffff;
    }

    long sourceHigh() {
        return sourceHigh;
    }

    long sourceLow() {
        return sourceLow;
    }

    long destinationHigh() {
        return destinationHigh;
    }

    long destinationLow() {
        return destinationLow;
    }

    /** There is no header: only the LID is known. */
    void clear() {
        sourceHigh = 0;
        sourceLow = 0;
        destinationHigh = 0;
        destinationLow = 0;
    }
}
