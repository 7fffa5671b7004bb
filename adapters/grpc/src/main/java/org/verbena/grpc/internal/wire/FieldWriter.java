package org.verbena.grpc.internal.wire;

import io.netty.buffer.ByteBuf;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Writes the fields of one direction of a connection. The first {@value FieldTable#SLOTS} names get a slot each. A slot
 * has the value that its name had at first, and gets another when that comes twice running: so values that repeat are
 * stored, and those that are new each time, such as a deadline, replace nothing. One thread.
 */
public final class FieldWriter {
    private static final int INDEX = 2 * FieldTable.SLOTS;

    /** By the name's hash, with linear probing; at most half of it is used. */
    private final @Nullable Slot[] index = new @Nullable Slot[INDEX];

    private int slots;

    private static final class Slot {
        final int number;
        final byte[] name;
        byte[] value;

        /** The last other value of this name; null if there was none, or a long one. */
        byte @Nullable [] other;

        Slot(int number, byte[] name, byte[] value) {
            this.number = number;
            this.name = name;
            this.value = value;
        }
    }

    /** Creates an empty table. */
    public FieldWriter() {}

    /**
     * Writes a field.
     *
     * @param into has room, or grows
     * @param name kept, and must not change
     * @param value kept if it is text, which gRPC does not change; a binary value is the program's, and is copied
     */
    public void write(ByteBuf into, byte[] name, byte[] value) {
        int at = Arrays.hashCode(name) & (INDEX - 1);
        Slot slot = index[at];
        while (slot != null && !Arrays.equals(slot.name, name)) {
            at = (at + 1) & (INDEX - 1);
            slot = index[at];
        }
        boolean fits = name.length + value.length <= FieldTable.MAX_STORED_BYTES;
        if (slot == null) {
            boolean stores = fits && slots < FieldTable.SLOTS;
            into.writeByte(stores ? FieldTable.STORE : FieldTable.PLAIN);
            if (stores) {
                into.writeByte(slots);
                index[at] = new Slot(slots, name, kept(name, value));
                slots++;
            }
            bytes(into, name);
            bytes(into, value);
        } else if (Arrays.equals(slot.value, value)) {
            into.writeByte(FieldTable.STORED + slot.number);
        } else {
            boolean again = Arrays.equals(slot.other, value);
            into.writeByte(again ? FieldTable.REPLACE : FieldTable.VALUE).writeByte(slot.number);
            bytes(into, value);
            if (again) {
                slot.value = kept(name, value);
                slot.other = null;
            } else {
                slot.other = fits ? kept(name, value) : null;
            }
        }
    }

    private static byte[] kept(byte[] name, byte[] value) {
        return FieldTable.isBinary(name) ? value.clone() : value;
    }

    private static void bytes(ByteBuf into, byte[] bytes) {
        int length = bytes.length;
        while (length >= 0x80) {
            into.writeByte(length | 0x80);
            length >>>= 7;
        }
        into.writeByte(length).writeBytes(bytes);
    }

    /**
     * Returns how many bytes a field takes at most.
     *
     * @param name of the field
     * @param value of the field
     * @return an upper bound
     */
    public static long maxBytes(byte[] name, byte[] value) {
        return 2L + 2 * FieldTable.MAX_LENGTH_BYTES + name.length + value.length;
    }
}
