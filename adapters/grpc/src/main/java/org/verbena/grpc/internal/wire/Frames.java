package org.verbena.grpc.internal.wire;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;

/**
 * Writes frames. A message of Verbena's protocol has one or more whole frames, one after another. Numbers are unsigned
 * and in network byte order.
 *
 * <pre>{@code
 *  0      1       2                6                10
 * +------+-------+----------------+----------------+---------+
 * | kind | flags | stream         | payload length | payload |
 * +------+-------+----------------+----------------+---------+
 * }</pre>
 */
public final class Frames {
    /** Bytes in front of each payload. */
    public static final int HEADER_BYTES = 10;

    /** The version of the wire that this release speaks. */
    public static final int VERSION = 1;

    /** The longest payload of DATA: a message of 1 MiB with what protobuf and gRPC put in front of it. */
    public static final int MAX_DATA_BYTES = (1 << 20) + 1024;

    /** The longest payload of HEADERS and TRAILERS, whatever the peer accepts. */
    public static final int MAX_FIELDS_BYTES = 1 << 20;

    /** The longest message of Verbena's protocol that an end sends. */
    public static final int MAX_MESSAGE_BYTES = HEADER_BYTES + MAX_DATA_BYTES;

    /** What a DATA counts at least, since a receiver needs some memory for each, however short. */
    private static final int MIN_CHARGE_BYTES = 64;

    /** The smallest window that an end may announce. */
    public static final int MIN_WINDOW_BYTES = 1024;

    static final int MAGIC = 0x56475250; // VGRP

    static final int SETTINGS = 1;
    static final int HEADERS = 2;
    static final int DATA = 3;
    static final int TRAILERS = 4;
    static final int RESET = 5;
    static final int WINDOW = 6;
    static final int GOAWAY = 7;
    static final int PING = 8;

    /** HEADERS and DATA: the client's half of the call ends with this frame. */
    static final int END = 1;

    /** PING: it answers one. */
    static final int ACK = 1;

    /** RESET: the call has not begun, so it may be made again. */
    static final int NOT_PROCESSED = 1;

    static final int SETTINGS_BYTES = 16;
    static final int GOAWAY_BYTES = 5;

    /** The longest text of a RESET or GOAWAY. */
    static final int MAX_TEXT_BYTES = 256;

    private static final int LENGTH_AT = 6;

    private Frames() {}

    private static void header(ByteBuf into, int kind, int flags, int stream, int lengthBytes) {
        into.writeByte(kind).writeByte(flags).writeInt(stream).writeInt(lengthBytes);
    }

    /** Writes SETTINGS. */
    public static void settings(ByteBuf into, Settings settings) {
        header(into, SETTINGS, 0, 0, SETTINGS_BYTES);
        into.writeInt(MAGIC)
                .writeByte(settings.lowestVersion())
                .writeByte(settings.highestVersion())
                .writeShort(0)
                .writeInt(settings.streamWindowBytes())
                .writeInt(settings.maxStreams());
    }

    /**
     * Writes the header of HEADERS or TRAILERS, whose length is not known yet.
     *
     * @return what {@link #endFields} needs
     */
    public static int beginFields(ByteBuf into, boolean trailers, int stream, boolean end) {
        int begin = into.writerIndex();
        header(into, trailers ? TRAILERS : HEADERS, end ? END : 0, stream, 0);
        return begin;
    }

    /** Completes the header of a frame whose fields have been written. */
    public static void endFields(ByteBuf into, int begin) {
        into.setInt(begin + LENGTH_AT, into.writerIndex() - begin - HEADER_BYTES);
    }

    /** Writes the header of DATA, in front of its payload. */
    public static void data(ByteBuf into, int stream, boolean end, int lengthBytes) {
        header(into, DATA, end ? END : 0, stream, lengthBytes);
    }

    /** How much of its call's window a DATA takes, which has a payload of so many bytes. */
    public static int charge(int lengthBytes) {
        return lengthBytes == 0 ? 0 : Math.max(lengthBytes, MIN_CHARGE_BYTES);
    }

    /** Writes RESET. */
    public static void reset(ByteBuf into, int stream, boolean notProcessed, int status, String text) {
        byte[] bytes = text(text);
        header(into, RESET, notProcessed ? NOT_PROCESSED : 0, stream, 1 + bytes.length);
        into.writeByte(status).writeBytes(bytes);
    }

    /** Writes WINDOW. */
    public static void window(ByteBuf into, int stream, int bytes) {
        header(into, WINDOW, 0, stream, Integer.BYTES);
        into.writeInt(bytes);
    }

    /** Writes GOAWAY. */
    public static void goAway(ByteBuf into, int lastStream, GoAwayReason reason, String text) {
        byte[] bytes = text(text);
        header(into, GOAWAY, 0, 0, GOAWAY_BYTES + bytes.length);
        into.writeInt(lastStream).writeByte(reason.wireValue()).writeBytes(bytes);
    }

    /** Writes PING. */
    public static void ping(ByteBuf into, boolean ack, long nonce) {
        header(into, PING, ack ? ACK : 0, 0, Long.BYTES);
        into.writeLong(nonce);
    }

    /** Text for the peer, cut at a character's end. */
    private static byte[] text(String text) {
        String cut = text;
        while (ByteBufUtil.utf8Bytes(cut) > MAX_TEXT_BYTES) {
            int end = Math.min(cut.length() - 1, MAX_TEXT_BYTES);
            cut = cut.substring(0, Character.isHighSurrogate(cut.charAt(end - 1)) ? end - 1 : end);
        }
        return cut.getBytes(StandardCharsets.UTF_8);
    }
}
