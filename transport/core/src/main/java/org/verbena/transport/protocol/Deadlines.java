package org.verbena.transport.protocol;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * The times at which a connection wants to be called; its only part that reads a clock. Times are of {@link
 * System#nanoTime()}, so they are compared by their difference; {@link #NONE} is no time.
 */
final class Deadlines {
    static final long NONE = Long.MAX_VALUE;

    /**
     * The delay before memory is tried again that the device refused to register: nothing reports when its limit allows
     * more.
     */
    private static final long MEMORY_RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /**
     * The interval of checks of a message whose memory others wait for: as long as a peer may take for any other part.
     */
    static final long MESSAGE_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final MessageOptions options;
    private final LongSupplier clock;
    private long helloNanos = NONE;
    private long closeNanos = NONE;
    private long retryNanos = NONE;
    private long messageNanos = NONE;
    private long silentSinceNanos;
    private boolean watchesSilence;
    /** The deadline that was last reported to the listener. */
    private long toldNanos = NONE;

    Deadlines(MessageOptions options, LongSupplier clock) {
        this.options = options;
        this.clock = clock;
    }

    /** Connected: the peer's part of the handshake is awaited. */
    void beginHandshake() {
        if (helloNanos == NONE) {
            helloNanos = after(options.helloTimeoutMillis());
        }
    }

    void beginClosing() {
        if (closeNanos == NONE) {
            closeNanos = after(options.closeTimeoutMillis());
        }
    }

    /** With keepalive, a silent peer is pinged. */
    void watchSilence() {
        if (!watchesSilence && options.keepAliveMillis() > 0) {
            watchesSilence = true;
            silentSinceNanos = clock.getAsLong();
        }
    }

    /** A frame of the peer has arrived. */
    void heard() {
        if (watchesSilence) {
            silentSinceNanos = clock.getAsLong();
        }
    }

    /** Records whether the peer owes the rest of a message; returns true when it has just begun to. */
    boolean watchMessage(boolean owed) {
        boolean begins = owed && messageNanos == NONE;
        if (begins) {
            messageNanos = clock.getAsLong() + MESSAGE_NANOS;
        } else if (!owed) {
            messageNanos = NONE;
        }
        return begins;
    }

    /** Whether to check the message's progress now; the next check is due after the same interval. */
    boolean takeMessage(long nowNanos) {
        boolean due = isDue(messageNanos, nowNanos);
        if (due) {
            messageNanos = nowNanos + MESSAGE_NANOS;
        }
        return due;
    }

    /** Schedules another attempt to get memory. */
    void retry() {
        retryNanos = clock.getAsLong() + MEMORY_RETRY_NANOS;
    }

    /** Schedules a call after this long, or sooner; returns the time now. */
    long awaitTransfer(long nanos) {
        long nowNanos = clock.getAsLong();
        retryNanos = sooner(retryNanos, nowNanos + nanos);
        return nowNanos;
    }

    /** Memory is tried again now if that is due, and so are transfers that wait. */
    void endRetry(long nowNanos) {
        if (isDue(retryNanos, nowNanos)) {
            retryNanos = NONE;
        }
    }

    boolean isHelloLate(long nowNanos) {
        return isDue(helloNanos, nowNanos);
    }

    boolean isCloseLate(long nowNanos) {
        return isDue(closeNanos, nowNanos);
    }

    boolean watchesSilence() {
        return watchesSilence;
    }

    /** How long the peer has been silent; 0 without keepalive. */
    long silentNanos(long nowNanos) {
        return watchesSilence ? nowNanos - silentSinceNanos : 0;
    }

    long keepAliveNanos() {
        return TimeUnit.MILLISECONDS.toNanos(options.keepAliveMillis());
    }

    /**
     * The next one.
     *
     * @param handshaking whether HELLO is awaited
     * @param closing whether CLOSE is
     * @param asked whether the peer was asked for a sign of life
     */
    long next(boolean handshaking, boolean closing, boolean asked) {
        long nanos = NONE;
        if (handshaking) {
            nanos = helloNanos;
        } else if (closing) {
            nanos = closeNanos;
        } else if (watchesSilence) {
            nanos = silentSinceNanos + (asked ? 2 : 1) * keepAliveNanos();
        }
        return sooner(nanos, sooner(retryNanos, messageNanos));
    }

    private static long sooner(long one, long other) {
        if (one == NONE || other == NONE) {
            return one == NONE ? other : one;
        }
        return one - other < 0 ? one : other;
    }

    /** Whether the listener is to be told of this one: it is nearer than what it knows. From now on it knows. */
    boolean takeNearer(long nanos) {
        if (nanos == NONE || (toldNanos != NONE && nanos - toldNanos >= 0)) {
            return false;
        }
        toldNanos = nanos;
        return true;
    }

    /** The deadline that was reported to the listener has come. */
    void ring() {
        toldNanos = NONE;
    }

    static boolean isDue(long nanos, long nowNanos) {
        return nanos != NONE && nowNanos - nanos >= 0;
    }

    private long after(int millis) {
        return clock.getAsLong() + TimeUnit.MILLISECONDS.toNanos(millis);
    }
}
