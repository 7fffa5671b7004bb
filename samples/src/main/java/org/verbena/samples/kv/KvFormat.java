package org.verbena.samples.kv;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The formats of {@code kv-server} and {@code kv-client}. A client reads the server's memory by itself; to change
 * values it sends requests to the server.
 *
 * <p><b>The memory</b>, which clients may only read: slots of the same length, little endian. An empty one begins with
 * zeros. A key is in one of the {@value #PROBES} slots that begin with the one of its hash: in the first that had no
 * other key.
 *
 * <pre>{@code
 *   key length 4 | value length 4 | key | value | CRC-32C of all before it 4
 * }</pre>
 *
 * <p><b>get</b> is an RDMA READ of a slot, and of the next if it holds another key, without the server's program. The
 * order in which an adapter reads bytes that a processor is writing is not defined. So the result counts only if its
 * checksum is correct. Otherwise the read was torn, and is repeated.
 *
 * <p><b>Requests</b>, messages of the short form of the API; big endian:
 *
 * <pre>{@code
 *   OPEN                             --> OK | slots 4 | slot length 4 | requests served 8 | token of the memory
 *   PUT | key length 1 | key | value --> OK
 *                                or FAILED | reason, UTF-8
 * }</pre>
 */
final class KvFormat {
    // The values differ from those of other samples, so a client notices when its peer is not kv-server.
    static final byte OPEN = 0x41;
    static final byte PUT = 0x42;
    static final byte OK = 0x4b;
    static final byte FAILED = 0x4e;

    static final int MAX_KEY_BYTES = 255;

    /** In how many slots a key can be. */
    static final int PROBES = 16;

    private static final int HEADER_BYTES = 8;
    private static final int CHECKSUM_BYTES = 4;

    private KvFormat() {}

    /** Where slots are. */
    record Geometry(int slots, int slotBytes) {
        static Geometry of(int slots, int maxValueBytes) {
            int bytes = HEADER_BYTES + MAX_KEY_BYTES + maxValueBytes + CHECKSUM_BYTES;
            return new Geometry(slots, (bytes + 7) & ~7);
        }

        /** Extra slots behind the end, for keys whose hash is near it. */
        long memoryBytes() {
            return (slots + PROBES - 1L) * slotBytes;
        }

        long offsetOf(byte[] key, int probe) {
            long hash = Integer.toUnsignedLong(checksum(ByteBuffer.wrap(key)));
            return (hash % slots + probe) * slotBytes;
        }

        int maxValueBytes(int keyBytes) {
            return slotBytes - HEADER_BYTES - keyBytes - CHECKSUM_BYTES;
        }
    }

    /** The content of a slot. */
    record Item(byte[] key, byte[] value) {
        /** The content of an empty slot. */
        static final Item NONE = new Item(new byte[0], new byte[0]);

        boolean isNone() {
            return key.length == 0;
        }

        boolean isOf(byte[] other) {
            return Arrays.equals(key, other);
        }

        void write(ByteBuffer slot) {
            slot.order(ByteOrder.LITTLE_ENDIAN).clear();
            slot.putInt(key.length).putInt(value.length).put(key).put(value);
            slot.putInt(checksum(slot.slice(0, slot.position())));
        }

        /** Reads a slot, or a copy of it; null if the copy is torn. */
        static @Nullable Item read(ByteBuffer slot) {
            slot.order(ByteOrder.LITTLE_ENDIAN).clear();
            int keyBytes = slot.getInt();
            int valueBytes = slot.getInt();
            if (keyBytes == 0) {
                return NONE;
            }
            int maxBytes = slot.remaining() - CHECKSUM_BYTES;
            if (keyBytes < 0 || keyBytes > maxBytes || valueBytes < 0 || valueBytes > maxBytes - keyBytes) {
                return null;
            }
            byte[] key = new byte[keyBytes];
            byte[] value = new byte[valueBytes];
            slot.get(key).get(value);
            int checksum = checksum(slot.slice(0, slot.position()));
            return slot.getInt() == checksum ? new Item(key, value) : null;
        }
    }

    private static int checksum(ByteBuffer bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        return (int) crc.getValue();
    }
}
