package org.verbena.cm;

import org.jspecify.annotations.Nullable;

/**
 * The type of service of an id, connections or datagrams, and the scope of its port numbers. Source: rdma_create_id(3)
 */
public enum PortSpace {
    /** IP over InfiniBand's own multicast groups; datagrams. */
    IPOIB(0x0002, true),

    /** Reliable connections, with TCP's port numbers. */
    TCP(0x0106, false),

    /** Datagrams, with UDP's port numbers. */
    UDP(0x0111, true),

    /** Any InfiniBand service: connections or datagrams, addressed by service id. */
    IB(0x013F, false);

    private final int value;
    private final boolean datagram;

    PortSpace(int value, boolean datagram) {
        this.value = value;
        this.datagram = datagram;
    }

    /**
     * The C value.
     *
     * @return {@code RDMA_PS_...}
     */
    public int value() {
        return value;
    }

    /**
     * Whether ids of this space have unreliable datagram queue pairs by default.
     *
     * @return false for connections
     */
    public boolean isDatagram() {
        return datagram;
    }

    /**
     * Finds a port space.
     *
     * @param value {@code RDMA_PS_...}
     * @return null if it is not known
     */
    public static @Nullable PortSpace of(int value) {
        for (PortSpace space : values()) {
            if (space.value == value) {
                return space;
            }
        }
        return null;
    }
}
