package org.verbena.samples.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.samples.Samples;
import org.verbena.samples.ServerProcess;
import org.verbena.transport.RequestException;
import org.verbena.transport.spi.Patience;
import picocli.CommandLine;

/** Files sent over the soft provider: what arrives, what is refused, and what happens to a transfer that breaks off. */
@Timeout(240)
class FileTransferTest {
    private static final String HOST = "127.0.0.1";

    @TempDir
    Path directory;

    private Path in;
    private Path out;

    /** What a command answered. */
    private record Answer(int exitCode, String out, String err) {}

    @BeforeEach
    void makeDirectories() throws IOException {
        in = Files.createDirectory(directory.resolve("in"));
        out = Files.createDirectory(directory.resolve("out"));
    }

    private static Answer run(String... args) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command =
                Samples.commandLine(args).setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        int exitCode = command.execute(args);
        return new Answer(exitCode, out.toString(), err.toString());
    }

    private static Answer send(int port, Object... filesAndOptions) {
        List<String> args = new ArrayList<>(List.of("send-file", "--provider", "soft", "--port", "" + port));
        Stream.of(filesAndOptions).map(String::valueOf).forEach(args::add);
        return run(args.toArray(String[]::new));
    }

    private RdmaServer receiver(boolean overwrite) {
        return RecvFile.bind("soft", HOST, 0, out, overwrite, line -> {});
    }

    private Path file(String name, int bytes) throws IOException {
        byte[] content = new byte[bytes];
        new Random(bytes).nextBytes(content);
        return Files.write(in.resolve(name), content);
    }

    private void assertArrived(Path file) throws IOException {
        Path arrived = out.resolve(file.getFileName());
        assertThat(Files.mismatch(file, arrived))
                .as("where %s differs", arrived)
                .isEqualTo(-1);
        assertThat(out.toFile().list((folder, name) -> name.endsWith(".part"))).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (20 << 20) + 7})
    void sendsFilesOfAnySize(int bytes) throws IOException {
        Path file = file("some file", bytes);
        try (RdmaServer receiver = receiver(false)) {
            Answer answer = send(receiver.port(), file);
            assertThat(answer.err()).isEmpty();
            assertThat(answer.exitCode()).isZero();
            assertThat(answer.out())
                    .startsWith("sent " + file + ", " + bytes + (bytes == 1 ? " byte, " : " bytes, "))
                    .containsPattern("SHA-256 [0-9a-f]{64}\\R");
        }
        assertArrived(file);
    }

    @Test
    void sendsNoDirectories() throws IOException {
        try (RdmaServer receiver = receiver(false)) {
            Answer answer = send(receiver.port(), in);
            assertThat(answer.exitCode()).isEqualTo(1);
            assertThat(answer.err()).contains("not a regular file");
        }
    }

    @Test
    void failsSoonWhenTheReceiverIsKilled() throws Exception {
        // On a busy machine all of it may have gone before this thread looks: then a longer one.
        int bytes = 48 << 20;
        Answer answer = killReceiverWithin(file("large", bytes));
        while (answer.exitCode() == 0 && bytes < 400 << 20) {
            bytes *= 2;
            Files.delete(out.resolve("large"));
            answer = killReceiverWithin(file("large", bytes));
        }
        assertThat(answer.exitCode()).isEqualTo(1);
        assertThat(answer.err()).contains(in.resolve("large") + ": not sent: ");
        assertThat(out.resolve("large")).doesNotExist();
    }

    /** Sends to a receiver that is killed when some of the file is there. */
    private Answer killReceiverWithin(Path file) throws Exception {
        try (ServerProcess receiver =
                        new ServerProcess("recv-file", "--provider", "soft", "--port", "0", "--out", out.toString());
                ExecutorService executor = Executors.newSingleThreadExecutor()) {
            Future<Answer> sending = executor.submit(() -> send(receiver.port, file));
            Patience.until("some of it is there", () -> sending.isDone() || incompleteBytes() > 4 << 20);
            receiver.kill();
            return sending.get();
        }
    }

    /** How long the files are that are not complete. */
    private long incompleteBytes() {
        File[] parts = out.toFile().listFiles((folder, name) -> name.endsWith(".part"));
        return parts == null ? 0 : Stream.of(parts).mapToLong(File::length).sum();
    }

    @Test
    void keepsNothingOfASenderThatStopped() throws Exception {
        try (RdmaServer receiver = receiver(false)) {
            try (RawSender sender = new RawSender(receiver.port())) {
                assertThat(sender.offer("file").get()).isEqualTo(FileTransfer.OK);
                assertThat(sender.data(0, new byte[12_345]).get()).isEqualTo(FileTransfer.OK);
                assertThat(incompleteBytes()).isEqualTo(12_345);
            }
            Patience.until("it is removed", () -> out.toFile().list().length == 0);
        }
    }

    @Test
    void replacesFilesOnlyWhenAskedTo() throws IOException {
        Path file = file("file", 1000);
        Path before = Files.writeString(out.resolve("file"), "before");
        try (RdmaServer receiver = receiver(false)) {
            Answer answer = send(receiver.port(), file);
            assertThat(answer.exitCode()).isEqualTo(1);
            assertThat(answer.err()).contains("already exists", "--overwrite");
        }
        assertThat(before).hasContent("before");
        try (RdmaServer receiver = receiver(true)) {
            assertThat(send(receiver.port(), file).exitCode()).isZero();
        }
        assertArrived(file);
    }

    @Test
    void sendsTheOthersWhenOneCannotBeSent() throws IOException {
        Path first = file("first", 10);
        Path last = file("last", 20);
        try (RdmaServer receiver = receiver(false)) {
            Answer answer = send(receiver.port(), first, in.resolve("missing"), last);
            assertThat(answer.exitCode()).isEqualTo(1);
            assertThat(answer.err())
                    .isEqualToIgnoringNewLines("send-file: " + in.resolve("missing") + ": no such file");
        }
        assertArrived(first);
        assertArrived(last);
    }

    @Test
    void namesMayHaveAnyLetters() throws Exception {
        String name = "grüße, 日本語 🌿 'and' \"more\".txt";
        Path file = file(name, 5000);
        ProcessBuilder receiving = new ProcessBuilder(
                ServerProcess.commandLine("recv-file", "--provider", "soft", "--port", "0", "--out", out.toString()));
        receiving.environment().put("LC_ALL", "C.UTF-8");
        try (ServerProcess receiver = new ServerProcess(receiving)) {
            ProcessBuilder sending = new ProcessBuilder(ServerProcess.commandLine(
                    "send-file", "--provider", "soft", "--port", "" + receiver.port, file.toString()));
            sending.environment().put("LC_ALL", "C.UTF-8");
            Process sender = sending.redirectErrorStream(true).start();
            String said = new String(sender.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(sender.waitFor()).as(said).isZero();
            assertThat(said).contains(name);
            assertThat(receiver.readLine()).contains(name);
        }
        assertArrived(file);
    }

    static Stream<byte[]> dangerousNames() {
        return Stream.concat(
                Stream.of(
                                "",
                                ".",
                                "..",
                                "../file",
                                "a/b",
                                "/etc/passwd",
                                "a\\b",
                                "C:x",
                                "a\0b",
                                "a\nb",
                                "a\u0085b",
                                "x".repeat(256))
                        .map(name -> name.getBytes(StandardCharsets.UTF_8)),
                Stream.of(new byte[] {'a', (byte) 0xff}, new byte[] {(byte) 0xc0, (byte) 0xaf}));
    }

    @ParameterizedTest
    @MethodSource("dangerousNames")
    void refusesNamesThatAreNotPlain(byte[] name) throws Exception {
        try (RdmaServer receiver = receiver(true);
                RawSender sender = new RawSender(receiver.port())) {
            ByteBuffer answer = sender.ask(RawSender.offerOf(name));
            assertThat(answer.get()).isEqualTo(FileTransfer.FAILED);
            assertThat(StandardCharsets.UTF_8.decode(answer).toString()).containsAnyOf("name", "UTF-8");
            assertThat(sender.data(0, new byte[10]).get()).isEqualTo(FileTransfer.FAILED);
        }
        try (Stream<Path> all = Files.walk(directory)) {
            assertThat(all).containsExactlyInAnyOrder(directory, in, out);
        }
    }

    @Test
    void writesThroughNoLink() throws Exception {
        Path file = file("file", 100);
        Path elsewhere = Files.writeString(directory.resolve("elsewhere"), "untouched");
        Files.createSymbolicLink(out.resolve("file"), elsewhere);
        try (RdmaServer receiver = receiver(false)) {
            assertThat(send(receiver.port(), file).err()).contains("already exists");
        }
        try (RdmaServer receiver = receiver(true)) {
            assertThat(send(receiver.port(), file).exitCode()).isZero();
        }
        assertThat(elsewhere).hasContent("untouched");
        assertThat(Files.isSymbolicLink(out.resolve("file"))).isFalse();
        assertArrived(file);
    }

    @Test
    void deletesAFileWhoseHashIsWrong() throws Exception {
        try (RdmaServer receiver = receiver(false);
                RawSender sender = new RawSender(receiver.port())) {
            sender.offer("file");
            sender.data(0, new byte[100]);
            ByteBuffer answer = sender.end();
            assertThat(answer.get()).isEqualTo(FileTransfer.FAILED);
            assertThat(StandardCharsets.UTF_8.decode(answer).toString()).contains("SHA-256");
            awaitEmpty();
            assertThat(sender.end().get()).as("it is no longer there").isEqualTo(FileTransfer.FAILED);
        }
    }

    /** What was incomplete goes when its connection has ended, on a thread of its own. */
    private void awaitEmpty() {
        Patience.until("nothing is left", () -> {
            String[] left = out.toFile().list();
            return left != null && left.length == 0;
        });
    }

    @Test
    void refusesMessagesOutOfOrder() throws Exception {
        try (RdmaServer receiver = receiver(false);
                RawSender sender = new RawSender(receiver.port())) {
            assertThat(sender.data(0, new byte[10]).get())
                    .as("before the offer")
                    .isEqualTo(FileTransfer.FAILED);
            assertThat(sender.end().get()).as("before the offer").isEqualTo(FileTransfer.FAILED);
            sender.offer("file");
            assertThat(sender.ask(new byte[] {FileTransfer.OK}).get())
                    .as("an unknown request")
                    .isEqualTo(FileTransfer.FAILED);
            assertThat(sender.data(0, new byte[10]).get()).as("after that").isEqualTo(FileTransfer.FAILED);
            assertThat(sender.offer("file").get()).as("a new file").isEqualTo(FileTransfer.OK);
            assertThatExceptionOfType(ExecutionException.class)
                    .as("at a negative offset")
                    .isThrownBy(() -> sender.data(-1, new byte[10]))
                    .withCauseInstanceOf(RequestException.Failed.class);
        }
        awaitEmpty();
    }

    /** Whoever is first has the name. */
    @Test
    void twoSendersOfAFileDoNotMixIt() throws Exception {
        Path file = file("file", 1000);
        try (RdmaServer receiver = receiver(false);
                RawSender other = new RawSender(receiver.port())) {
            other.offer("file");
            other.data(0, new byte[500]);
            assertThat(send(receiver.port(), file).exitCode()).isZero();
            assertThat(other.ask(RawSender.endOf(FileTransfer.newHash().digest(new byte[500])))
                            .get())
                    .isEqualTo(FileTransfer.FAILED);
        }
        assertArrived(file);
    }

    @Test
    void saysWhenTheDiskTakesNoMore() throws Exception {
        Path file = file("large", 3 << 20);
        List<String> limited = new ArrayList<>(List.of("/bin/bash", "-c", "ulimit -f 1024; exec \"$@\"", "limited"));
        limited.addAll(
                ServerProcess.commandLine("recv-file", "--provider", "soft", "--port", "0", "--out", out.toString()));
        try (ServerProcess receiver = new ServerProcess(new ProcessBuilder(limited))) {
            Answer answer = send(receiver.port, file);
            assertThat(answer.exitCode()).isEqualTo(1);
            assertThat(answer.err()).contains(file + ": the receiver refuses: File too large");
        }
        awaitEmpty();
    }

    @Test
    void exitCodesTellWrongUsageFromFailure() throws IOException {
        Path file = file("file", 1);
        assertThat(run("recv-file").exitCode()).isEqualTo(2);
        assertThat(run("recv-file", "--out", file.toString()))
                .satisfies(answer -> assertThat(answer.exitCode()).isEqualTo(1))
                .satisfies(answer -> assertThat(answer.err()).contains("it is a file, not a directory"));
        assertThat(run("send-file").exitCode()).isEqualTo(2);
        Answer nobody = send(1, file);
        assertThat(nobody.exitCode()).isEqualTo(1);
        assertThat(nobody.err()).contains("send-file: connect", "127.0.0.1:1: ");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void progressIsShownFromTimeToTime(boolean isTerminal) {
        StringWriter shown = new StringWriter();
        long[] seconds = {0};
        try (TransferProgress progress = new TransferProgress(
                new PrintWriter(shown, true), isTerminal, "a file", 40_000_000, () -> seconds[0] * 1_000_000_000)) {
            progress.moved(1_000_000);
            assertThat(shown.toString()).isEmpty();
            seconds[0] = 10;
            progress.moved(19_000_000);
            assertThat(shown.toString()).contains("a file: 20.0 of 40.0 MB, 2.0 MB/s, 10 s left");
            progress.verifying();
        }
        assertThat(shown.toString().lines()).hasSize(isTerminal ? 4 : 2);
        assertThat(shown.toString().endsWith("\u001b[K")).isEqualTo(isTerminal);
    }

    /** A sender that does as it likes. */
    private static final class RawSender implements AutoCloseable {
        final RdmaClient client;

        RawSender(int port) {
            client = RdmaClient.builder().provider("soft").connect(HOST, port);
        }

        ByteBuffer ask(byte[] request) throws Exception {
            return ByteBuffer.wrap(client.request(request).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
        }

        static byte[] offerOf(byte[] name) {
            return ByteBuffer.allocate(1 + Long.BYTES + name.length)
                    .put(FileTransfer.OFFER)
                    .putLong(0)
                    .put(name)
                    .array();
        }

        ByteBuffer offer(String name) throws Exception {
            return ask(offerOf(name.getBytes(StandardCharsets.UTF_8)));
        }

        ByteBuffer data(long offset, byte[] content) throws Exception {
            return ask(ByteBuffer.allocate(1 + Long.BYTES + content.length)
                    .put(FileTransfer.DATA)
                    .putLong(offset)
                    .put(content)
                    .array());
        }

        static byte[] endOf(byte[] hash) {
            return ByteBuffer.allocate(1 + hash.length)
                    .put(FileTransfer.END)
                    .put(hash)
                    .array();
        }

        /** With a hash that is not of any file. */
        ByteBuffer end() throws Exception {
            return ask(endOf(new byte[FileTransfer.HASH_BYTES]));
        }

        @Override
        public void close() {
            client.close();
        }
    }
}
