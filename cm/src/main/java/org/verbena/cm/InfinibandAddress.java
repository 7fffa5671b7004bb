package org.verbena.cm;

import java.io.NotSerializableException;
import java.io.ObjectOutputStream;
import java.io.Serial;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.SocketAddress;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.verbs.address.Gid;

/**
 * An InfiniBand address: a GID in place of an IP address, and a service id in place of a port. For {@link
 * PortSpace#IB}; RoCE and iWARP have IP addresses only.
 *
 * <p>Source: infiniband/ib.h, rdma_create_id(3)
 */
public final class InfinibandAddress extends SocketAddress {
    @Serial
    private static final long serialVersionUID = 1L;

    /** Membership in the default partition. */
    public static final int DEFAULT_PARTITION_KEY = 0xffff;

    private static final int PORT_SPACE_SHIFT = 16;

    private final transient Gid gid;
    private final int partitionKey;
    private final long serviceId;
    private final long serviceIdMask;

    /**
     * Makes an address.
     *
     * @param gid of the port; zero for any when listening
     * @param partitionKey of the partition, 0 to 0xffff; 0xffff for the default one
     * @param serviceId the service to listen on or connect to; {@link #ofPort} creates those of TCP and UDP ports
     * @param serviceIdMask the significant bits of the service id; -1 for all
     */
    public InfinibandAddress(Gid gid, int partitionKey, long serviceId, long serviceIdMask) {
        if (partitionKey < 0 || partitionKey > 0xffff) {
            throw new IllegalArgumentException("partitionKey is " + partitionKey + ", but must be 0 to 65535");
        }
        this.gid = gid;
        this.partitionKey = partitionKey;
        this.serviceId = serviceId;
        this.serviceIdMask = serviceIdMask;
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

    /**
     * The port's GID.
     *
     * @return zero for any
     */
    public Gid gid() {
        return gid;
    }

    /**
     * The partition.
     *
     * @return 0 to 0xffff
     */
    public int partitionKey() {
        return partitionKey;
    }

    /**
     * The service.
     *
     * @return its id
     */
    public long serviceId() {
        return serviceId;
    }

    /**
     * The significant bits of the service id.
     *
     * @return -1 for all
     */
    public long serviceIdMask() {
        return serviceIdMask;
    }

    MemorySegment write(Arena arena) {
        return Sockaddr.writeIb(arena, gid.toBytes(), partitionKey, 0, serviceId, serviceIdMask, 0);
    }

    /** Null if it is another kind of address. */
    static @Nullable InfinibandAddress read(MemorySegment sockaddr) {
        return Sockaddr.family(sockaddr) != Sockaddr.AF_IB
                ? null
                : new InfinibandAddress(
                        Gid.of(Sockaddr.ibGid(sockaddr)),
                        Sockaddr.ibPartitionKey(sockaddr),
                        Sockaddr.ibServiceId(sockaddr),
                        Sockaddr.ibServiceIdMask(sockaddr));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof InfinibandAddress that
                && gid.equals(that.gid)
                && partitionKey == that.partitionKey
                && serviceId == that.serviceId
                && serviceIdMask == that.serviceIdMask;
    }

    @Override
    public int hashCode() {
        return Objects.hash(gid, partitionKey, serviceId, serviceIdMask);
    }

    @Override
    public String toString() {
        return "InfinibandAddress[gid=" + gid + ", partitionKey=" + partitionKey + ", serviceId=" + serviceId
                + ", serviceIdMask=" + serviceIdMask + "]";
    }

    @Serial
    private void writeObject(ObjectOutputStream out) throws NotSerializableException {
        throw new NotSerializableException(InfinibandAddress.class.getName());
    }
}
