package org.verbena.transport.verbs;

/**
 * The length above which a message is read by the receiver out of the sender's memory, rather than sent in fragments
 * that the receiver copies into one message.
 *
 * <p>Software devices have a measured one. For an adapter it is calculated: both ways are charged with the time that
 * the message takes and with the time for which it occupies a loop, and the threshold is where their sums are equal.
 * With {@code c} and {@code w} for the nanoseconds that copying a byte and its way over the link take, {@code g} for
 * pinning it, {@code K} for the commands to the firmware that make and end a key, {@code R} for the round trip that
 * reading adds, and {@code F} for the bytes of a receive, a message of {@code n} bytes costs
 *
 * <pre>{@code
 * in fragments    c n  +  max(c, w) n + min(c, w) F        copies overlap with the link, except the last one
 * by rendezvous   K + g n  +  K + g n + R + w n            the loop waits for the firmware
 * }</pre>
 *
 * <p>Nobody has measured this on an adapter: {@code docs/adapters.md} says where the values are from.
 */
final class RendezvousThreshold {
    /**
     * On rxe and siw: up to here a key for one message costs more than the saved copy at the receiver, as {@code
     * bench/eager} measured on rxe.
     */
    static final int MEASURED_BYTES = 1 << 20;

    /** The most that is calculated, since the costs of pages are the least certain. */
    static final int MAX_BYTES = 4 << 20;

    /** A processor that copies from memory to memory at 8 GB/s. */
    private static final double COPY_NANOS = 0.125;

    /** What UCX assumes a registration to cost, whatever its length: MEM_REG_OVERHEAD in its ib_md.c. */
    private static final double COMMAND_NANOS = 16_000;

    /** What UCX assumes for each byte, of pinning and mapping pages: MEM_REG_GROWTH in its ib_md.c. */
    private static final double PIN_NANOS = 0.06;

    /** From the advertisement to the first byte that is read, with what is posted for a key. */
    private static final double ROUND_TRIP_NANOS = 5_000;

    private static final double BITS = 8;

    private RendezvousThreshold() {}

    /**
     * Calculates it.
     *
     * @param gigabitsPerSecond the speed of the link; 0 if it is not known
     * @param commands to the firmware for a message, at both ends together
     * @param registrations how often the pages of a message are pinned, at both ends together
     * @param peerReceiveBytes a message of so many bytes arrives in one piece, and is not copied
     * @return bytes, from {@code peerReceiveBytes} on
     */
    static int bytes(double gigabitsPerSecond, int commands, int registrations, int peerReceiveBytes) {
        if (gigabitsPerSecond <= 0) {
            return Math.max(MEASURED_BYTES, peerReceiveBytes);
        }
        double wireNanos = BITS / gigabitsPerSecond;
        double saved = COPY_NANOS + Math.max(COPY_NANOS, wireNanos) - wireNanos - 2 * registrations * PIN_NANOS;
        double overhead =
                2 * commands * COMMAND_NANOS + ROUND_TRIP_NANOS - Math.min(COPY_NANOS, wireNanos) * peerReceiveBytes;
        double bytes = saved <= 0 ? MAX_BYTES : Math.min(MAX_BYTES, overhead / saved);
        return (int) Math.max(peerReceiveBytes, bytes);
    }
}
