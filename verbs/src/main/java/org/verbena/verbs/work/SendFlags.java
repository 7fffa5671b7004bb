package org.verbena.verbs.work;

/**
 * Flags of a work request of a send queue, as a mask.
 *
 * <p>Source: ibv_post_send(3)
 */
public final class SendFlags {
    /** None. */
    public static final int NONE = 0;

    /** Start only when all reads and atomics before it are done. */
    public static final int FENCE = 1;

    /** Make a completion, on a queue pair that does not signal everything. */
    public static final int SIGNALED = 1 << 1;

    /** Make an event for a peer that waits for solicited completions alone. */
    public static final int SOLICITED = 1 << 2;

    /** Copy the payload into the work request while posting: its memory can be reused at once and needs no registration. */
    public static final int INLINE = 1 << 3;

    /** Let the adapter compute the checksums of a raw packet or IPoIB datagram. */
    public static final int IP_CSUM = 1 << 4;

    private SendFlags() {}
}
