package org.verbena.api.internal.request;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.Method;

/**
 * What a headed frame has in front of its payload: the program's metadata, and entries of the library's own, whose
 * names begin with a colon.
 *
 * <pre>{@code
 *  0        2                              each entry:   0           1      n + 1     n + 3
 * | bytes  | entry | entry | ... |                      | n, length | name | length  | value |
 * }</pre>
 *
 * @param metadata the program's
 * @param own the library's; those that it does not know are ignored
 */
public record Headers(Metadata metadata, Map<String, byte[]> own) {
    /** Names the service of a request. */
    private static final String SERVICE = ":service";

    /** Names the method of a request. */
    private static final String METHOD = ":method";

    /** Says that the message of a request is the first of its stream's messages. Without a value. */
    private static final String FIRST = ":first";

    public static final Headers NONE = new Headers(Metadata.EMPTY, Map.of());

    /** Metadata and the library's own entries together. */
    static final int MAX_ENTRIES = 64;

    /** The length of all entries together. */
    static final int MAX_BYTES = 8 << 10;

    /** The field that says how long all entries are. */
    static final int LENGTH_BYTES = 2;

    private static final int ENTRY_BYTES = 3;
    private static final byte[] NO_BYTES = new byte[0];

    public static Headers of(Metadata metadata) {
        return metadata.isEmpty() ? NONE : new Headers(metadata, Map.of());
    }

    public static Headers of(Metadata metadata, Method<?, ?> method) {
        return new Headers(
                metadata,
                Map.of(
                        SERVICE,
                        method.service().getBytes(StandardCharsets.US_ASCII),
                        METHOD,
                        method.name().getBytes(StandardCharsets.US_ASCII)));
    }

    /**
     * Makes the headers of a stream.
     *
     * @param hasFirst whether the message of the request is the first of its messages
     */
    public static Headers ofStream(Metadata metadata, Method<?, ?> method, boolean hasFirst) {
        Headers headers = of(metadata, method);
        if (!hasFirst) {
            return headers;
        }
        Map<String, byte[]> own = new HashMap<>(headers.own);
        own.put(FIRST, NO_BYTES);
        return new Headers(metadata, Map.copyOf(own));
    }

    /** Whether the message of the request is the first of its stream's messages. */
    boolean hasFirst() {
        return own.containsKey(FIRST);
    }

    /**
     * The service and the method that a request names, as {@link Method#toString} has them; null if it names none. The
     * client can make them up, but for line breaks and the like.
     */
    public @Nullable String method() {
        return own.containsKey(METHOD) ? ShortForm.printable(own(SERVICE) + '/' + own(METHOD)) : null;
    }

    private String own(String name) {
        return new String(own.getOrDefault(name, NO_BYTES), StandardCharsets.UTF_8);
    }

    boolean isEmpty() {
        return metadata.isEmpty() && own.isEmpty();
    }

    /** How many bytes {@link #write} writes. */
    int bytes() {
        int sum = LENGTH_BYTES + metadata.sizeBytes();
        for (Map.Entry<String, byte[]> each : own.entrySet()) {
            sum += ENTRY_BYTES + each.getKey().length() + each.getValue().length;
        }
        return sum;
    }

    void write(ByteBuf out) {
        out.writeShort(bytes() - LENGTH_BYTES);
        own.forEach((name, value) -> write(out, name, value));
        for (String name : metadata.names()) {
            write(out, name, metadata.bytes(name));
        }
    }

    private static void write(ByteBuf out, String name, byte @Nullable [] value) {
        byte[] bytes = value == null ? NO_BYTES : value;
        out.writeByte(name.length());
        out.writeCharSequence(name, StandardCharsets.US_ASCII);
        out.writeShort(bytes.length).writeBytes(bytes);
    }

    /**
     * Reads them from a frame, and checks all lengths before it allocates anything.
     *
     * @return null if they are over the limits; then the rest of the frame is the payload nevertheless
     * @throws IllegalArgumentException they are not well-formed
     */
    static @Nullable Headers read(ByteBuf frame) {
        if (frame.readableBytes() < LENGTH_BYTES) {
            throw new IllegalArgumentException("no length of headers");
        }
        int bytes = frame.readUnsignedShort();
        if (bytes > frame.readableBytes()) {
            throw new IllegalArgumentException("headers of " + bytes + " bytes");
        }
        int begin = frame.readerIndex();
        int end = begin + bytes;
        frame.readerIndex(end);
        return bytes == 0
                ? NONE
                : count(frame, begin, end) > MAX_ENTRIES || bytes > MAX_BYTES ? null : read(frame, begin, end);
    }

    /** Checks the form of the entries, as far as there may be entries, and counts them. */
    private static int count(ByteBuf frame, int begin, int end) {
        int count = 0;
        for (int at = begin; at < end && count <= MAX_ENTRIES; count++) {
            int nameEnd = at + 1 + frame.getUnsignedByte(at);
            if (nameEnd > end - 2) {
                throw new IllegalArgumentException("a header that is cut off");
            }
            checkName(frame, at + 1, nameEnd);
            at = nameEnd + 2 + frame.getUnsignedShort(nameEnd);
            if (at > end) {
                throw new IllegalArgumentException("a header that is cut off");
            }
        }
        return count;
    }

    private static void checkName(ByteBuf frame, int begin, int end) {
        int at = begin < end && frame.getByte(begin) == ':' ? begin + 1 : begin;
        boolean valid = at < end;
        while (valid && at < end) {
            valid = Metadata.isNameByte(frame.getByte(at++));
        }
        if (!valid) {
            throw new IllegalArgumentException("a header without a proper name");
        }
    }

    private static @Nullable Headers read(ByteBuf frame, int begin, int end) {
        Map<String, byte[]> metadata = new LinkedHashMap<>();
        Map<String, byte[]> own = new LinkedHashMap<>();
        int at = begin;
        while (at < end) {
            int nameEnd = at + 1 + frame.getUnsignedByte(at);
            String name = frame.toString(at + 1, nameEnd - at - 1, StandardCharsets.US_ASCII);
            byte[] value = new byte[frame.getUnsignedShort(nameEnd)];
            frame.getBytes(nameEnd + 2, value);
            at = nameEnd + 2 + value.length;
            if ((name.charAt(0) == ':' ? own : metadata).put(name, value) != null) {
                throw new IllegalArgumentException("two headers of one name");
            }
        }
        try {
            return new Headers(Metadata.of(metadata), own.isEmpty() ? Map.of() : own);
        } catch (IllegalArgumentException overItsLimits) {
            return null;
        }
    }
}
