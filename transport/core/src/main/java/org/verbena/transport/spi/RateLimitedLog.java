package org.verbena.transport.spi;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;

/**
 * Log lines that a peer can cause: a few a minute, with the number of those left out, which are logged at DEBUG. Any
 * thread.
 */
public final class RateLimitedLog {
    /** Lines in a {@link #PERIOD_NANOS period}: enough to see a pattern, too few to fill a disk. */
    public static final int LINES_PER_PERIOD = 10;

    /** A minute. */
    public static final long PERIOD_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final Logger log;
    private final LongSupplier nanoTime;

    // All guarded by this.
    private long count;
    private long untold;
    private long periodEndNanos;
    private int linesOfPeriod;

    /**
     * With the system's clock.
     *
     * @param log where the lines go
     */
    public RateLimitedLog(Logger log) {
        this(log, System::nanoTime);
    }

    /**
     * With another clock.
     *
     * @param log where the lines go
     * @param nanoTime as {@link System#nanoTime()}
     */
    public RateLimitedLog(Logger log, LongSupplier nanoTime) {
        this.log = log;
        this.nanoTime = nanoTime;
    }

    /**
     * Counts a line, and logs it at WARN unless there were too many recently.
     *
     * @param text the line
     * @return whether it was logged
     */
    public boolean warn(String text) {
        long before = admit();
        if (before < 0) {
            log.debug("{}", text);
            return false;
        }
        log.warn("{}{}", text, more(before));
        return true;
    }

    /**
     * As {@link #warn}, at INFO.
     *
     * @param text the line
     */
    public void info(String text) {
        long before = admit();
        if (before < 0) {
            log.debug("{}", text);
        } else {
            log.info("{}{}", text, more(before));
        }
    }

    /**
     * Counts a failure, and logs it at ERROR unless there were too many recently: the first of a period with its stack.
     *
     * @param text the line
     * @param cause what has failed
     * @return whether it was logged
     */
    public boolean error(String text, Throwable cause) {
        long before;
        boolean isFirst;
        synchronized (this) {
            before = admit();
            isFirst = linesOfPeriod == 1;
        }
        if (before < 0) {
            log.debug("{}", text, cause);
            return false;
        }
        if (isFirst) {
            log.error("{}{}", text, more(before), cause);
        } else {
            log.error("{}{}: {}", text, more(before), cause.toString());
        }
        return true;
    }

    private static String more(long before) {
        return before == 0 ? "" : " (and " + before + " more of this kind since the last line)";
    }

    /** Counts a line. Returns how many were left out before it, or -1 if it is to be left out as well. */
    private synchronized long admit() {
        count++;
        long now = nanoTime.getAsLong();
        if (count == 1 || now - periodEndNanos >= 0) {
            periodEndNanos = now + PERIOD_NANOS;
            linesOfPeriod = 0;
        }
        if (linesOfPeriod == LINES_PER_PERIOD) {
            untold++;
            return -1;
        }
        linesOfPeriod++;
        long before = untold;
        untold = 0;
        return before;
    }

    /**
     * The number of lines.
     *
     * @return those that were logged, and those that were not
     */
    public synchronized long count() {
        return count;
    }
}
