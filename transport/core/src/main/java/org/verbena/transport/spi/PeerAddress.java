package org.verbena.transport.spi;

import java.net.InetAddress;
import java.nio.ByteBuffer;

/**
 * The unit in which peers are counted: an IPv4 address, or the /64 network from which an IPv6 host may pick its
 * addresses.
 */
public final class PeerAddress {
    /** Where IPv4 addresses lie among the networks: a prefix that no IPv6 host has. */
    private static final long IPV4 = 0xffffL << 32;

    /** For a peer whose address is unknown: the prefix is one of multicast addresses, which no peer has. */
    public static final long UNKNOWN = -1;

    private PeerAddress() {}

    /**
     * The number that all of a peer's addresses have in common.
     *
     * @param address of a peer
     * @return equal for addresses that are counted together
     */
    public static long networkOf(InetAddress address) {
        ByteBuffer bytes = ByteBuffer.wrap(address.getAddress());
        return bytes.remaining() == Integer.BYTES ? IPV4 | (bytes.getInt() & 0xffffffffL) : bytes.getLong();
    }
}
