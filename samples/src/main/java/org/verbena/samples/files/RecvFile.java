package org.verbena.samples.files;

import io.netty.util.AttributeKey;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import org.verbena.api.RdmaServer;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
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
            "A file gets its name when it is complete and its SHA-256 is verified. Anyone who can connect can send: there"
                    + " is no authentication and no encryption."
        })
public final class RecvFile implements Callable<Integer> {
    private static final AttributeKey<IncomingFile> FILE = AttributeKey.valueOf(RecvFile.class, "FILE");

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
        Consumer<String> printer = line -> {
            out.println(line);
            out.flush();
        };
        try (RdmaServer server =
                bind(options.provider, options.host, options.listenPort(), directory, overwrite, printer)) {
            printer.accept(
                    "recv-file listens on " + server.localAddress() + " (" + server.provider() + "), for " + directory);
            new CountDownLatch(1).await();
        }
        return CommandLine.ExitCode.OK;
    }

    /** The receiver. Its handlers run on virtual threads, since writing to disk blocks. */
    static RdmaServer bind(
            String provider, String host, int port, Path directory, boolean overwrite, Consumer<String> received) {
        return RdmaServer.builder()
                .provider(provider)
                .virtualThreads(true)
                .onConnect(channel -> {
                    IncomingFile file = new IncomingFile(directory, overwrite, received);
                    channel.attr(FILE).set(file);
                    channel.closeFuture().addListener(closed -> Thread.startVirtualThread(file::close));
                })
                .bind(host, port, (exchange, request) -> {
                    IncomingFile file = exchange.channel().attr(FILE).get();
                    exchange.reply(file.handle(request));
                });
    }
}
