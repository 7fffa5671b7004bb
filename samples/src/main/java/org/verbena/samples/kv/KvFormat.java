package org.verbena.samples.kv;

import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;

/**
 * What {@code kv-server} and {@code kv-client} agree on. A client reads the server's memory and takes locks in it by
 * itself; it changes values by asking the server.
 *
 * <p><b>The data</b>, which clients may only read; little endian:
 *
 * <pre>{@code
 *   0  clock 8         milliseconds; moved by the event loop that serves requests, by no more than 10 at a time
 *  64  index           slots + 15 entries of 32 bytes:
 *                          version 8 | hash of the key 8 | offset of the record 8 | its length 4
 *                              | CRC-32C of these 28 bytes 4
 *  ..  records         two for each entry, of which one is current:
 *                          version 8 | key length 4 | value length 4 | key | value | CRC-32C of all before it 4
 * }</pre>
 *
 * <p><b>The locks</b>, on which clients may do atomics: 8 bytes for each entry. 0 is free; else
 * {@code until << 24 | owner}, where {@code until} is the time on the server's clock up to which the lock is held, and
 * {@code owner} the number that the server gave the client.
 *
 * <p><b>get</b> is two RDMA READs and none of the server's instructions: the 16 entries in which the key can be, then
 * the record. Nothing says in what order, or how many at a time, an adapter reads bytes that a processor is writing. So
 * what was read counts only if it verifies: an entry has an even version and a right checksum, and its record has the
 * same version, the key and a right checksum. Otherwise the read was torn, and is repeated, {@value #MAX_TRIES} times
 * at the most. The server writes the record that is not current, and then the entry: a reader that comes in between
 * finds the old value whole.
 *
 * <p><b>Requests</b>, messages of the short form of the API; big endian. The server's one event loop serves them one
 * after the other.
 *
 * <pre>{@code
 *   LAYOUT | version 1                                --> OK | slots 4 | record bytes 4 | owner 4
 *                                                            | token of the data | token of the locks
 *   PUT | lock word 8, or 0 | key length 2 | key | value  --> OK | version 8
 *   COUNTERS                                          --> OK | requests served 8 | puts 8 | keys 8
 *                                                     or FAILED | reason, UTF-8
 * }</pre>
 *
 * <p>Where the adapter has no atomics there is no token of the locks.
 *
 * <p><b>lock</b> reads clock and lock word; if that is 0 or its time is over, a compare-and-swap puts the client's own
 * in. Renewing swaps it for a later one, releasing for 0. A client that dies holds a lock only until its time is over.
 * While a lock is held the server takes a PUT to its key only with the lock's word. That is exact for the holder:
 * nobody can see that a lock's time is over before the loop has moved the clock, which it does between requests, so a
 * PUT that was taken is done before another client can hold the lock.
 *
 * <p>What a lock does not protect: gets, which are always allowed; a PUT without it that the server had begun when the
 * lock was taken; whatever a holder does elsewhere, as it may be paused until its time is over without noticing;
 * fairness, as the fastest gets it; and anything against clients that do not keep to this, since all may do atomics on
 * all locks.
 */
final class KvFormat {
    static final int VERSION = 1;

    // None of them is 0 or a kind of another sample's messages, so that a client recognises an answer that is not from
    // kv-server.
    static final byte LAYOUT = 0x41;
    static final byte PUT = 0x42;
    static final byte COUNTERS = 0x43;

    static final byte OK = 0x4b;
    static final byte FAILED = 0x4e;

    static final long CLOCK_OFFSET = 0;

    /**
     * The most that the clock moves at once: a server that was busy for longer lets it fall behind, rather than end
     * locks by surprise.
     */
    static final int CLOCK_STEP_MILLIS = 10;

    /**
     * By how much the clock can run ahead between two reads of it: the step that is due, and rounding. The holder of a
     * lock takes it off its time.
     */
    static final int CLOCK_LEAD_MILLIS = CLOCK_STEP_MILLIS + 1;

    static final long INDEX_OFFSET = 64;
    static final int ENTRY_BYTES = 32;
    static final int LOCK_BYTES = 8;

    /** How many entries a key can be in, beginning with the one of its hash. */
    static final int WINDOW = 16;

    static final int MAX_KEY_BYTES = 255;

    /** How often a get reads before it gives up: about 50 ms of torn reads, which no live server causes. */
    static final int MAX_TRIES = 64;

    static final int OWNER_BITS = 24;
    static final int MAX_OWNER = (1 << OWNER_BITS) - 1;

    private static final int ENTRY_CHECKED_BYTES = 28;
    private static final int RECORD_HEADER_BYTES = 16;
    private static final int CHECKSUM_BYTES = 4;

    private KvFormat() {}

    /** Where things are. */
    record Geometry(int slots, int recordBytes) {
        static Geometry of(int slots, int maxValueBytes) {
            int bytes = RECORD_HEADER_BYTES + MAX_KEY_BYTES + maxValueBytes + CHECKSUM_BYTES;
            return new Geometry(slots, (bytes + 7) & ~7);
        }

        int entries() {
            return slots + WINDOW - 1;
        }

        int maxValueBytes(int keyBytes) {
            return recordBytes - RECORD_HEADER_BYTES - keyBytes - CHECKSUM_BYTES;
        }

        int firstEntryOf(long hash) {
            return (int) Long.remainderUnsigned(hash, slots);
        }

        static long entryOffset(int entry) {
            return INDEX_OFFSET + (long) entry * ENTRY_BYTES;
        }

        /** An entry's two records are written in turn. */
        long recordOffset(int entry, long version) {
            long records = INDEX_OFFSET + (long) entries() * ENTRY_BYTES;
            return records + (2L * entry + (version >>> 1 & 1)) * recordBytes;
        }

        long dataBytes() {
            return recordOffset(entries(), 0);
        }

        long lockBytes() {
            return (long) entries() * LOCK_BYTES;
        }
    }

    /** A verified entry. */
    record Entry(long version, long hash, long recordOffset, int recordBytes) {
        /** That never had a key. */
        static final Entry EMPTY = new Entry(0, 0, 0, 0);

        void write(ByteBuffer out) {
            ByteBuffer entry = out.order(ByteOrder.LITTLE_ENDIAN);
            entry.putLong(0, version).putLong(8, hash).putLong(16, recordOffset).putInt(24, recordBytes);
            entry.putInt(ENTRY_CHECKED_BYTES, checksum(entry.slice(0, ENTRY_CHECKED_BYTES)));
        }

        /** Reads one; null if the read was torn. */
        static @Nullable Entry read(ByteBuf in, int index) {
            long version = in.getLongLE(index);
            long hash = in.getLongLE(index + 8);
            long recordOffset = in.getLongLE(index + 16);
            int recordBytes = in.getIntLE(index + 24);
            int checksum = in.getIntLE(index + ENTRY_CHECKED_BYTES);
            if (version == 0 && hash == 0 && recordOffset == 0 && recordBytes == 0 && checksum == 0) {
                return EMPTY;
            }
            boolean whole = version > 0
                    && (version & 1) == 0
                    && recordBytes >= RECORD_HEADER_BYTES + CHECKSUM_BYTES
                    && checksum == checksum(in.nioBuffer(index, ENTRY_CHECKED_BYTES));
            return whole ? new Entry(version, hash, recordOffset, recordBytes) : null;
        }
    }

    /** A verified key and value. */
    record Item(int entry, long version, byte[] key, byte[] value) {
        static int recordBytes(byte[] key, int valueBytes) {
            return RECORD_HEADER_BYTES + key.length + valueBytes + CHECKSUM_BYTES;
        }

        static void write(ByteBuffer out, long version, byte[] key, ByteBuffer value) {
            ByteBuffer record = out.order(ByteOrder.LITTLE_ENDIAN).clear();
            record.putLong(version).putInt(key.length).putInt(value.remaining());
            record.put(key).put(value);
            record.putInt(checksum(record.slice(0, record.position())));
        }

        /** Reads the record that an entry names; null if the read was torn. */
        static @Nullable Item read(int entry, Entry named, ByteBuf in) {
            int checked = in.readableBytes() - CHECKSUM_BYTES;
            int start = in.readerIndex();
            if (in.getLongLE(start) != named.version
                    || in.getIntLE(start + checked) != checksum(in.nioBuffer(start, checked))) {
                return null;
            }
            byte[] key = new byte[in.getIntLE(start + 8)];
            byte[] value = new byte[in.getIntLE(start + 12)];
            in.getBytes(start + RECORD_HEADER_BYTES, key).getBytes(start + RECORD_HEADER_BYTES + key.length, value);
            return new Item(entry, named.version, key, value);
        }

        String keyText() {
            return new String(key, StandardCharsets.UTF_8);
        }

        String text() {
            return new String(value, StandardCharsets.UTF_8);
        }
    }

    static byte[] key(String text) {
        byte[] key = text.getBytes(StandardCharsets.UTF_8);
        if (key.length == 0 || key.length > MAX_KEY_BYTES) {
            throw new CommandFailure("a key has 1 to " + MAX_KEY_BYTES + " bytes in UTF-8; this one has " + key.length);
        }
        return key;
    }

    /** FNV-1a, then mixed so that all bits tell. */
    static long hash(byte[] key) {
        long hash = 0xcbf29ce484222325L;
        for (byte b : key) {
            hash = (hash ^ (b & 0xff)) * 0x100000001b3L;
        }
        hash = (hash ^ hash >>> 33) * 0xff51afd7ed558ccdL;
        return hash ^ hash >>> 33;
    }

    static long lockWord(long untilMillis, int owner) {
        return untilMillis << OWNER_BITS | owner;
    }

    static long untilMillis(long lockWord) {
        return lockWord >>> OWNER_BITS;
    }

    static int owner(long lockWord) {
        return (int) (lockWord & MAX_OWNER);
    }

    private static int checksum(ByteBuffer bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        return (int) crc.getValue();
    }
}
