package org.verbena.grpc.internal.wire;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;

/**
 * Reads the frames of one direction of a connection: fed messages, it calls a {@link FrameListener}. It checks all that
 * a frame shows by itself; what depends on the calls that are open is the listener's. One thread.
 */
public final class FrameReader {
    private static final int GREATEST_STATUS = 16;

    private final FieldReader fieldReader;
    private boolean begun;

    /**
     * Expects SETTINGS first.
     *
     * @param maxFieldsBytes how much metadata is accepted in a frame
     */
    public FrameReader(int maxFieldsBytes) {
        fieldReader = new FieldReader(maxFieldsBytes);
    }

    /**
     * Reads all frames of a message.
     *
     * @param message read to its end
     * @param to gets its frames
     * @throws ProtocolViolation some of it is no frame; those before it have been delivered
     */
    public void read(ByteBuf message, FrameListener to) throws ProtocolViolation {
        check(message.isReadable(), "an empty message");
        while (message.isReadable()) {
            check(message.readableBytes() >= Frames.HEADER_BYTES, "a message that ends within a frame's header");
            int kind = message.readUnsignedByte();
            int flags = message.readUnsignedByte();
            int stream = message.readInt();
            int length = message.readInt();
            check(length >= 0 && length <= message.readableBytes(), "a frame that is longer than its message");
            check(begun == (kind != Frames.SETTINGS), begun ? "SETTINGS twice" : "another frame before SETTINGS");
            int end = message.readerIndex() + length;
            deliver(kind, flags, stream, length, message, to);
            message.readerIndex(end);
        }
    }

    private void deliver(int kind, int flags, int stream, int length, ByteBuf from, FrameListener to)
            throws ProtocolViolation {
        boolean flagged = (flags & 1) != 0; // the same bit in all kinds that have a flag; others are ignored
        boolean ofConnection = kind == Frames.SETTINGS || kind == Frames.GOAWAY || kind == Frames.PING;
        check(ofConnection ? stream >= 0 : stream > 0, "a frame for a stream that cannot be");
        switch (kind) {
            case Frames.SETTINGS -> {
                check(length >= Frames.SETTINGS_BYTES, "SETTINGS that are too short");
                to.onSettings(settings(from));
                begun = true;
            }
            case Frames.HEADERS -> to.onHeaders(stream, flagged, fields(from, length));
            case Frames.DATA -> {
                check(length <= Frames.MAX_DATA_BYTES, "DATA that is too long");
                check(length > 0 || flagged, "DATA without bytes and without the end of a call");
                to.onData(stream, flagged, from, length);
            }
            case Frames.TRAILERS -> to.onTrailers(stream, fields(from, length));
            case Frames.RESET -> {
                check(length >= 1 && length <= 1 + Frames.MAX_TEXT_BYTES, "RESET of a wrong length");
                int status = from.readUnsignedByte();
                check(status >= 1 && status <= GREATEST_STATUS, "RESET with an unknown status");
                to.onReset(stream, flagged, status, text(from, length - 1));
            }
            case Frames.WINDOW -> {
                check(length == Integer.BYTES, "WINDOW of a wrong length");
                int bytes = from.readInt();
                check(bytes > 0, "WINDOW without credit");
                to.onWindow(stream, bytes);
            }
            case Frames.GOAWAY -> {
                check(
                        length >= Frames.GOAWAY_BYTES && length <= Frames.GOAWAY_BYTES + Frames.MAX_TEXT_BYTES,
                        "GOAWAY of a wrong length");
                int last = from.readInt();
                GoAwayReason reason = GoAwayReason.of(from.readUnsignedByte());
                if (last < 0 || reason == null) {
                    throw new ProtocolViolation("GOAWAY with an unknown reason or stream");
                }
                to.onGoAway(last, reason, text(from, length - Frames.GOAWAY_BYTES));
            }
            case Frames.PING -> {
                check(length == Long.BYTES, "PING of a wrong length");
                to.onPing(flagged, from.readLong());
            }
            default -> throw new ProtocolViolation("a frame of the unknown kind " + kind);
        }
    }

    private static Settings settings(ByteBuf from) throws ProtocolViolation {
        check(from.readInt() == Frames.MAGIC, "a first frame that is not of gRPC's native transport");
        int lowest = from.readUnsignedByte();
        int highest = from.readUnsignedByte();
        from.skipBytes(Short.BYTES);
        Settings settings = new Settings(lowest, highest, from.readInt(), from.readInt());
        check(
                settings.streamWindowBytes() >= Frames.MIN_WINDOW_BYTES && settings.maxStreams() >= 0,
                "SETTINGS out of range");
        check(
                lowest <= Frames.VERSION && highest >= Frames.VERSION,
                "it speaks versions " + lowest + " to " + highest + " of the native transport, and this end "
                        + Frames.VERSION);
        return settings;
    }

    private Fields fields(ByteBuf from, int length) throws ProtocolViolation {
        check(length <= Frames.MAX_FIELDS_BYTES, "metadata that is too long");
        return fieldReader.read(from, length);
    }

    private static String text(ByteBuf from, int length) {
        return from.readString(length, StandardCharsets.UTF_8);
    }

    /** The texts are constants, since each frame passes here. */
    static void check(boolean holds, String violation) throws ProtocolViolation {
        if (!holds) {
            throw new ProtocolViolation(violation);
        }
    }
}
