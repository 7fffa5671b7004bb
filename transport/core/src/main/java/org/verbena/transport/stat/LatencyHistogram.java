package org.verbena.transport.stat;

import java.util.Arrays;

/**
 * How long requests took, in buckets that grow: four for each power of two from 1 us to 137 s, so that a percentile is
 * within an eighth of the truth. Immutable.
 */
public final class LatencyHistogram {
    static final int BUCKETS = 112;

    /** 1.024 us: what is shorter is in the first bucket. */
    private static final int MIN_EXPONENT = 10;

    /** Two bits: the buckets of a power of two. */
    private static final int PART_BITS = 2;

    private static final int PARTS = 1 << PART_BITS;

    private final long[] counts;
    private final long count;

    LatencyHistogram(long[] counts) {
        this.counts = counts.clone();
        count = Arrays.stream(counts).sum();
    }

    static int bucket(long nanos) {
        if (nanos < 1L << MIN_EXPONENT) {
            return 0;
        }
        int exponent = Long.SIZE - 1 - Long.numberOfLeadingZeros(nanos);
        int part = (int) (nanos >>> (exponent - PART_BITS)) & (PARTS - 1);
        return Math.min(1 + (exponent - MIN_EXPONENT) * PARTS + part, BUCKETS - 1);
    }

    /** In its middle. */
    static long nanos(int bucket) {
        if (bucket == 0) {
            return 1L << (MIN_EXPONENT - 1);
        }
        int exponent = MIN_EXPONENT + (bucket - 1) / PARTS;
        long part = 1L << (exponent - PART_BITS);
        return (PARTS + (bucket - 1) % PARTS) * part + part / 2;
    }

    /**
     * How many requests it has.
     *
     * @return 0 or more
     */
    public long count() {
        return count;
    }

    /**
     * How long requests took.
     *
     * @param percent of the requests that took no longer, 0 to 100
     * @return in nanoseconds, within an eighth; 0 if there were none
     */
    public long percentileNanos(double percent) {
        long rank = Math.max(1, (long) Math.ceil(count * percent / 100));
        long seen = 0;
        for (int i = 0; i < counts.length; i++) {
            seen += counts[i];
            if (seen >= rank) {
                return nanos(i);
            }
        }
        return 0;
    }

    /**
     * What has been added since an earlier reading of the same connection.
     *
     * @param earlier the other reading
     * @return the difference
     */
    public LatencyHistogram minus(LatencyHistogram earlier) {
        long[] difference = new long[BUCKETS];
        for (int i = 0; i < BUCKETS; i++) {
            difference[i] = Math.max(0, counts[i] - earlier.counts[i]);
        }
        return new LatencyHistogram(difference);
    }
}
