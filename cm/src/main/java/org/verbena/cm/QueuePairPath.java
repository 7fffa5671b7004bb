package org.verbena.cm;

import java.util.concurrent.ThreadLocalRandom;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.Context;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.address.GlobalRoute;
import org.verbena.verbs.device.LinkLayer;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.device.PortAttributes;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;

/**
 * The local end of a path for queue pairs that are connected without a connection manager, and the steps that connect
 * them: RESET to INIT and, after the exchange of addresses, to RTR and RTS. For RC, UC, UD and the two kinds of XRC;
 * iWARP needs the connection manager.
 *
 * @param port of the device, from 1
 * @param gidIndex the index of the source GID; {@link #NO_GID} for routes by LID, which only InfiniBand has
 * @param mtu packet size, the same on both sides and at most the ports' active MTU
 * @param serviceLevel 0 to 15
 * @param hopLimit the largest number of hops, 1 within a subnet <p>Source: ibv_modify_qp(3)
 */
public record QueuePairPath(int port, int gidIndex, Mtu mtu, int serviceLevel, int hopLimit) {
    /** For {@link #gidIndex}: route by LID. */
    public static final int NO_GID = -1;

    /** The value of rdma-core's ping-pong programs: 67 ms without an acknowledgement, then a retry. */
    private static final int TIMEOUT_EXPONENT = 14;

    /** Without it one lost packet ends the connection. */
    private static final int RETRIES = 7;

    /** C's code for 0.64 ms between a receiver-not-ready answer and the next try. */
    private static final int RNR_TIMER = 12;

    private static final int MAX_24_BITS = 0xffffff;

    /**
     * A path within a subnet.
     *
     * @param port of the device, from 1
     * @param gidIndex the index of the source GID, or {@link #NO_GID}
     * @param mtu packet size
     * @return service level 0, one hop
     */
    public static QueuePairPath of(int port, int gidIndex, Mtu mtu) {
        return new QueuePairPath(port, gidIndex, mtu, 0, 1);
    }

    /**
     * The address of a queue pair to send to the peer; its packet sequence number is random.
     *
     * @param queuePair on this path's device
     * @return its address
     * @throws IllegalArgumentException on Ethernet without a GID index
     */
    public QueuePairAddress addressOf(QueuePair queuePair) {
        Context context = queuePair.domain().context();
        PortAttributes attributes = context.queryPort(port);
        if (gidIndex < 0 && attributes.linkLayer() == LinkLayer.ETHERNET) {
            throw new IllegalArgumentException(
                    "port " + port + " of " + context.device().name()
                            + " is on Ethernet, where routes go by GID: give a GID index, one that `verbena devices` lists");
        }
        Gid gid = gidIndex < 0 ? Gid.ZERO : context.queryGid(port, gidIndex).gid();
        return new QueuePairAddress(
                attributes.lid(),
                queuePair.number(),
                ThreadLocalRandom.current().nextInt(MAX_24_BITS + 1),
                gid);
    }

    /**
     * The address vector of a peer on this path.
     *
     * @param peer its address
     * @return for a connection or an address handle
     */
    public AddressVector vectorTo(QueuePairAddress peer) {
        GlobalRoute route = peer.gid().interfaceId() == 0 || gidIndex < 0
                ? null
                : new GlobalRoute(peer.gid(), gidIndex, hopLimit, 0, 0);
        return new AddressVector(port, route, peer.lid(), serviceLevel, 0, 0);
    }

    /**
     * RESET to INIT: receives may be posted then.
     *
     * @param queuePair RC, UC or XRC
     * @param peerMay any of REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC; empty for sends only
     */
    public void initialize(QueuePair queuePair, AccessFlag... peerMay) {
        queuePair.modify(QueuePairAttributes.to(QueuePairState.INIT)
                .pkeyIndex(0)
                .portNumber(port)
                .accessFlags(peerMay)
                .build());
    }

    /**
     * RESET to INIT for datagrams.
     *
     * @param queuePair UD
     * @param queueKey the key that senders must use
     */
    public void initializeDatagrams(QueuePair queuePair, int queueKey) {
        queuePair.modify(QueuePairAttributes.to(QueuePairState.INIT)
                .pkeyIndex(0)
                .portNumber(port)
                .qkey(queueKey)
                .build());
    }

    /**
     * INIT to RTR to RTS: connected.
     *
     * @param queuePair RC, UC or XRC
     * @param local its address, as sent to the peer
     * @param remote the peer's
     * @param reads how many reads and atomics may be outstanding in each direction; 0 for UC. With XRC each direction
     *     has its own queue pair
     */
    public void connect(QueuePair queuePair, QueuePairAddress local, QueuePairAddress remote, int reads) {
        QueuePairType type = queuePair.options().type();
        QueuePairAttributes.Builder receive = QueuePairAttributes.to(QueuePairState.RTR)
                .pathMtu(mtu)
                .destinationQueuePair(remote.queuePairNumber())
                .receivePsn(remote.packetSequenceNumber())
                .address(vectorTo(remote));
        QueuePairAttributes.Builder send =
                QueuePairAttributes.to(QueuePairState.RTS).sendPsn(local.packetSequenceNumber());
        if (type == QueuePairType.RC || type == QueuePairType.XRC_RECV) {
            receive.maxReadsAsTarget(reads).minRnrTimer(RNR_TIMER);
        }
        if (type != QueuePairType.UC) {
            send.timeout(TIMEOUT_EXPONENT);
        }
        if (type == QueuePairType.RC || type == QueuePairType.XRC_SEND) {
            send.retryCount(RETRIES).rnrRetryCount(RETRIES).maxReadsAsInitiator(reads);
        }
        queuePair.modify(receive.build());
        queuePair.modify(send.build());
    }

    /**
     * INIT to RTR to RTS for datagrams.
     *
     * @param queuePair UD
     * @param local its address, as sent to peers
     */
    public void enableDatagrams(QueuePair queuePair, QueuePairAddress local) {
        queuePair.modify(QueuePairAttributes.to(QueuePairState.RTR).build());
        queuePair.modify(QueuePairAttributes.to(QueuePairState.RTS)
                .sendPsn(local.packetSequenceNumber())
                .build());
    }
}
