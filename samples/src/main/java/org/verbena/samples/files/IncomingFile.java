package org.verbena.samples.files;

import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.util.Objects;
import java.util.UUID;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file that one connection is sending. It has a temporary name until it is complete and correct. Any thread:
 * requests of a connection are handled concurrently, and take turns here.
 */
final class IncomingFile implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(IncomingFile.class);

    private final Path directory;
    private final boolean overwrite;
    private final Consumer<String> received;

    private @Nullable Path target;
    private @Nullable Path part;
    private @Nullable FileChannel file;
    private @Nullable TransferProgress progress;

    /** Why it failed: requests under way get the same answer. */
    private @Nullable IOException failure;

    private boolean closed;

    /** Waits for the first offer; {@code received} gets a line for each file that has arrived. */
    IncomingFile(Path directory, boolean overwrite, Consumer<String> received) {
        this.directory = directory;
        this.overwrite = overwrite;
        this.received = received;
    }

    /** Handles a request, and returns the reply. */
    synchronized byte[] handle(ByteBuf request) {
        try {
            byte kind = request.readByte();
            if (kind == FileTransfer.OFFER) {
                failure = null;
                discard();
                begin(request.readLong(), request.toString(StandardCharsets.UTF_8));
                return new byte[] {FileTransfer.OK};
            }
            FileChannel open = file;
            if (open == null) {
                throw failure == null ? new IOException("no file is under way") : failure;
            }
            switch (kind) {
                case FileTransfer.DATA -> write(open, request.readLong(), request);
                case FileTransfer.END -> finish(open, request);
                default -> throw new IOException("a request of kind " + kind + " is unknown");
            }
            return new byte[] {FileTransfer.OK};
        } catch (IOException problem) {
            if (failure == null) {
                failure = problem;
                LOG.warn("{}: not received: {}", target == null ? directory : target, FileTransfer.describe(problem));
            }
            discard();
            return FileTransfer.failed(problem);
        }
    }

    private void begin(long bytes, String name) throws IOException {
        if (closed) {
            throw new IOException("the connection has ended");
        }
        FileTransfer.checkName(name);
        try {
            target = directory.resolve(name);
        } catch (InvalidPathException unmappable) {
            throw new IOException("this system's character set has not all letters of the name", unmappable);
        }
        if (!overwrite && Files.exists(target, LinkOption.NOFOLLOW_LINKS)) {
            throw new IOException(target + ": already exists; recv-file --overwrite replaces files");
        }
        part = directory.resolve("." + UUID.randomUUID() + ".part");
        file = FileChannel.open(part, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        progress = new TransferProgress("receiving " + name, bytes);
    }

    /** Writes content directly from the memory in which it was received. */
    private void write(FileChannel open, long offsetBytes, ByteBuf content) throws IOException {
        Objects.requireNonNull(progress).moved(content.readableBytes());
        for (long at = offsetBytes; content.isReadable(); ) {
            at += content.readBytes(open, at, content.readableBytes());
        }
    }

    private void finish(FileChannel open, ByteBuf request) throws IOException {
        byte[] expected = new byte[FileTransfer.HASH_BYTES];
        request.readBytes(expected);
        Objects.requireNonNull(progress).verifying();
        Path whole = Objects.requireNonNull(part);
        Path name = Objects.requireNonNull(target);
        MessageDigest hash = FileTransfer.newHash();
        long bytes = Files.copy(whole, new DigestOutputStream(OutputStream.nullOutputStream(), hash));
        if (!MessageDigest.isEqual(expected, hash.digest())) {
            throw new IOException("what was received has another SHA-256 than the sender's; send it again");
        }
        open.force(true);
        if (overwrite) {
            Files.move(whole, name, StandardCopyOption.ATOMIC_MOVE); // there is one file of this name at any time
        } else {
            Files.move(whole, name); // fails if the target has been created in the meantime
        }
        discard();
        received.accept("received " + name + FileTransfer.report(bytes, expected));
    }

    private void discard() {
        progress = TransferProgress.end(progress);
        try {
            if (file != null) {
                file.close();
                file = null;
            }
            if (part != null) {
                Files.deleteIfExists(part);
                part = null;
            }
        } catch (IOException problem) {
            LOG.warn("removing an incomplete file: {}", FileTransfer.describe(problem));
        }
    }

    /** Discards what the connection has not completed. */
    @Override
    public synchronized void close() {
        closed = true;
        discard();
    }
}
