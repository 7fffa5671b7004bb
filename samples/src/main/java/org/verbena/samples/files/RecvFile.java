package org.verbena.samples.files;

import io.netty.buffer.ByteBuf;
import io.netty.util.AttributeKey;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.Exchange;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaServer;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.Json;
import org.verbena.samples.command.ServerSignals;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * Receives files from {@code send-file} into one directory, until it is stopped. {@link FileTransfer} has the protocol.
 */
@Command(
        name = "recv-file",
        description = {
            "Receives files that send-file sends, into a directory.",
            "A file is NAME.part until it is complete and its SHA-256 is verified. What is left of an interrupted transfer is kept, "
                    + "and the next one resumes from there. Anyone who can connect can send: there is no authentication and no encryption."
        })
public final class RecvFile implements Callable<Integer> {
    private static final Logger LOG = LoggerFactory.getLogger(RecvFile.class);
    private static final AttributeKey<Sender> SENDER = AttributeKey.valueOf(RecvFile.class, "SENDER");

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Option(
            names = "--out",
            paramLabel = "DIR",
            required = true,
            description = "The directory to write to; it is created if it is missing.")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private Path directory;

    @Option(names = "--json", description = "Print a JSON object for each file.")
    private boolean json;

    @Option(names = "--overwrite", description = "Replace existing files. Without it they are refused.")
    private boolean overwrite;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        try {
            Files.createDirectories(directory);
        } catch (FileAlreadyExistsException file) {
            throw new CommandFailure("--out " + directory + ": it is a file, not a directory", file);
        } catch (IOException failure) {
            throw new CommandFailure("--out: " + FileTransfer.describe(failure), failure);
        }
        if (!Files.isWritable(directory)) {
            throw new CommandFailure("--out " + directory + ": no permission to write there");
        }
        ServerSignals.endWithZero();
        PrintWriter out = spec.commandLine().getOut();
        try (RdmaServer server = bind(
                options.provider, options.host, options.listenPort(), directory, overwrite, file -> print(out, file))) {
            out.println(
                    "recv-file listens on " + server.localAddress() + " (" + server.provider() + "), for " + directory);
            out.flush();
            new CountDownLatch(1).await();
        }
        return CommandLine.ExitCode.OK;
    }

    private void print(PrintWriter out, FileReport file) {
        out.print(json ? Json.of(file) : "received " + file.line() + "\n");
        out.flush();
    }

    /** The receiver; it reports each file. */
    static RdmaServer bind(
            String provider, String host, int port, Path directory, boolean overwrite, Consumer<FileReport> received) {
        return RdmaServer.builder()
                .provider(provider)
                .option(RdmaChannelOption.KEEP_ALIVE_MILLIS, FileTransfer.KEEP_ALIVE_MILLIS)
                .onConnect(channel -> {
                    Sender sender = new Sender(channel, directory, overwrite, received);
                    channel.attr(SENDER).set(sender);
                    channel.closeFuture().addListener(closed -> sender.close());
                })
                .bind(
                        host,
                        port,
                        (exchange, message) ->
                                exchange.channel().attr(SENDER).get().onRequest(exchange, message));
    }

    /**
     * One connection: messages arrive on the event loop and are processed on a thread of its own, because file I/O
     * blocks.
     */
    private static final class Sender {
        private final RdmaChannel channel;
        private final Path directory;
        private final boolean overwrite;
        private final Consumer<FileReport> received;
        private final ExecutorService worker = Executors.newSingleThreadExecutor(
                Thread.ofVirtual().name("recv-file").factory());
        private final AtomicLong waitingBytes = new AtomicLong();
        private final AtomicInteger waiting = new AtomicInteger();

        // The worker's.
        private @Nullable PartFile file;
        private boolean begun;
        private boolean told;
        private long startBytes;
        private long startNanos;

        Sender(RdmaChannel channel, Path directory, boolean overwrite, Consumer<FileReport> received) {
            this.channel = channel;
            this.directory = directory;
            this.overwrite = overwrite;
            this.received = received;
        }

        void onRequest(Exchange exchange, ByteBuf message) {
            int bytes = message.readableBytes();
            if (waitingBytes.addAndGet(bytes) > FileTransfer.MAX_WINDOW_BYTES + FileTransfer.MAX_CHUNK_BYTES
                    || waiting.incrementAndGet() > FileTransfer.MAX_WINDOW + 1) {
                LOG.warn("{}: disconnected, because it sends without waiting for answers", channel.remoteAddress());
                channel.close();
                return;
            }
            message.retain();
            worker.execute(() -> {
                try {
                    answer(exchange, message);
                } finally {
                    message.release();
                    waitingBytes.addAndGet(-bytes);
                    waiting.decrementAndGet();
                }
            });
        }

        /** What has arrived is written; the rest remains to be sent. */
        void close() {
            worker.execute(this::letGo);
            worker.shutdown();
        }

        private void answer(Exchange exchange, ByteBuf message) {
            byte[] answer;
            try {
                answer = act(message);
            } catch (IOException failure) {
                String reason = FileTransfer.describe(failure);
                if (told) {
                    LOG.debug("{}: {}", channel.remoteAddress(), reason); // sent before the sender learned of the first
                } else {
                    LOG.warn("{}: {}", channel.remoteAddress(), reason);
                }
                told = true;
                letGo();
                byte[] text = reason.getBytes(StandardCharsets.UTF_8);
                answer = ByteBuffer.allocate(1 + text.length)
                        .put(FileTransfer.FAILED)
                        .put(text)
                        .array();
            } catch (RuntimeException broken) {
                LOG.warn("{}: disconnected, because it violated the protocol", channel.remoteAddress(), broken);
                channel.close();
                return;
            }
            exchange.send(answer);
        }

        private byte[] act(ByteBuf message) throws IOException {
            byte kind = message.readByte();
            switch (kind) {
                case FileTransfer.OFFER -> {
                    return open(message);
                }
                case FileTransfer.BEGIN -> {
                    PartFile open = underWay(false);
                    open.begin(message.readLong());
                    begun = true;
                    startBytes = open.lengthBytes();
                    startNanos = System.nanoTime();
                }
                case FileTransfer.DATA -> {
                    PartFile open = underWay(true);
                    open.write(message.readLong(), message);
                }
                case FileTransfer.END -> {
                    byte[] hash = new byte[FileTransfer.HASH_BYTES];
                    message.readBytes(hash);
                    PartFile open = underWay(true);
                    open.finish(hash);
                    tell(open, hash);
                    letGo();
                }
                default -> throw new IllegalArgumentException("a request of kind " + kind);
            }
            return new byte[] {FileTransfer.OK};
        }

        private byte[] open(ByteBuf message) throws IOException {
            letGo(); // the sender has given up the previous file
            told = false;
            int version = message.readByte();
            if (version != FileTransfer.VERSION) {
                throw new IOException(
                        "the sender speaks version " + version + ", this receiver " + FileTransfer.VERSION);
            }
            long sizeBytes = message.readLong();
            if (sizeBytes < 0) {
                throw new IllegalArgumentException("a file of " + sizeBytes + " bytes");
            }
            PartFile open = PartFile.open(directory, FileTransfer.readName(message), sizeBytes, overwrite);
            file = open;
            return ByteBuffer.allocate(1 + Long.BYTES + FileTransfer.HASH_BYTES)
                    .put(FileTransfer.OK)
                    .putLong(open.lengthBytes())
                    .put(open.hash())
                    .array();
        }

        private PartFile underWay(boolean needsBegin) throws IOException {
            PartFile open = file;
            if (open == null || (needsBegin && !begun)) {
                throw new IOException("no file transfer has begun");
            }
            return open;
        }

        private void tell(PartFile whole, byte[] hash) {
            received.accept(FileReport.of(
                    whole.target().toString(),
                    whole.sizeBytes(),
                    startBytes,
                    System.nanoTime() - startNanos,
                    HexFormat.of().formatHex(hash)));
        }

        private void letGo() {
            PartFile open = file;
            file = null;
            begun = false;
            if (open != null) {
                try {
                    open.close();
                } catch (IOException failure) {
                    LOG.warn("{}: closing it: {}", open.target(), failure.getMessage());
                }
            }
        }
    }
}
