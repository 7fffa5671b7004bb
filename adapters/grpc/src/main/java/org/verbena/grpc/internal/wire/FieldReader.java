package org.verbena.grpc.internal.wire;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * Reads the fields of one direction of a connection. Fields beyond the limit are not kept, but still change the table,
 * so that the connection goes on after a frame with too much metadata. One thread.
 */
final class FieldReader {
    private final int maxBytes;
    private final @Nullable Slot[] slots = new @Nullable Slot[FieldTable.SLOTS];

    private static final class Slot {
        final byte[] name;
        final Kind kind;
        byte[] value;

        /** The value of a pseudo-field. */
        @Nullable String text;

        Slot(byte[] name, Kind kind, byte[] value) {
            this.name = name;
            this.kind = kind;
            this.value = value;
        }
    }

    private enum Kind {
        PATH,
        AUTHORITY,
        TEXT,
        BINARY
    }

    FieldReader(int maxBytes) {
        this.maxBytes = maxBytes;
    }

    Fields read(ByteBuf from, int lengthBytes) throws ProtocolViolation {
        int end = from.readerIndex() + lengthBytes;
        Fields fields = new Fields();
        while (from.readerIndex() < end) {
            int tag = from.readUnsignedByte();
            if (tag >= FieldTable.STORED && tag < FieldTable.STORED + FieldTable.SLOTS) {
                Slot slot = slot(tag - FieldTable.STORED);
                add(fields, slot.name, slot.kind, slot.value, slot);
                continue;
            }
            FrameReader.check(tag <= FieldTable.REPLACE, "a field with an unknown tag");
            int number = tag == FieldTable.PLAIN ? 0 : number(from, end);
            if (tag == FieldTable.PLAIN || tag == FieldTable.STORE) {
                byte[] name = bytes(from, end);
                Kind kind = kind(name);
                byte[] value = bytes(from, end);
                Slot slot = null;
                if (tag == FieldTable.STORE) {
                    checkFits(name, value);
                    slot = new Slot(name, kind, value);
                    slots[number] = slot;
                }
                add(fields, name, kind, value, slot);
            } else {
                Slot slot = slot(number);
                byte[] value = bytes(from, end);
                boolean replaces = tag == FieldTable.REPLACE;
                if (replaces) {
                    checkFits(slot.name, value);
                    slot.value = value;
                    slot.text = null;
                }
                add(fields, slot.name, slot.kind, value, replaces ? slot : null);
            }
        }
        return fields;
    }

    /** Adds a field, whose value a slot may have as well. */
    private void add(Fields fields, byte[] name, Kind kind, byte[] value, @Nullable Slot slot) {
        if (!fields.count(name.length, value.length, maxBytes)) {
            return;
        }
        switch (kind) {
            case PATH -> fields.path(text(value, slot));
            case AUTHORITY -> fields.authority(text(value, slot));
            case TEXT -> fields.add(name, value);
            // gRPC gives a binary value to its program as it is: one that a slot keeps must not change.
            case BINARY -> fields.add(name, slot == null ? value : value.clone());
        }
    }

    private static String text(byte[] value, @Nullable Slot slot) {
        if (slot == null) {
            return new String(value, StandardCharsets.UTF_8);
        }
        String text = slot.text;
        if (text == null) {
            text = new String(value, StandardCharsets.UTF_8);
            slot.text = text;
        }
        return text;
    }

    private static int number(ByteBuf from, int end) throws ProtocolViolation {
        FrameReader.check(from.readerIndex() < end, "a field without its slot");
        int number = from.readUnsignedByte();
        FrameReader.check(number < FieldTable.SLOTS, "a field in a slot that does not exist");
        return number;
    }

    private Slot slot(int number) throws ProtocolViolation {
        Slot slot = slots[number];
        if (slot == null) {
            throw new ProtocolViolation("a field in an empty slot");
        }
        return slot;
    }

    private static void checkFits(byte[] name, byte[] value) throws ProtocolViolation {
        FrameReader.check(
                name.length + value.length <= FieldTable.MAX_STORED_BYTES, "a field that is too long for a slot");
    }

    private static byte[] bytes(ByteBuf from, int end) throws ProtocolViolation {
        int length = 0;
        int shift = 0;
        int next;
        do {
            FrameReader.check(
                    from.readerIndex() < end && shift < 7 * FieldTable.MAX_LENGTH_BYTES, "a field without its length");
            next = from.readUnsignedByte();
            length |= (next & 0x7f) << shift;
            shift += 7;
        } while (next >= 0x80);
        FrameReader.check(length <= end - from.readerIndex(), "a field that is longer than its frame");
        byte[] bytes = new byte[length];
        from.readBytes(bytes);
        return bytes;
    }

    /** The names that gRPC allows, and two of ours. */
    private static Kind kind(byte[] name) throws ProtocolViolation {
        FrameReader.check(name.length > 0, "a field without a name");
        if (name[0] == ':') {
            String pseudo = new String(name, StandardCharsets.US_ASCII);
            FrameReader.check(
                    pseudo.equals(Fields.PATH) || pseudo.equals(Fields.AUTHORITY), "an unknown field with a colon");
            return pseudo.equals(Fields.PATH) ? Kind.PATH : Kind.AUTHORITY;
        }
        for (byte c : name) {
            FrameReader.check(
                    (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.',
                    "a field whose name has a character that gRPC does not allow");
        }
        return FieldTable.isBinary(name) ? Kind.BINARY : Kind.TEXT;
    }
}
