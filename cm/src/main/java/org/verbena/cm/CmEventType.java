package org.verbena.cm;

/**
 * The events of the connection manager. The constants have C's names without {@code RDMA_CM_EVENT_}. Source:
 * rdma_get_cm_event(3)
 */
public enum CmEventType {
    /** The peer's IP address was mapped to a device and, on InfiniBand, to a GID: the route can be resolved. */
    ADDR_RESOLVED(0, false, "the address was resolved"),

    /** No device, address or neighbour entry leads to the peer, or finding it took longer than allowed. */
    ADDR_ERROR(1, true, "the address could not be resolved"),

    /** The path to the peer is known: the queue pair can be created and connected. */
    ROUTE_RESOLVED(2, false, "the route was resolved"),

    /** No path leads to the peer. */
    ROUTE_ERROR(3, true, "the route could not be resolved"),

    /** A peer wants to connect to a listening id: accept or reject the new id that comes with the event. */
    CONNECT_REQUEST(4, false, "a peer wants to connect"),

    /**
     * The peer accepted, and librdmacm did not create the id's queue pair: modify yours, then {@link CmId#establish}.
     */
    CONNECT_RESPONSE(5, false, "the peer accepted"),

    /** Connecting failed on this side or on the way. */
    CONNECT_ERROR(6, true, "connecting failed"),

    /** The peer does not answer. */
    UNREACHABLE(7, true, "the peer is unreachable"),

    /** The peer rejected the connection, or nobody listens there. */
    REJECTED(8, true, "the peer rejected the connection"),

    /** The connection is up. */
    ESTABLISHED(9, false, "the connection is up"),

    /** The connection is down; either end may have ended it. */
    DISCONNECTED(10, false, "the connection is down"),

    /** The device is being removed: destroy the id and everything on the device. */
    DEVICE_REMOVAL(11, true, "the device was removed"),

    /** The multicast group was joined; the event has the parameters to send to it. */
    MULTICAST_JOIN(12, false, "the multicast group was joined"),

    /** The multicast group could not be joined, or was left because of an error. */
    MULTICAST_ERROR(13, true, "the multicast group was not joined or was lost"),

    /** The network's addresses changed (bonding failed over, say): the connection may be dead, resolve again. */
    ADDR_CHANGE(14, false, "the device's network address changed"),

    /** The queue pair left timewait: its number may be used again. */
    TIMEWAIT_EXIT(15, false, "the queue pair left timewait"),

    /** A type that this version of Verbena does not know, from a newer librdmacm. */
    UNKNOWN(-1, false, "an event that this version does not know");

    private final int value;
    private final boolean error;
    private final String meaning;

    CmEventType(int value, boolean error, String meaning) {
        this.value = value;
        this.error = error;
        this.meaning = meaning;
    }

    /**
     * The C value.
     *
     * @return {@code RDMA_CM_EVENT_...}; -1 for {@link #UNKNOWN}
     */
    public int value() {
        return value;
    }

    /**
     * Whether it ends an attempt or a connection with an error.
     *
     * @return true if the id can only be closed
     */
    public boolean isError() {
        return error;
    }

    /**
     * What it means.
     *
     * @return a clause for messages
     */
    public String meaning() {
        return meaning;
    }

    /**
     * Finds a type.
     *
     * @param value {@code RDMA_CM_EVENT_...}
     * @return {@link #UNKNOWN} for one that is not known
     */
    public static CmEventType of(int value) {
        for (CmEventType type : values()) {
            if (type.value == value) {
                return type;
            }
        }
        return UNKNOWN;
    }
}
