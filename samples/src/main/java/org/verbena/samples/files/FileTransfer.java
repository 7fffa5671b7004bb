package org.verbena.samples.files;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/**
 * The protocol of {@code send-file} and {@code recv-file}: requests of the sender and their replies, in the short form
 * of the API. Each begins with one byte, the kind; numbers are big endian.
 *
 * <pre>{@code
 *   sender                                      receiver
 *   OFFER | length 8 | name, UTF-8         -->  creates a file under another name           <-- OK
 *   DATA  | offset 8 | content             -->  writes it there; up to 8 of these at once   <-- OK
 *   END   | SHA-256 of the whole file 32   -->  reads the file, compares, gives it its name <-- OK
 *
 *   to any of them, instead of OK:              the file is discarded                       <-- FAILED | reason, UTF-8
 * }</pre>
 *
 * <p>One connection carries one file after the other. The content is read from the file into registered memory, sent
 * into the receiver's registered memory and written from there to its file, without further copies.
 */
final class FileTransfer {
    // The values differ from those of other samples, so a sender notices when its peer is not recv-file.
    static final byte OFFER = 0x61;
    static final byte DATA = 0x62;
    static final byte END = 0x63;

    static final byte OK = 0x6b;
    static final byte FAILED = 0x6e;

    /** The most content of a message. */
    static final int CHUNK_BYTES = 1 << 20;

    /** How many messages are under way at once, which bounds the memory of both ends for files of any length. */
    static final int WINDOW = 8;

    static final int HASH_BYTES = 32;

    /** The limit of file systems. */
    private static final int MAX_NAME_BYTES = 255;

    private FileTransfer() {}

    static MessageDigest newHash() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError("every Java platform has SHA-256", impossible);
        }
    }

    /** Makes sure that a peer's name denotes a file directly in a directory. */
    static void checkName(String name) throws IOException {
        if (name.isEmpty()
                || name.equals(".")
                || name.equals("..")
                || name.getBytes(StandardCharsets.UTF_8).length > MAX_NAME_BYTES
                || name.codePoints().anyMatch(FileTransfer::isForbidden)) {
            throw new IOException(
                    "that is not a file name: no path, no control characters, 1 to 255 bytes, and all of them UTF-8");
        }
    }

    private static boolean isForbidden(int character) {
        return character == '/'
                || character == '\\'
                || character == ':'
                || character == '\ufffd' // stands for what was not UTF-8
                || Character.isISOControl(character);
    }

    /** The answer to a request that could not be met. */
    static byte[] failed(IOException why) {
        byte[] reason = describe(why).getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(1 + reason.length).put(FAILED).put(reason).array();
    }

    /** The line that both ends print for a file that has arrived. */
    static String report(long bytes, byte[] hash) {
        return ", " + bytes + (bytes == 1 ? " byte" : " bytes") + ", SHA-256 "
                + HexFormat.of().formatHex(hash);
    }

    /** Describes a failure with a file: messages of the JDK's exceptions often contain only its name. */
    static String describe(IOException failure) {
        String text = failure.getMessage() == null ? failure.toString() : failure.getMessage();
        return switch (failure) {
            case NoSuchFileException missing -> text + ": no such file";
            case AccessDeniedException denied -> text + ": permission denied";
            case FileAlreadyExistsException exists -> text + ": already exists";
            default -> text;
        };
    }
}
