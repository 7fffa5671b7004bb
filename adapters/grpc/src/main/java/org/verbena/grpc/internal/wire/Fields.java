package org.verbena.grpc.internal.wire;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** The fields of a HEADERS or TRAILERS frame: metadata in gRPC's binary form, and a call's method and authority. */
public final class Fields {
    /** The name of the field that has a call's method. */
    public static final String PATH = ":path";

    /** The name of the field that has a call's authority. */
    public static final String AUTHORITY = ":authority";

    /** What a field counts beside its name and value, as in HTTP/2. */
    static final int OVERHEAD_BYTES = 32;

    private byte[][] namesAndValues = new byte[16][];
    private int count;
    private long sizeBytes;
    private boolean tooLarge;
    private @Nullable String path;
    private @Nullable String authority;

    Fields() {}

    void add(byte[] name, byte[] value) {
        if (2 * count == namesAndValues.length) {
            namesAndValues = Arrays.copyOf(namesAndValues, 4 * count);
        }
        namesAndValues[2 * count] = name;
        namesAndValues[2 * count + 1] = value;
        count++;
    }

    /** Counts a field; false if it is one too many. */
    boolean count(int nameBytes, int valueBytes, int maxBytes) {
        sizeBytes += nameBytes + valueBytes + OVERHEAD_BYTES;
        tooLarge |= sizeBytes > maxBytes;
        return !tooLarge;
    }

    void path(String value) {
        path = value;
    }

    void authority(String value) {
        authority = value;
    }

    /** Names and values in turn; only the first {@link #count()} of each are meant. */
    public byte[][] namesAndValues() {
        return namesAndValues;
    }

    /** How many fields there are, without method and authority. */
    public int count() {
        return count;
    }

    /** The bytes of all names and values, and 32 for each field. */
    public long sizeBytes() {
        return sizeBytes;
    }

    /** Whether they are more than this end accepts. Then some are missing here. */
    public boolean isTooLarge() {
        return tooLarge;
    }

    /** The method, as {@code /package.Service/Method}. */
    public @Nullable String path() {
        return path;
    }

    /** The authority that the client called. */
    public @Nullable String authority() {
        return authority;
    }
}
