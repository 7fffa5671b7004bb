package org.verbena.api.internal.request;

import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.SendLimitException;

/** Counts messages that wait to be sent on a connection, and their bytes, against a limit. Any thread. */
public final class SendLimit {
    /**
     * The bounds.
     *
     * @param messages the most that may wait
     * @param bytes the most that these may have together; a message may be longer if no other waits
     */
    public record Bounds(int messages, long bytes) {
        /** Far more than fills any link, and far less than the memory that all connections share. */
        public static final Bounds DEFAULTS = new Bounds(65_536, 128L << 20);

        public Bounds {
            if (messages < 1 || messages > MAX_MESSAGES) {
                throw new IllegalArgumentException(
                        "maxPending: " + messages + " messages are not within 1 to " + MAX_MESSAGES);
            }
            if (bytes < 1 || bytes > MAX_BYTES) {
                throw new IllegalArgumentException("maxPending: " + bytes + " bytes are not within 1 to " + MAX_BYTES);
            }
        }

        /** Returns some quarters of both, but at least one message and one byte. */
        Bounds quarters(int count) {
            return new Bounds(Math.max(1, messages * count / 4), Math.max(1, bytes * count / 4));
        }
    }

    // Both figures are in one number, so that one atomic step takes them:  | messages: 24 | bytes: 40 |
    private static final int BYTES_BITS = 40;
    private static final long BYTES_MASK = (1L << BYTES_BITS) - 1;
    private static final long ONE_MESSAGE = 1L << BYTES_BITS;

    /** Half of what fits, since messages that are never refused count, too. */
    private static final long MAX_BYTES = 1L << (BYTES_BITS - 1);

    private static final int MAX_MESSAGES = 1 << 22;

    private final Bounds bounds;
    private final AtomicLong pending = new AtomicLong();

    public SendLimit(Bounds bounds) {
        this.bounds = bounds;
    }

    /** How many wait now. */
    public int messages() {
        return (int) (pending.get() >>> BYTES_BITS);
    }

    /** How many bytes these have. */
    public long bytes() {
        return pending.get() & BYTES_MASK;
    }

    /** Whether at least half of what may wait is waiting. */
    boolean isHalfFull() {
        long now = pending.get();
        return (int) (now >>> BYTES_BITS) * 2L >= bounds.messages || (now & BYTES_MASK) * 2 >= bounds.bytes;
    }

    /** Whether at least as many messages or bytes wait as a level has. */
    boolean reaches(Bounds level) {
        long now = pending.get();
        return (int) (now >>> BYTES_BITS) >= level.messages || (now & BYTES_MASK) >= level.bytes;
    }

    /** Counts a message, even beyond the limit. */
    void take(int bytes) {
        pending.addAndGet(ONE_MESSAGE + bytes);
    }

    /** Counts a message if there is room for it. */
    public boolean tryTake(int bytes) {
        return tryTake(bytes, bounds);
    }

    /** Counts a message if there is room for it within bounds that may be smaller than the own ones. */
    boolean tryTake(int bytes, Bounds within) {
        long now = pending.addAndGet(ONE_MESSAGE + bytes);
        int messages = (int) (now >>> BYTES_BITS);
        if (messages == 1 || (messages <= within.messages && (now & BYTES_MASK) <= within.bytes)) {
            return true;
        }
        giveBack(bytes);
        return false;
    }

    /**
     * Why there is no room for a message.
     *
     * @param operation what was to be done with it
     * @param peer to whom
     */
    public SendLimitException refusal(String operation, @Nullable Object peer, int bytes) {
        long now = pending.get();
        int messages = (int) (now >>> BYTES_BITS);
        long waiting = now & BYTES_MASK;
        String most = messages >= bounds.messages
                ? bounds.messages + " messages"
                : bounds.bytes + " bytes, and this message has " + bytes;
        return new SendLimitException(
                operation + " to " + peer + ": " + messages + " messages with " + waiting
                        + " bytes wait to be sent, and maxPending allows " + most
                        + ": wait for the future of an earlier one, or raise maxPending",
                messages,
                waiting);
    }

    /** The message has been sent, or will not be. */
    public void giveBack(int bytes) {
        pending.addAndGet(-(ONE_MESSAGE + bytes));
    }
}
