package org.verbena.cm;

import java.lang.foreign.MemorySegment;
import org.verbena.cm.ffm.RdmaCmId;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.verbs.Context;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.ffm.CStruct;

/**
 * The limits of private data in messages of the connection manager. Beyond them the kernel only reports EINVAL.
 *
 * <p>InfiniBand and RoCE: the fields of IBTA's messages, less the 36 bytes of the IP header that RDMA_PS_TCP and
 * RDMA_PS_UDP requests carry when they are addressed by IP. iWARP: an MPA frame of at most 255 bytes, as the kernel
 * counts them in one byte, less the 4 bytes of enhanced MPA.
 */
enum PrivateDataLimit {
    CONNECT("rdma_connect", 92 - 36, 92, 216 - 36, 216),
    ACCEPT("rdma_accept", 196, 196, 136, 136),
    REJECT("rdma_reject", 148, 148, 136, 136);

    /** Every message of iWARP. */
    static final int IWARP_BYTES = 251;

    private final String function;
    private final int connectedBytes;
    private final int connectedIbAddressBytes;
    private final int datagramBytes;
    private final int datagramIbAddressBytes;

    PrivateDataLimit(
            String function,
            int connectedBytes,
            int connectedIbAddressBytes,
            int datagramBytes,
            int datagramIbAddressBytes) {
        this.function = function;
        this.connectedBytes = connectedBytes;
        this.connectedIbAddressBytes = connectedIbAddressBytes;
        this.datagramBytes = datagramBytes;
        this.datagramIbAddressBytes = datagramIbAddressBytes;
    }

    /** The limit for an id's transport and kind. */
    int bytes(boolean iwarp, boolean datagram, boolean ibAddress) {
        if (iwarp) {
            return IWARP_BYTES;
        }
        if (datagram) {
            return ibAddress ? datagramIbAddressBytes : datagramBytes;
        }
        return ibAddress ? connectedIbAddressBytes : connectedBytes;
    }

    /** Refuses what does not fit, for an id with a device. Under its channel's lock. */
    void check(MemorySegment id, boolean datagram, int lengthBytes) {
        Context device = Cm.deviceAt(id.get(CStruct.PTR, RdmaCmId.VERBS));
        check(
                lengthBytes,
                device != null && device.device().transportType() == TransportType.IWARP,
                datagram,
                Sockaddr.family(Sockaddr.local(id)) == Sockaddr.AF_IB);
    }

    /** Refuses what does not fit. */
    void check(int lengthBytes, boolean iwarp, boolean datagram, boolean ibAddress) {
        int limit = bytes(iwarp, datagram, ibAddress);
        if (lengthBytes > limit) {
            throw new IllegalArgumentException(function + " carries at most " + limit + " bytes of private data on "
                    + (iwarp ? "iWARP" : "InfiniBand and RoCE") + (datagram ? " for datagrams" : "") + ", not "
                    + lengthBytes);
        }
    }
}
