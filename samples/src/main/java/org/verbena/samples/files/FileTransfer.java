package org.verbena.samples.files;

import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * What {@code send-file} and {@code recv-file} say to each other: requests of the sender and their replies, in the
 * short form of the API. All numbers are big endian.
 *
 * <pre>{@code
 *   sender                                           receiver
 *   OFFER | version 1 | size 8 | name, UTF-8    -->  locks and reads NAME.part, if there is one
 *                       <-- OK | offset 8 | SHA-256 of these first bytes 32
 *   compares it with its own first bytes
 *   BEGIN | offset 8, or 0 to start over        -->  <-- OK
 *   DATA  | offset 8 | content                  -->  writes it     <-- OK      a window of these at once, in order
 *   END   | SHA-256 of the whole file 32        -->  compares it, syncs NAME.part, renames it to NAME   <-- OK
 *
 *   to any of them, instead of OK:                   <-- FAILED | reason, UTF-8; the file is not under way any more
 * }</pre>
 *
 * <p>Each begins with one byte, the kind. One connection carries one file after the other. A receiver, or a sender,
 * that is killed leaves NAME.part behind; the next OFFER goes on after it if the content is the same up to there, which
 * the hash tells: of a file that was changed, and of a part that was damaged, everything is sent again.
 *
 * <p>The content leaves the file into registered memory and goes from there into the receiver's registered memory and
 * into its file; nothing in between copies it. Only the hash reads it, on both sides.
 */
final class FileTransfer {
    static final int VERSION = 1;

    // None of them is 0 or a kind of another sample's messages, so that a sender recognises an answer that is not from
    // recv-file.
    static final byte OFFER = 0x61;
    static final byte BEGIN = 0x62;
    static final byte DATA = 0x63;
    static final byte END = 0x64;

    static final byte OK = 0x6b;
    static final byte FAILED = 0x6e;

    /** Before the content of a DATA message. */
    static final int DATA_HEADER_BYTES = 1 + Long.BYTES;

    static final int HASH_BYTES = 32;

    /** The most content of a message: a quarter of what a channel takes by default. */
    static final int MAX_CHUNK_BYTES = 16 << 20;

    /** What a receiver keeps of one sender while its disk is slow; a sender of more without waiting is disconnected. */
    static final long MAX_WINDOW_BYTES = 64L << 20;

    static final int MAX_WINDOW = 256;

    /** How long a peer may be silent before it is pinged, and again before it is given up. */
    static final int KEEP_ALIVE_MILLIS = 10_000;

    /** The limit of file systems. */
    private static final int MAX_NAME_BYTES = 255;

    private static final String PART_SUFFIX = ".part";

    private FileTransfer() {}

    static MessageDigest newHash() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError("every Java platform has SHA-256", impossible);
        }
    }

    static String partName(String name) {
        return name + PART_SUFFIX;
    }

    /**
     * How long an answer may take, which includes reading a file of this size from a slow disk. The keepalive detects
     * dead peers.
     */
    static long answerTimeoutMillis(long sizeBytes) {
        return 60_000 + sizeBytes / 20_000; // 20 MB/s
    }

    /** Reads the name in an offer, and makes sure that it names a file directly in the receiver's directory. */
    static String readName(ByteBuf in) throws IOException {
        String name;
        int bytes = in.readableBytes();
        try {
            ByteBuffer encoded = in.nioBuffer();
            in.skipBytes(bytes);
            name = StandardCharsets.UTF_8.newDecoder().decode(encoded).toString();
        } catch (CharacterCodingException malformed) {
            throw new IOException("the file's name is not UTF-8", malformed);
        }
        if (name.isEmpty()
                || bytes > MAX_NAME_BYTES - PART_SUFFIX.length()
                || name.equals(".")
                || name.equals("..")
                || name.codePoints().anyMatch(FileTransfer::isForbidden)) {
            throw new IOException("'" + printable(name) + "' is not a file name: no path, no control characters, 1 to "
                    + (MAX_NAME_BYTES - PART_SUFFIX.length()) + " bytes");
        }
        if (name.endsWith(PART_SUFFIX)) {
            throw new IOException(
                    "'" + name + "': names that end in " + PART_SUFFIX + " are for incomplete files; rename it");
        }
        return name;
    }

    private static boolean isForbidden(int character) {
        return character == '/' || character == '\\' || character == ':' || Character.isISOControl(character);
    }

    private static String printable(String name) {
        StringBuilder text = new StringBuilder();
        name.codePoints()
                .limit(MAX_NAME_BYTES)
                .forEach(character -> text.appendCodePoint(Character.isISOControl(character) ? '?' : character));
        return text.toString();
    }

    /** Describes what went wrong with a file: messages of the JDK's exceptions often have its name only. */
    static String describe(IOException failure) {
        String message = failure.getMessage();
        String text = message == null ? failure.toString() : message;
        return switch (failure) {
            case NoSuchFileException missing -> text + ": no such file";
            case AccessDeniedException denied -> text + ": permission denied";
            case FileAlreadyExistsException exists -> text + ": already exists";
            default -> text;
        };
    }
}
