package org.verbena.cm;

/** The type of membership in a multicast group. The ordinals are not C's values; {@link #value} is. */
public enum MulticastMembership {
    /** Sends and receives. */
    FULL(0),

    /** Sends only: the queue pair is not attached. */
    SEND_ONLY(1);

    private final int value;

    MulticastMembership(int value) {
        this.value = value;
    }

    /**
     * The C value.
     *
     * @return {@code RDMA_MC_JOIN_FLAG_...}
     */
    public int value() {
        return value;
    }
}
