package org.verbena.verbs.work;

/**
 * Flags of a work request of a send queue, as a mask.
 *
 * <p>Source: ibv_post_send(3)
 */
public final class SendFlags {
    /** None. */
    public static final int NONE = 0;

    /** Starts only when all preceding reads and atomics are done. */
    public static final int FENCE = 1;

    /** Signals the completion, on a queue pair that does not signal everything. */
    public static final int SIGNALED = 1 << 1;

    /** Creates an event for a peer that waits for solicited completions only. */
    public static final int SOLICITED = 1 << 2;

    /**
     * Copies the payload into the work request while posting, so that its memory can be reused immediately and needs no
     * registration.
     */
    public static final int INLINE = 1 << 3;

    /** Lets the adapter compute the checksums of a raw packet or IPoIB datagram. */
    public static final int IP_CSUM = 1 << 4;

    private SendFlags() {}
}
