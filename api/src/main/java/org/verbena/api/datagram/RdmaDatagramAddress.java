package org.verbena.api.datagram;

import java.io.Serial;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.verbena.transport.DatagramPeer;

/**
 * The address of a queue pair, as sender and recipient of datagrams: RDMA's packets name the queue pair that sent them
 * and no port. As the recipient of a datagram it needs no look-up.
 *
 * <p>As an {@link InetSocketAddress} it has the host's IP address, and the port at which this side has looked the queue
 * pair up, or 0. {@link InetSocketAddress#equals} compares only these two, so two queue pairs of a host may be equal:
 * use {@link #peer()} as a key.
 */
public final class RdmaDatagramAddress extends InetSocketAddress {
    @Serial
    private static final long serialVersionUID = 1L;

    /** The queue pair. */
    private final DatagramPeer peer;

    RdmaDatagramAddress(DatagramPeer peer, int port) {
        super(peer.address(), port);
        this.peer = peer;
    }

    /**
     * The address of a queue pair.
     *
     * @param peer the queue pair
     * @return its address, with port 0
     */
    public static RdmaDatagramAddress of(DatagramPeer peer) {
        return new RdmaDatagramAddress(peer, 0);
    }

    /**
     * The address of a queue pair of a host on RoCE.
     *
     * @param host its IP address
     * @param queuePairNumber 0 to 0xffffff
     * @return its address, with port 0
     */
    public static RdmaDatagramAddress of(InetAddress host, int queuePairNumber) {
        return of(DatagramPeer.of(host, queuePairNumber));
    }

    /**
     * The queue pair.
     *
     * @return to be used as a key
     */
    public DatagramPeer peer() {
        return peer;
    }

    /**
     * The number of the queue pair.
     *
     * @return 0 to 0xffffff
     */
    public int queuePairNumber() {
        return peer.queuePairNumber();
    }
}
