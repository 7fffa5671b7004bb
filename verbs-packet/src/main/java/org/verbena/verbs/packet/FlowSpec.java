package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.PacketObject;

/**
 * A part of a {@link FlowRule}: a header that packets must have ({@link FlowMatch}), or what is done with those that
 * match ({@link FlowEffect}).
 *
 * <p>Source: ibv_create_flow(3)
 */
public abstract sealed class FlowSpec permits FlowMatch, FlowEffect {
    /** Parts follow each other without gaps, so their members need not be aligned. */
    static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    /** {@code type} comes first in every part. */
    static final long TYPE_AT = 0;

    /** {@code size} comes second in every part. */
    static final long SIZE_AT = Integer.BYTES;

    FlowSpec() {}

    /** Which of {@code enum ibv_flow_spec_type} it is, with its bits. */
    abstract int type();

    /** How long C's struct is. */
    abstract long sizeBytes();

    /**
     * Writes what comes after type and size.
     *
     * @param part zeroed memory of {@link #sizeBytes()}
     */
    abstract void writeBody(MemorySegment part);

    /** What has to live as long as a rule with this part, or null. */
    @Nullable PacketObject needs() {
        return null;
    }

    /**
     * Writes C's struct.
     *
     * @param part zeroed memory of {@link #sizeBytes()}
     */
    final void write(MemorySegment part) {
        part.set(INT, TYPE_AT, type());
        part.set(SHORT, SIZE_AT, (short) sizeBytes());
        writeBody(part);
    }
}
