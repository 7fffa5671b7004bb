package org.verbena.transport;

import java.io.Serializable;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;

/**
 * A queue pair that datagrams come from or go to. It takes the place of a UDP port, which RDMA packets do not carry,
 * and tells the queue pairs of a host apart.
 *
 * @param gidHigh the upper 64 bits of its port's GID, in host order; 0 with {@code gidLow} if only the LID is known
 * @param gidLow the lower 64 bits
 * @param queuePairNumber 24 bits; {@value #MULTICAST} for a multicast group
 * @param lid of its port on InfiniBand, 16 bits; 0 on RoCE
 * @param serviceLevel of the path to it, 0 to 15
 */
public record DatagramPeer(long gidHigh, long gidLow, int queuePairNumber, int lid, int serviceLevel)
        implements Serializable {

    /** The queue pair number of datagrams to a multicast group. */
    public static final int MULTICAST = 0xffffff;

    /** Checks ranges. */
    public DatagramPeer {
        check("queuePairNumber", queuePairNumber, MULTICAST);
        check("lid", lid, 0xffff);
        check("serviceLevel", serviceLevel, 15);
    }

    private static void check(String name, int value, int max) {
        if (value < 0 || value > max) {
            throw new IllegalArgumentException(name + " " + value + " is not within 0 to " + max);
        }
    }

    /**
     * A queue pair of a host on RoCE, whose GIDs are its IP addresses.
     *
     * @param host its IP address
     * @param queuePairNumber 0 to 0xffffff
     * @return the peer
     */
    public static DatagramPeer of(InetAddress host, int queuePairNumber) {
        ByteBuffer gid = ByteBuffer.allocate(16);
        byte[] bytes = host.getAddress();
        if (bytes.length == 4) {
            gid.putShort(10, (short) 0xffff);
        }
        gid.put(16 - bytes.length, bytes);
        return new DatagramPeer(gid.getLong(0), gid.getLong(8), queuePairNumber, 0, 0);
    }

    /**
     * The address that the GID stands for.
     *
     * @return an IPv4 address if it is a mapped one, else an IPv6 address
     */
    public InetAddress address() {
        try {
            return InetAddress.getByAddress(
                    ByteBuffer.allocate(16).putLong(gidHigh).putLong(gidLow).array());
        } catch (UnknownHostException impossible) {
            throw new IllegalStateException("16 bytes are an address", impossible);
        }
    }

    /**
     * Whether it is the same queue pair on the same port, whatever the path to it.
     *
     * @param other another
     * @return whether GID, LID and number are the same
     */
    public boolean isSameQueuePair(DatagramPeer other) {
        return gidHigh == other.gidHigh
                && gidLow == other.gidLow
                && queuePairNumber == other.queuePairNumber
                && lid == other.lid;
    }

    @Override
    public String toString() {
        return address().getHostAddress() + ", queue pair " + queuePairNumber
                + (lid == 0 ? "" : ", LID " + lid + ", service level " + serviceLevel);
    }
}
