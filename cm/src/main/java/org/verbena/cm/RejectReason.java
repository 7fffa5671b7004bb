package org.verbena.cm;

import org.jspecify.annotations.Nullable;

/**
 * Why an InfiniBand or RoCE peer rejected a connection: the status of {@link CmEventType#REJECTED} there. iWARP has no
 * such codes; it reports ECONNREFUSED whatever the reason. Source: InfiniBand Architecture Specification, volume 1,
 * 12.6.7.2
 */
public enum RejectReason {

    /** The peer has no queue pairs left. */
    NO_QP(1, "the peer has no queue pairs left"),
    /** The peer has no end-to-end contexts left. */
    NO_EEC(2, "the peer has no end-to-end contexts left"),
    /** The peer has no resources left. */
    NO_RESOURCES(3, "the peer has no resources left"),
    /** The peer timed out: a message of the handshake was lost, or this side was slow. */
    TIMEOUT(4, "the peer timed out: a message of the handshake was lost, or this side was slow"),
    /** The peer does not support the request. */
    UNSUPPORTED(5, "the peer does not support the request"),
    /** The peer does not know this connection. */
    INVALID_COMM_ID(6, "the peer does not know this connection"),
    /** The peer does not know this connection. */
    INVALID_COMM_INSTANCE(7, "the peer does not know this connection"),
    /** Nobody listens on that port: check the address and port, and that the server is up. */
    INVALID_SERVICE_ID(8, "nobody listens on that port: check the address and port, and that the server is up"),
    /** The peer's service has another transport type. */
    INVALID_TRANSPORT_TYPE(9, "the peer's service has another transport type"),
    /** The peer still has an old connection with this queue pair number: try again. */
    STALE_CONN(10, "the peer still has an old connection with this queue pair number: try again"),
    /** The peer has no such reliable datagram channel. */
    RDC_NOT_EXIST(11, "the peer has no such reliable datagram channel"),
    /** The GID is not one of the peer's. */
    INVALID_GID(12, "the GID is not one of the peer's"),
    /** The LID is not one of the peer's. */
    INVALID_LID(13, "the LID is not one of the peer's"),
    /** The peer does not accept this service level. */
    INVALID_SL(14, "the peer does not accept this service level"),
    /** The peer does not accept this traffic class. */
    INVALID_TRAFFIC_CLASS(15, "the peer does not accept this traffic class"),
    /** The peer does not accept this hop limit. */
    INVALID_HOP_LIMIT(16, "the peer does not accept this hop limit"),
    /** The peer does not accept this packet rate. */
    INVALID_PACKET_RATE(17, "the peer does not accept this packet rate"),
    /** The alternate GID is not one of the peer's. */
    INVALID_ALT_GID(18, "the alternate GID is not one of the peer's"),
    /** The alternate LID is not one of the peer's. */
    INVALID_ALT_LID(19, "the alternate LID is not one of the peer's"),
    /** The peer does not accept the alternate service level. */
    INVALID_ALT_SL(20, "the peer does not accept the alternate service level"),
    /** The peer does not accept the alternate traffic class. */
    INVALID_ALT_TRAFFIC_CLASS(21, "the peer does not accept the alternate traffic class"),
    /** The peer does not accept the alternate hop limit. */
    INVALID_ALT_HOP_LIMIT(22, "the peer does not accept the alternate hop limit"),
    /** The peer does not accept the alternate packet rate. */
    INVALID_ALT_PACKET_RATE(23, "the peer does not accept the alternate packet rate"),
    /** The peer's connection manager is elsewhere. */
    PORT_CM_REDIRECT(24, "the peer's connection manager is elsewhere"),
    /** The peer's service is on another port. */
    PORT_REDIRECT(25, "the peer's service is on another port"),
    /** The path's MTU is larger than the peer's. */
    INVALID_MTU(26, "the path's MTU is larger than the peer's"),
    /** The peer has fewer responder resources: ask for a smaller initiator depth. */
    INSUFFICIENT_RESP_RESOURCES(27, "the peer has fewer responder resources: ask for a smaller initiator depth"),
    /** The application rejected it; its private data may say why. */
    CONSUMER_DEFINED(28, "the application rejected it; its private data may say why"),
    /** The peer does not accept this RNR retry count. */
    INVALID_RNR_RETRY(29, "the peer does not accept this RNR retry count"),
    /** The peer already has a connection with this id. */
    DUPLICATE_LOCAL_COMM_ID(30, "the peer already has a connection with this id"),
    /** The peer's connection manager has another version. */
    INVALID_CLASS_VERSION(31, "the peer's connection manager has another version"),
    /** The peer does not accept this flow label. */
    INVALID_FLOW_LABEL(32, "the peer does not accept this flow label"),
    /** The peer does not accept the alternate flow label. */
    INVALID_ALT_FLOW_LABEL(33, "the peer does not accept the alternate flow label"),
    /** The peer does not accept the enhanced connection establishment (ECE) option. */
    VENDOR_OPTION_NOT_SUPPORTED(35, "the peer does not accept the enhanced connection establishment (ECE) option");

    private final int value;
    private final String meaning;

    RejectReason(int value, String meaning) {
        this.value = value;
        this.meaning = meaning;
    }

    /**
     * The code on the wire.
     *
     * @return from 1
     */
    public int value() {
        return value;
    }

    /**
     * Its meaning and, if there is one, a remedy.
     *
     * @return a clause for messages
     */
    public String meaning() {
        return meaning;
    }

    /**
     * Finds a reason.
     *
     * @param status of a rejected event
     * @return null if it is not one
     */
    public static @Nullable RejectReason of(int status) {
        for (RejectReason reason : values()) {
            if (reason.value == status) {
                return reason;
            }
        }
        return null;
    }
}
