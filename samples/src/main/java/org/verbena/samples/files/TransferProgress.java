package org.verbena.samples.files;

import java.io.PrintWriter;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Shows how far a file is, how fast it goes, and how long it will take: in a terminal on a line that changes, elsewhere
 * with a line every ten seconds. One thread at a time.
 */
final class TransferProgress implements AutoCloseable {
    private static final long TERMINAL_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
    private static final long LOG_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final double MEGABYTE = 1e6;
    private static final double NANOS_PER_SECOND = 1e9;

    /** Clears a terminal's line and begins at its start. */
    private static final String CLEAR = "\r\u001b[K";

    private final PrintWriter to;
    private final boolean isTerminal;
    private final String name;
    private final long totalBytes;
    private final LongSupplier nanoTime;
    private final long beganNanos;
    private long bytes;
    private long shownNanos;
    private boolean isShown;

    /** Begins, on standard error. */
    TransferProgress(String name, long totalBytes) {
        this(new PrintWriter(System.err, true, System.err.charset()), isTerminal(), name, totalBytes, System::nanoTime);
    }

    /**
     * Begins.
     *
     * @param name of the file
     * @param totalBytes how long it is
     */
    TransferProgress(PrintWriter to, boolean isTerminal, String name, long totalBytes, LongSupplier nanoTime) {
        this.to = to;
        this.isTerminal = isTerminal;
        this.name = name;
        this.totalBytes = totalBytes;
        this.nanoTime = nanoTime;
        beganNanos = nanoTime.getAsLong();
        shownNanos = beganNanos;
    }

    @SuppressWarnings("SystemConsoleNull") // since JDK 25 it may be null again without a terminal
    private static boolean isTerminal() {
        return System.console() != null && System.console().isTerminal();
    }

    /** So many bytes more have arrived. */
    void moved(long more) {
        bytes += more;
        long now = nanoTime.getAsLong();
        if (now - shownNanos >= (isTerminal ? TERMINAL_NANOS : LOG_NANOS)) {
            shownNanos = now;
            double perSecond = bytes * NANOS_PER_SECOND / Math.max(1, now - beganNanos);
            show(String.format(
                    Locale.ROOT,
                    "%s: %.1f of %.1f MB, %.1f MB/s, %.0f s left",
                    name,
                    bytes / MEGABYTE,
                    totalBytes / MEGABYTE,
                    perSecond / MEGABYTE,
                    Math.max(0, totalBytes - bytes) / Math.max(1, perSecond)));
        }
    }

    /** All bytes have arrived, and the receiver reads them again. */
    void verifying() {
        if (isShown) {
            show(name + ": verifying");
        }
    }

    private void show(String line) {
        isShown = true;
        if (isTerminal) {
            to.print(CLEAR + line);
            to.flush();
        } else {
            to.println(line);
        }
    }

    /** Ends one, if there is one. Returns null. */
    static @Nullable TransferProgress end(@Nullable TransferProgress progress) {
        if (progress != null) {
            progress.close();
        }
        return null;
    }

    /** The outcome is printed by others. */
    @Override
    public void close() {
        if (isShown && isTerminal) {
            to.print(CLEAR);
            to.flush();
        }
    }
}
