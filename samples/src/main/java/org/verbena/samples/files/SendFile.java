package org.verbena.samples.files;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaClient;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.ProgressOption;
import org.verbena.samples.command.Report;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Sends files to a {@code recv-file}. {@link FileTransfer} has the protocol. */
@Command(
        name = "send-file",
        description = {
            "Sends files to recv-file, and verifies that they have arrived unchanged.",
            "If a transfer is interrupted, send the file again: it resumes where it stopped."
        })
public final class SendFile implements Callable<Integer> {
    /** A part of the bar's 100: figures take about 50, and the bar the rest. */
    private static final int NAME_COLUMNS = 30;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Parameters(arity = "1..*", paramLabel = "FILE", description = "Files to send; they keep their names.")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private List<Path> files;

    @Option(
            names = "--size",
            paramLabel = "BYTES",
            defaultValue = "1m",
            converter = ByteSize.class,
            description = "Message size in bytes, up to 16m (${DEFAULT-VALUE}).")
    private int chunkBytes;

    @Option(
            names = "--window",
            paramLabel = "N",
            defaultValue = "8",
            description = "Messages in flight at once, up to 256 and 64m in total (${DEFAULT-VALUE}).")
    private int window;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ProgressOption progress;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private Report report;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    private final List<FileReport> sent = new ArrayList<>();

    @Override
    public Integer call() throws InterruptedException {
        if (chunkBytes < 1
                || chunkBytes > FileTransfer.MAX_CHUNK_BYTES
                || window < 1
                || window > FileTransfer.MAX_WINDOW
                || (long) chunkBytes * window > FileTransfer.MAX_WINDOW_BYTES) {
            throw new CommandLine.ParameterException(
                    spec.commandLine(),
                    "--size must be 1 to 16m and --window 1 to 256, and both multiplied no more than 64m; they are "
                            + chunkBytes + ", " + window);
        }
        int failed = 0;
        try (RdmaClient client = RdmaClient.builder()
                .provider(options.provider)
                .option(RdmaChannelOption.KEEP_ALIVE_MILLIS, FileTransfer.KEEP_ALIVE_MILLIS)
                .connect(options.host, options.remotePort())) {
            for (Path file : files) {
                try {
                    send(client, file);
                } catch (IOException failure) {
                    failed++;
                    complain(FileTransfer.describe(failure));
                } catch (CommandFailure failure) {
                    failed++;
                    complain(failure.getMessage());
                    if (!client.channel().isActive()) {
                        break;
                    }
                }
            }
        }
        report.member("sent", sent).member("failed", files.size() - sent.size()).end();
        return failed == 0 ? CommandLine.ExitCode.OK : CommandLine.ExitCode.SOFTWARE;
    }

    private void complain(@Nullable String message) {
        spec.commandLine().getErr().println("send-file: " + message);
        spec.commandLine().getErr().flush();
    }

    private void send(RdmaClient client, Path path) throws IOException, InterruptedException {
        if (Files.exists(path) && !Files.isRegularFile(path)) {
            throw new CommandFailure(path + ": not a regular file; send-file sends files, no directories or devices");
        }
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
            FileTime modified = Files.getLastModifiedTime(path);
            Transfer transfer = new Transfer(client, path, file, file.size());
            long startBytes = transfer.offer();
            long startNanos = System.nanoTime();
            try (ProgressBar bar = progressBar(path, file.size(), startBytes)) {
                transfer.sendFrom(startBytes, bar);
            }
            if (file.size() != transfer.sizeBytes
                    || !Files.getLastModifiedTime(path).equals(modified)) {
                throw new CommandFailure(path + ": it changed while it was sent; send it again");
            }
            String hash = transfer.end();
            FileReport done = FileReport.of(
                    path.toString(), transfer.sizeBytes, startBytes, System.nanoTime() - startNanos, hash);
            sent.add(done);
            report.line("sent " + done.line());
        }
    }

    /** On standard error, or none. */
    private @Nullable ProgressBar progressBar(Path path, long sizeBytes, long startBytes) {
        ProgressBarBuilder wanted = progress.bar(shortName(path.getFileName().toString()), sizeBytes);
        if (wanted == null) {
            return null;
        }
        Unit unit = Unit.of(sizeBytes);
        ProgressBar bar = wanted.setUnit(unit.name, unit.bytes).showSpeed().build();
        bar.stepTo(startBytes);
        return bar;
    }

    /** The unit of the progress bar: the largest of which the file has at least ten. */
    enum Unit {
        BYTES(" B", 1),
        KIBIBYTES(" KiB", 1 << 10),
        MEBIBYTES(" MiB", 1 << 20);

        final String name;
        final long bytes;

        Unit(String name, long bytes) {
            this.name = name;
            this.bytes = bytes;
        }

        static Unit of(long sizeBytes) {
            return sizeBytes >= 10 << 20 ? MEBIBYTES : sizeBytes >= 10 << 10 ? KIBIBYTES : BYTES;
        }
    }

    /** Shortens a name to its beginning and end, to leave room for the bar. */
    static String shortName(String name) {
        int characters = name.codePointCount(0, name.length());
        if (characters <= NAME_COLUMNS) {
            return name;
        }
        int each = NAME_COLUMNS / 2;
        return name.substring(0, name.offsetByCodePoints(0, each - 1))
                + "\u2026"
                + name.substring(name.offsetByCodePoints(name.length(), -each));
    }

    /** One file on its way. The caller's thread reads and hashes while a window of messages is under way. */
    private final class Transfer {
        private final RdmaClient client;
        private final Path path;
        private final FileChannel file;
        private final long sizeBytes;
        private final Duration timeout;
        private final Semaphore free = new Semaphore(window);
        private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
        private MessageDigest hash = FileTransfer.newHash();

        /** Up to where the receiver has written. Event loop only, until all messages are answered. */
        private volatile long acknowledgedBytes;

        Transfer(RdmaClient client, Path path, FileChannel file, long sizeBytes) {
            this.client = client;
            this.path = path;
            this.file = file;
            this.sizeBytes = sizeBytes;
            timeout = Duration.ofMillis(FileTransfer.answerTimeoutMillis(sizeBytes));
        }

        /**
         * Offers the file, and finds out where to begin: behind what the receiver already has of it, if the content is
         * the same.
         */
        long offer() throws IOException, InterruptedException {
            byte[] name = path.getFileName().toString().getBytes(StandardCharsets.UTF_8);
            ByteBuffer answer = ask(ByteBuffer.allocate(2 + Long.BYTES + name.length)
                    .put(FileTransfer.OFFER)
                    .put((byte) FileTransfer.VERSION)
                    .putLong(sizeBytes)
                    .put(name)
                    .array());
            long thereBytes = answer.getLong();
            byte[] thereHash = new byte[FileTransfer.HASH_BYTES];
            answer.get(thereHash);
            long startBytes = isMine(thereBytes, thereHash) ? thereBytes : 0;
            if (startBytes < thereBytes) {
                complain(path + ": the receiver has " + thereBytes
                        + " bytes that differ from this file: sending it from the start");
            }
            acknowledgedBytes = startBytes;
            ask(ByteBuffer.allocate(1 + Long.BYTES)
                    .put(FileTransfer.BEGIN)
                    .putLong(startBytes)
                    .array());
            return startBytes;
        }

        /** Whether the file begins with bytes of this hash; if so, the file's hash goes on behind them. */
        private boolean isMine(long lengthBytes, byte[] expectedHash) throws IOException {
            if (lengthBytes < 0 || lengthBytes > sizeBytes) {
                return false;
            }
            MessageDigest mine = FileTransfer.newHash();
            ByteBuffer bytes = ByteBuffer.allocateDirect(Math.toIntExact(Math.clamp(lengthBytes, 1, 1 << 20)));
            for (long at = 0; at < lengthBytes; at += bytes.limit()) {
                bytes.clear().limit(Math.toIntExact(Math.min(bytes.capacity(), lengthBytes - at)));
                while (bytes.hasRemaining()) {
                    checkRead(file.read(bytes, at + bytes.position()));
                }
                mine.update(bytes.flip());
            }
            try {
                MessageDigest soFar = (MessageDigest) mine.clone();
                if (!MessageDigest.isEqual(soFar.digest(), expectedHash)) {
                    return false;
                }
            } catch (CloneNotSupportedException impossible) {
                throw new AssertionError("the JDK's SHA-256 can be cloned", impossible);
            }
            hash = mine;
            return true;
        }

        void sendFrom(long startBytes, @Nullable ProgressBar bar) throws IOException, InterruptedException {
            long at = startBytes;
            try {
                while (at < sizeBytes && failure.get() == null) {
                    int bytes = Math.toIntExact(Math.min(chunkBytes, sizeBytes - at));
                    ByteBuf message = read(at, bytes);
                    free.acquire();
                    long endBytes = at + bytes;
                    client.request(message, timeout)
                            .addListener((Future<ByteBuf> answered) -> onAnswer(answered, endBytes, bytes, bar));
                    at = endBytes;
                }
            } finally {
                free.acquireUninterruptibly(window); // until all are answered or have failed
                free.release(window);
            }
            Throwable cause = failure.get();
            if (cause != null) {
                throw explain(cause);
            }
        }

        /** Straight from the file into registered memory. */
        private ByteBuf read(long atBytes, int bytes) throws IOException {
            ByteBuf message = client.channel().alloc().directBuffer(FileTransfer.DATA_HEADER_BYTES + bytes);
            try {
                message.writeByte(FileTransfer.DATA).writeLong(atBytes);
                for (int done = 0; done < bytes; ) {
                    int read = message.writeBytes(file, atBytes + done, bytes - done);
                    checkRead(read);
                    done += read;
                }
                hash.update(message.nioBuffer(FileTransfer.DATA_HEADER_BYTES, bytes));
                return message;
            } catch (IOException | RuntimeException failure) {
                message.release();
                throw failure;
            }
        }

        private void checkRead(int bytes) throws EOFException {
            if (bytes < 0) {
                throw new EOFException(path + ": it was truncated while it was sent; send it again");
            }
        }

        private void onAnswer(Future<ByteBuf> answered, long endBytes, int bytes, @Nullable ProgressBar bar) {
            if (!answered.isSuccess()) {
                failure.compareAndSet(null, answered.cause());
                free.release();
                return;
            }
            ByteBuf answer = answered.getNow();
            if (answer.isReadable() && answer.getByte(answer.readerIndex()) == FileTransfer.OK) {
                acknowledgedBytes = endBytes;
                if (bar != null) {
                    bar.stepBy(bytes);
                }
            } else {
                failure.compareAndSet(null, refusal(answer.nioBuffer()));
            }
            answer.release();
            free.release();
        }

        /** Announces the end, and waits until the receiver has verified the file. */
        String end() throws InterruptedException {
            byte[] whole = hash.digest();
            ask(ByteBuffer.allocate(1 + FileTransfer.HASH_BYTES)
                    .put(FileTransfer.END)
                    .put(whole)
                    .array());
            return HexFormat.of().formatHex(whole);
        }

        /** The rest of the answer; throws if it reports a failure. */
        private ByteBuffer ask(byte[] request) throws InterruptedException {
            Future<ByteBuf> answered =
                    client.request(Unpooled.wrappedBuffer(request), timeout).await();
            if (!answered.isSuccess()) {
                throw explain(Objects.requireNonNull(answered.cause()));
            }
            ByteBuffer answer = ByteBuffer.wrap(ByteBufUtil.getBytes(answered.getNow()));
            answered.getNow().release();
            if (!answer.hasRemaining() || answer.get(0) != FileTransfer.OK) {
                throw refusal(answer);
            }
            return answer.position(1);
        }

        private CommandFailure refusal(ByteBuffer answer) {
            if (!answer.hasRemaining() || answer.get() != FileTransfer.FAILED) {
                return new CommandFailure(path + ": " + client.channel().remoteAddress()
                        + " does not answer as a recv-file does; is it one?");
            }
            return new CommandFailure(path + ": the receiver refuses: " + StandardCharsets.UTF_8.decode(answer));
        }

        private CommandFailure explain(Throwable cause) {
            if (cause instanceof CommandFailure refused) {
                return refused;
            }
            Throwable first = cause.getMessage() == null && cause.getCause() != null ? cause.getCause() : cause;
            return new CommandFailure(
                    path + ": interrupted at " + acknowledgedBytes + " of " + sizeBytes + " bytes: "
                            + (first.getMessage() == null ? "the receiver closed the connection" : first.getMessage())
                            + ". Send it again when the receiver is back: it resumes where it stopped",
                    cause);
        }
    }
}
