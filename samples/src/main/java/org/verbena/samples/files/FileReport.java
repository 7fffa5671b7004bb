package org.verbena.samples.files;

import java.util.Locale;

/**
 * What both ends report about a file that has arrived.
 *
 * @param file its name
 * @param bytes its length
 * @param resumedAtBytes how much of it was there before
 * @param seconds how long the rest took
 * @param megabytesPerSecond how fast that was, in 10^6 bytes
 * @param sha256 of the whole file
 */
record FileReport(
        String file, long bytes, long resumedAtBytes, double seconds, double megabytesPerSecond, String sha256) {
    private static final double NANOS_PER_SECOND = 1e9;
    private static final double BYTES_PER_MEGABYTE = 1e6;

    static FileReport of(String name, long sizeBytes, long startBytes, long tookNanos, String hash) {
        double seconds = Math.max(1, tookNanos) / NANOS_PER_SECOND;
        return new FileReport(
                name, sizeBytes, startBytes, seconds, (sizeBytes - startBytes) / BYTES_PER_MEGABYTE / seconds, hash);
    }

    /** For people: small files take milliseconds and move kilobytes a second. */
    String line() {
        return file + ", " + bytes + (bytes == 1 ? " byte" : " bytes")
                + (resumedAtBytes == 0 ? "" : ", resumed at " + resumedAtBytes + ",")
                + String.format(
                        Locale.ROOT,
                        seconds < 1 ? " in %.1f ms, " : " in %.2f s, ",
                        seconds < 1 ? seconds * 1e3 : seconds)
                + (megabytesPerSecond < 1
                        ? String.format(Locale.ROOT, "%.1f kB/s", megabytesPerSecond * 1e3)
                        : String.format(Locale.ROOT, "%.1f MB/s", megabytesPerSecond))
                + ", SHA-256 " + sha256;
    }
}
