package org.verbena.samples.files;

import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;

/**
 * A file while it is received: {@code NAME.part}, locked against other receivers, and the hash of what is in it. It
 * becomes {@code NAME} only when all of it is there and right. Closed before that, it stays for the next time. One
 * thread at a time.
 */
final class PartFile implements AutoCloseable {
    private static final int READ_BYTES = 1 << 20;

    private final Path part;
    private final Path target;
    private final boolean overwrite;
    private final long sizeBytes;
    private final FileChannel file;
    private MessageDigest hash = FileTransfer.newHash();
    private long lengthBytes;

    private PartFile(Path part, Path target, boolean overwrite, long sizeBytes, FileChannel file) {
        this.part = part;
        this.target = target;
        this.overwrite = overwrite;
        this.sizeBytes = sizeBytes;
        this.file = file;
    }

    /**
     * Opens or creates it, and reads what it already has.
     *
     * @param name checked before, by {@link FileTransfer#readName}
     * @param sizeBytes of the whole file
     */
    static PartFile open(Path directory, String name, long sizeBytes, boolean overwrite) throws IOException {
        Path target;
        Path part;
        try {
            target = directory.resolve(name);
            part = directory.resolve(FileTransfer.partName(name));
        } catch (InvalidPathException unmappable) {
            throw new IOException(
                    "'" + name + "' cannot be written in this system's character set: set LC_ALL=C.UTF-8", unmappable);
        }
        refuseToReplace(target, overwrite);
        if (Files.exists(part, LinkOption.NOFOLLOW_LINKS) && !Files.isRegularFile(part, LinkOption.NOFOLLOW_LINKS)) {
            throw new IOException(part + ": exists and is not a regular file; remove it");
        }
        FileChannel file = FileChannel.open(
                part,
                StandardOpenOption.CREATE,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE,
                LinkOption.NOFOLLOW_LINKS);
        try {
            if (!isLocked(file)) {
                throw new IOException(part + ": another sender is sending this file");
            }
            PartFile opened = new PartFile(part, target, overwrite, sizeBytes, file);
            opened.readWhatIsThere();
            return opened;
        } catch (IOException | RuntimeException failure) {
            file.close();
            throw failure;
        }
    }

    private static void refuseToReplace(Path target, boolean overwrite) throws IOException {
        if (Files.isDirectory(target, LinkOption.NOFOLLOW_LINKS)) {
            throw new IOException(target + ": is a directory");
        }
        if (!overwrite && Files.exists(target, LinkOption.NOFOLLOW_LINKS)) {
            throw new IOException(target + ": already exists; recv-file --overwrite replaces files");
        }
    }

    @SuppressWarnings("resource") // closing the channel ends the lock
    private static boolean isLocked(FileChannel file) throws IOException {
        try {
            return file.tryLock() != null;
        } catch (OverlappingFileLockException ours) {
            return false;
        }
    }

    private void readWhatIsThere() throws IOException {
        long there = file.size();
        if (there > sizeBytes) {
            return; // of another file: useless
        }
        ByteBuffer bytes = ByteBuffer.allocateDirect(Math.toIntExact(Math.clamp(there, 1, READ_BYTES)));
        while (lengthBytes < there && file.read(bytes.clear(), lengthBytes) > 0) {
            lengthBytes += bytes.flip().remaining();
            hash.update(bytes);
        }
    }

    Path target() {
        return target;
    }

    long sizeBytes() {
        return sizeBytes;
    }

    /** How much of the file is there. */
    long lengthBytes() {
        return lengthBytes;
    }

    /** The hash of what is there. */
    byte[] hash() {
        try {
            return ((MessageDigest) hash.clone()).digest();
        } catch (CloneNotSupportedException impossible) {
            throw new AssertionError("the JDK's SHA-256 can be cloned", impossible);
        }
    }

    /** Goes on where it ends, or starts over at 0. */
    void begin(long offsetBytes) throws IOException {
        if (offsetBytes == 0) {
            lengthBytes = 0;
            hash = FileTransfer.newHash();
        } else if (offsetBytes != lengthBytes) {
            throw new IOException("the sender begins at " + offsetBytes + ", which is neither 0 nor " + lengthBytes);
        }
        file.truncate(lengthBytes);
    }

    /** Appends content, straight out of the memory it was received in. */
    void write(long offsetBytes, ByteBuf content) throws IOException {
        int bytes = content.readableBytes();
        if (offsetBytes != lengthBytes || bytes > sizeBytes - lengthBytes) {
            throw new IOException("the sender sends " + bytes + " bytes at " + offsetBytes + " of a file of "
                    + sizeBytes + ", of which " + lengthBytes + " are there");
        }
        hash.update(content.nioBuffer());
        try {
            while (content.isReadable()) {
                lengthBytes += content.readBytes(file, lengthBytes, content.readableBytes());
            }
        } catch (IOException failure) {
            throw new IOException(
                    "writing " + part + " at " + lengthBytes + " of " + sizeBytes + ": "
                            + FileTransfer.describe(failure),
                    failure);
        }
    }

    /** Gives it its name, if it is whole and right. A part that is not right is of no use, and is deleted. */
    void finish(byte[] expectedHash) throws IOException {
        if (lengthBytes != sizeBytes) {
            throw new IOException("the sender ends at " + lengthBytes + " of " + sizeBytes);
        }
        if (!MessageDigest.isEqual(expectedHash, hash())) {
            Files.deleteIfExists(part);
            throw new IOException(target
                    + ": the SHA-256 of what was received is not the sender's; the part is deleted, send it again");
        }
        file.force(true);
        if (overwrite) {
            refuseToReplace(target, true);
            Files.move(part, target, StandardCopyOption.ATOMIC_MOVE); // there is one file of this name at any time
        } else {
            Files.move(part, target); // fails if it has come to be there meanwhile
        }
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
