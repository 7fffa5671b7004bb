package org.verbena.grpc.internal.wire;

/**
 * How fields are written. Each direction of a connection has a table of slots, which the writer fills as it likes and
 * the reader follows; a reader's table cannot grow beyond {@value #SLOTS} times {@value #MAX_STORED_BYTES} bytes. A
 * field begins with a tag:
 *
 * <pre>{@code
 * 0        PLAIN    name length, name, value length, value
 * 1        STORE    slot, name length, name, value length, value    and the slot has the field from now on
 * 2        VALUE    slot, value length, value                       with the slot's name
 * 3        REPLACE  slot, value length, value                       the same, and the slot has the field from now on
 * 64..127  STORED   the field of slot tag - 64
 * }</pre>
 *
 * <p>A slot is one byte. A length has 7 bits in each byte, the lowest first; all but the last byte have the highest
 * bit set; it has at most three bytes.
 */
final class FieldTable {
    static final int PLAIN = 0;
    static final int STORE = 1;
    static final int VALUE = 2;
    static final int REPLACE = 3;
    static final int STORED = 64;

    /** Calls of one program have a dozen names; a byte holds tag and slot. */
    static final int SLOTS = 64;

    /** Name and value of a slot together: enough for a token, and 16 KiB for a table. */
    static final int MAX_STORED_BYTES = 256;

    static final int MAX_LENGTH_BYTES = 3;

    private FieldTable() {}

    /** Whether the values of a name are bytes and not text: it ends with {@code -bin}. */
    static boolean isBinary(byte[] name) {
        int n = name.length;
        return n > 4 && name[n - 4] == '-' && name[n - 3] == 'b' && name[n - 2] == 'i' && name[n - 1] == 'n';
    }
}
