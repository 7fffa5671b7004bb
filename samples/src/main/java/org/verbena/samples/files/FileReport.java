package org.verbena.samples.files;

import java.util.Locale;

/** The line that both ends print for a file. */
final class FileReport {
    private static final double NANOS_PER_SECOND = 1e9;
    private static final double BYTES_PER_MEGABYTE = 1e6;

    private FileReport() {}

    static String line(String name, long sizeBytes, long startBytes, long tookNanos, String hash) {
        double seconds = Math.max(1, tookNanos) / NANOS_PER_SECOND;
        return String.format(
                Locale.ROOT,
                "%s, %d bytes%s in %.2f s, %.1f MB/s, SHA-256 %s",
                name,
                sizeBytes,
                startBytes == 0 ? "" : ", resumed at " + startBytes + ",",
                seconds,
                (sizeBytes - startBytes) / BYTES_PER_MEGABYTE / seconds,
                hash);
    }
}
