package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.verbs.address.Gid;

/**
 * An InfiniBand address: a GID in place of an IP address, and a service id in place of a port. For {@link
 * PortSpace#IB}; RoCE and iWARP have IP addresses only.
 *
 * @param gid of the port; zero for any when listening
 * @param partitionKey of the partition, 0 to 0xffff; 0xffff for the default one
 * @param serviceId the service to listen on or connect to; {@link #ofPort} creates those of TCP and UDP ports
 * @param serviceIdMask the significant bits of the service id; -1 for all <p>Source: infiniband/ib.h, rdma_create_id(3)
 */
public record InfinibandAddress(Gid gid, int partitionKey, long serviceId, long serviceIdMask) {
    /** Membership in the default partition. */
    public static final int DEFAULT_PARTITION_KEY = 0xffff;

    private static final int PORT_SPACE_SHIFT = 16;

    /** Checks the ranges. */
    public InfinibandAddress {
        if (partitionKey < 0 || partitionKey > 0xffff) {
            throw new IllegalArgumentException("partitionKey is " + partitionKey + ", but must be 0 to 65535");
        }
    }

    /**
     * The address of a port number.
     *
     * @param gid of the port; zero for any when listening
     * @param portSpace whose numbers
     * @param port 0 to 65535
     * @return in the default partition
     */
    public static InfinibandAddress ofPort(Gid gid, PortSpace portSpace, int port) {
        if (port < 0 || port > 0xffff) {
            throw new IllegalArgumentException("port is " + port + ", but must be 0 to 65535");
        }
        return new InfinibandAddress(
                gid, DEFAULT_PARTITION_KEY, (long) portSpace.value() << PORT_SPACE_SHIFT | port, -1);
    }

    MemorySegment write(Arena arena) {
        return Sockaddr.writeIb(arena, gid.toBytes(), partitionKey, 0, serviceId, serviceIdMask, 0);
    }

    /** Null if it is another kind of address. */
    static @org.jspecify.annotations.Nullable InfinibandAddress read(MemorySegment sockaddr) {
        return Sockaddr.family(sockaddr) != Sockaddr.AF_IB
                ? null
                : new InfinibandAddress(
                        Gid.of(Sockaddr.ibGid(sockaddr)),
                        Sockaddr.ibPartitionKey(sockaddr),
                        Sockaddr.ibServiceId(sockaddr),
                        Sockaddr.ibServiceIdMask(sockaddr));
    }
}
