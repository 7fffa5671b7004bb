package org.verbena.samples.files;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Callable;
import org.verbena.api.RdmaClient;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** Sends files to a {@code recv-file}. {@link FileTransfer} has the protocol. */
@Command(name = "send-file", description = "Sends files to recv-file, and verifies that they have arrived unchanged.")
public final class SendFile implements Callable<Integer> {
    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Parameters(arity = "1..*", paramLabel = "FILE", description = "Files to send; they keep their names.")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private List<Path> files;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        PrintWriter out = spec.commandLine().getOut();
        PrintWriter err = spec.commandLine().getErr();
        int failed = 0;
        try (RdmaClient client = RdmaClient.builder()
                .provider(options.provider)
                .reconnect(false)
                .connect(options.host, options.remotePort())) {
            for (Path path : files) {
                try {
                    out.println("sent " + path + send(client, path));
                } catch (IOException | CommandFailure failure) {
                    failed++;
                    err.println("send-file: "
                            + (failure instanceof IOException unread
                                    ? FileTransfer.describe(unread)
                                    : path + ": " + failure.getMessage()));
                }
                out.flush();
                err.flush();
            }
        }
        return failed == 0 ? CommandLine.ExitCode.OK : CommandLine.ExitCode.SOFTWARE;
    }

    /** Sends a file and returns the line to print. A window of messages is under way while this keeps reading. */
    private static String send(RdmaClient client, Path path) throws IOException, InterruptedException {
        if (Files.exists(path) && !Files.isRegularFile(path)) {
            throw new IOException(path + ": not a regular file; send-file sends files, no directories or devices");
        }
        MessageDigest hash = FileTransfer.newHash();
        Queue<Future<ByteBuf>> underWay = new ArrayDeque<>();
        try (FileChannel file = FileChannel.open(path);
                TransferProgress progress = new TransferProgress("sending " + path.getFileName(), file.size())) {
            long sizeBytes = file.size();
            byte[] name = path.getFileName().toString().getBytes(StandardCharsets.UTF_8);
            byte[] length = ByteBuffer.allocate(Long.BYTES).putLong(sizeBytes).array();
            check(client.request(Unpooled.wrappedBuffer(new byte[] {FileTransfer.OFFER}, length, name)));
            for (long at = 0; at < sizeBytes; at += FileTransfer.CHUNK_BYTES) {
                if (underWay.size() == FileTransfer.WINDOW) {
                    check(underWay.remove()); // a slow receiver stops the reading here
                    progress.moved(FileTransfer.CHUNK_BYTES);
                }
                int bytes = (int) Math.min(FileTransfer.CHUNK_BYTES, sizeBytes - at);
                underWay.add(client.request(read(client, file, at, bytes, hash)));
            }
            while (!underWay.isEmpty()) {
                check(underWay.remove());
            }
            progress.verifying();
            byte[] whole = hash.digest();
            // The receiver reads the whole file before it answers. Keepalive detects a dead one.
            Duration timeout = Duration.ofMinutes(1).plusMillis(sizeBytes / 20_000); // 20 MB/s
            check(client.request(Unpooled.wrappedBuffer(new byte[] {FileTransfer.END}, whole), timeout));
            return FileTransfer.report(sizeBytes, whole);
        } finally {
            underWay.forEach(SendFile::discard); // after a failure
        }
    }

    /** Reads a part of the file, directly into registered memory. */
    private static ByteBuf read(RdmaClient client, FileChannel file, long atBytes, int bytes, MessageDigest hash)
            throws IOException {
        ByteBuf message = client.channel().alloc().directBuffer(1 + Long.BYTES + bytes);
        try {
            message.writeByte(FileTransfer.DATA).writeLong(atBytes);
            for (int done = 0, read; done < bytes; done += read) {
                read = message.writeBytes(file, atBytes + done, bytes - done);
                if (read < 0) {
                    throw new CommandFailure("it was truncated while it was sent; send it again");
                }
            }
            hash.update(message.nioBuffer(1 + Long.BYTES, bytes));
            return message;
        } catch (IOException | RuntimeException failure) {
            message.release();
            throw failure;
        }
    }

    /** Waits for an answer, and fails unless it reports success. */
    private static void check(Future<ByteBuf> asked) throws InterruptedException {
        if (!asked.await().isSuccess()) {
            throw new CommandFailure("not sent: " + asked.cause(), asked.cause());
        }
        ByteBuf answer = asked.getNow();
        try {
            byte kind = answer.isReadable() ? answer.readByte() : 0;
            if (kind == FileTransfer.FAILED) {
                throw new CommandFailure("the receiver refuses: " + answer.toString(StandardCharsets.UTF_8));
            }
            if (kind != FileTransfer.OK) {
                throw new CommandFailure("the peer does not answer as a recv-file does; is it one?");
            }
        } finally {
            answer.release();
        }
    }

    private static void discard(Future<ByteBuf> asked) {
        asked.addListener((Future<ByteBuf> answered) -> {
            if (answered.isSuccess()) {
                answered.getNow().release();
            }
        });
    }
}
