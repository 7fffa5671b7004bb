package org.verbena.samples.files;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.RandomAccessFile;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
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
        return RecvFile.bind("soft", HOST, 0, out, overwrite, file -> {});
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
        assertThat(part(file)).doesNotExist();
    }

    private Path part(Path file) {
        return out.resolve(file.getFileName() + ".part");
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
                    .startsWith("sent " + file + ", " + bytes + (bytes == 1 ? " byte in " : " bytes in "))
                    .containsPattern("SHA-256 [0-9a-f]{64}\\R");
        }
        assertArrived(file);
    }

    @ParameterizedTest
    @ValueSource(strings = {"--size=1 --window=256", "--size=3000 --window=1", "--size=16m --window=4"})
    void sendsInMessagesOfAnySize(String how) throws IOException {
        Path file = file("some file", how.startsWith("--size=1 ") ? 2000 : 17 << 20);
        try (RdmaServer receiver = receiver(false)) {
            Answer answer = send(receiver.port(), (Object[]) (how + " " + file.getParent()).split(" "));
            assertThat(answer.exitCode()).as("a directory").isEqualTo(1);
            assertThat(answer.err()).contains("not a regular file");
            String[] options = how.split(" ");
            answer = send(receiver.port(), options[0], options[1], file);
            assertThat(answer.exitCode()).as(answer.err()).isZero();
        }
        assertArrived(file);
    }

    @Test
    void goesOnWhereAKilledReceiverStopped() throws Exception {
        // On a busy machine all of it may have gone before this thread looks: then a longer one.
        int bytes = 48 << 20;
        Answer first = killReceiverWithin(file("large", bytes));
        while (first.exitCode() == 0 && bytes < 400 << 20) {
            bytes *= 2;
            Files.delete(out.resolve("large"));
            first = killReceiverWithin(file("large", bytes));
        }
        Path file = in.resolve("large");
        assertThat(first.exitCode()).isEqualTo(1);
        assertThat(first.err()).contains("interrupted at ", "Send it again");
        assertThat(Files.exists(out.resolve("large"))).isFalse();
        long there = Files.size(part(file));
        assertThat(there).isBetween(4L << 20, bytes - 1L);
        try (ServerProcess receiver =
                new ServerProcess("recv-file", "--provider", "soft", "--port", "0", "--out", out.toString())) {
            Answer second = send(receiver.port, file);
            assertThat(second.exitCode()).as(second.err()).isZero();
            assertThat(second.out()).contains("resumed at " + there + ",");
            assertThat(receiver.readLine())
                    .startsWith("received " + out.resolve("large"))
                    .contains("resumed at " + there);
            receiver.stop();
        }
        assertArrived(file);
    }

    /** Sends to a receiver that is killed when some of the file is there. */
    private Answer killReceiverWithin(Path file) throws Exception {
        AtomicReference<Answer> answer = new AtomicReference<>();
        try (ServerProcess receiver =
                new ServerProcess("recv-file", "--provider", "soft", "--port", "0", "--out", out.toString())) {
            Thread sender = Thread.ofPlatform()
                    .start(() -> answer.set(send(receiver.port, "--size", "16k", "--window", "2", file)));
            while (sender.isAlive() && (!Files.exists(part(file)) || size(part(file)) < 4 << 20)) {
                TimeUnit.MILLISECONDS.sleep(1);
            }
            receiver.kill();
            sender.join();
        }
        return answer.get();
    }

    private static long size(Path file) throws IOException {
        try {
            return Files.size(file);
        } catch (NoSuchFileException renamed) {
            return 0;
        }
    }

    @Test
    void goesOnWhereASenderStopped() throws Exception {
        Path file = file("file", 100_000);
        byte[] content = Files.readAllBytes(file);
        try (RdmaServer receiver = receiver(false)) {
            try (RawSender sender = new RawSender(receiver.port())) {
                assertThat(sender.offer("file", content.length).getLong()).isZero();
                sender.begin(0);
                assertThat(sender.data(0, content, 0, 12_345).get()).isEqualTo(FileTransfer.OK);
            }
            Answer answer = send(receiver.port(), file);
            assertThat(answer.exitCode()).as(answer.err()).isZero();
            assertThat(answer.out()).contains("resumed at 12345,");
        }
        assertArrived(file);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 50_000, 99_999, 100_000, 100_001})
    void startsOverWhenThePartIsNotThisFiles(int partBytes) throws IOException {
        Path file = file("file", 100_000);
        byte[] damaged = java.util.Arrays.copyOf(Files.readAllBytes(file), partBytes);
        damaged[partBytes - 1] ^= 1;
        Files.write(part(file), damaged);
        try (RdmaServer receiver = receiver(false)) {
            Answer answer = send(receiver.port(), file);
            assertThat(answer.exitCode()).as(answer.err()).isZero();
            assertThat(answer.out()).doesNotContain("resumed");
            if (partBytes <= 100_000) {
                assertThat(answer.err()).contains("that differ from this file: sending it from the start");
            }
        }
        assertArrived(file);
    }

    @Test
    void acceptsAPartThatIsWhole() throws IOException {
        Path file = file("file", 100_000);
        Files.copy(file, part(file));
        try (RdmaServer receiver = receiver(false)) {
            Answer answer = send(receiver.port(), file);
            assertThat(answer.exitCode()).as(answer.err()).isZero();
            assertThat(answer.out()).contains("resumed at 100000,");
        }
        assertArrived(file);
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
                                "x.part",
                                "x".repeat(251))
                        .map(name -> name.getBytes(StandardCharsets.UTF_8)),
                Stream.of(new byte[] {'a', (byte) 0xff}, new byte[] {(byte) 0xc0, (byte) 0xaf}));
    }

    @ParameterizedTest
    @MethodSource("dangerousNames")
    void refusesNamesThatAreNotPlain(byte[] name) throws Exception {
        try (RdmaServer receiver = receiver(true);
                RawSender sender = new RawSender(receiver.port())) {
            ByteBuffer answer = sender.ask(RawSender.offerOf(name, 10));
            assertThat(answer.get()).isEqualTo(FileTransfer.FAILED);
            assertThat(StandardCharsets.UTF_8.decode(answer).toString()).containsAnyOf("name", "UTF-8");
            assertThat(sender.data(0, new byte[10], 0, 10).get()).isEqualTo(FileTransfer.FAILED);
        }
        try (Stream<Path> all = Files.walk(directory)) {
            assertThat(all).containsExactlyInAnyOrder(directory, in, out);
        }
    }

    @Test
    void writesThroughNoLink() throws Exception {
        Path elsewhere = Files.writeString(directory.resolve("elsewhere"), "untouched");
        Files.createSymbolicLink(out.resolve("file.part"), elsewhere);
        try (RdmaServer receiver = receiver(true)) {
            Answer answer = send(receiver.port(), file("file", 100));
            assertThat(answer.exitCode()).isEqualTo(1);
            assertThat(answer.err()).contains("file.part: exists and is not a regular file");
        }
        assertThat(elsewhere).hasContent("untouched");
    }

    @Test
    void deletesAFileWhoseHashIsWrong() throws Exception {
        byte[] content = new byte[100];
        try (RdmaServer receiver = receiver(false);
                RawSender sender = new RawSender(receiver.port())) {
            sender.offer("file", content.length);
            sender.begin(0);
            sender.data(0, content, 0, content.length);
            ByteBuffer answer = sender.ask(ByteBuffer.allocate(1 + FileTransfer.HASH_BYTES)
                    .put(FileTransfer.END)
                    .array());
            assertThat(answer.get()).isEqualTo(FileTransfer.FAILED);
            assertThat(StandardCharsets.UTF_8.decode(answer).toString()).contains("SHA-256");
        }
        assertThat(out).isEmptyDirectory();
    }

    @Test
    void refusesMessagesOutOfOrder() throws Exception {
        byte[] content = new byte[100];
        try (RdmaServer receiver = receiver(false);
                RawSender sender = new RawSender(receiver.port())) {
            assertThat(sender.data(0, content, 0, 10).get())
                    .as("before the offer")
                    .isEqualTo(FileTransfer.FAILED);
            sender.offer("file", content.length);
            assertThat(sender.data(0, content, 0, 10).get()).as("before BEGIN").isEqualTo(FileTransfer.FAILED);
            sender.offer("file", content.length);
            assertThat(sender.begin(7).get()).as("beginning elsewhere").isEqualTo(FileTransfer.FAILED);
            sender.offer("file", content.length);
            sender.begin(0);
            assertThat(sender.data(1, content, 0, 10).get()).as("with a gap").isEqualTo(FileTransfer.FAILED);
            sender.offer("file", content.length);
            sender.begin(0);
            assertThat(sender.data(0, new byte[101], 0, 101).get())
                    .as("too much")
                    .isEqualTo(FileTransfer.FAILED);
            sender.offer("file", content.length);
            sender.begin(0);
            ByteBuffer early = sender.ask(ByteBuffer.allocate(1 + FileTransfer.HASH_BYTES)
                    .put(FileTransfer.END)
                    .array());
            assertThat(early.get()).as("ending early").isEqualTo(FileTransfer.FAILED);
        }
    }

    @Test
    void oneSenderAtATime() throws Exception {
        Path file = file("file", 1000);
        try (RdmaServer receiver = receiver(false)) {
            try (RawSender other = new RawSender(receiver.port())) {
                other.offer("file", 500);
                Answer answer = send(receiver.port(), file);
                assertThat(answer.exitCode()).isEqualTo(1);
                assertThat(answer.err()).contains("another sender is sending this file");
            }
        }
        try (RdmaServer receiver = receiver(false)) {
            assertThat(send(receiver.port(), file).exitCode()).isZero();
        }
        assertArrived(file);
    }

    @Test
    void cutsOffASenderThatDoesNotWait() throws Exception {
        // Reading a part of this size takes a while, in which nothing is answered.
        try (RandomAccessFile sparse =
                new RandomAccessFile(out.resolve("file.part").toFile(), "rw")) {
            sparse.setLength(4L << 30);
        }
        try (RdmaServer receiver = receiver(false);
                RawSender sender = new RawSender(receiver.port())) {
            for (int i = 0; i <= FileTransfer.MAX_WINDOW + 1; i++) {
                sender.client.request(RawSender.offerOf(new byte[] {'f', 'i', 'l', 'e'}, 5L << 30));
            }
            assertThat(sender.client.channel().closeFuture().await(30, TimeUnit.SECONDS))
                    .as("the receiver ends the connection")
                    .isTrue();
        }
    }

    @Test
    void saysWhenTheDiskTakesNoMore() throws Exception {
        Path file = file("large", 3 << 20);
        List<String> limited = new ArrayList<>(List.of("/bin/bash", "-c", "ulimit -f 1024; exec \"$@\"", "limited"));
        limited.addAll(
                ServerProcess.commandLine("recv-file", "--provider", "soft", "--port", "0", "--out", out.toString()));
        try (ServerProcess receiver = new ServerProcess(new ProcessBuilder(limited))) {
            Answer answer = send(receiver.port, "--size", "64k", file);
            assertThat(answer.exitCode()).isEqualTo(1);
            assertThat(answer.err())
                    .contains("the receiver refuses: writing " + part(file) + " at 1048576 of 3145728: File too large");
        }
        assertThat(part(file)).hasSize(1 << 20);
        try (RdmaServer receiver = receiver(false)) {
            assertThat(send(receiver.port(), file).out()).contains("resumed at 1048576,");
        }
        assertArrived(file);
    }

    @Test
    void showsProgressWhenAskedTo() throws IOException {
        Path file = file("file", 300_000);
        PrintStream before = System.err;
        ByteArrayOutputStream shown = new ByteArrayOutputStream();
        System.setErr(new PrintStream(shown, true, StandardCharsets.UTF_8));
        try (RdmaServer receiver = receiver(true)) {
            assertThat(send(receiver.port(), "--no-progress", file).exitCode()).isZero();
            assertThat(shown.toString(StandardCharsets.UTF_8)).doesNotContain("%");
            assertThat(send(receiver.port(), "--progress", "--size", "10k", file)
                            .exitCode())
                    .isZero();
        } finally {
            System.setErr(before);
        }
        assertThat(shown.toString(StandardCharsets.UTF_8)).contains("file", "100%");
    }

    @Test
    void exitCodesTellWrongUsageFromFailure() throws IOException {
        Path file = file("file", 1);
        assertThat(run("recv-file").exitCode()).isEqualTo(2);
        assertThat(run("recv-file", "--out", file.toString()))
                .satisfies(answer -> assertThat(answer.exitCode()).isEqualTo(1))
                .satisfies(answer -> assertThat(answer.err()).contains("it is a file, not a directory"));
        assertThat(run("send-file").exitCode()).isEqualTo(2);
        assertThat(send(1, "--size", "17m", file).exitCode()).isEqualTo(2);
        assertThat(send(1, "--size", "16m", "--window", "5", file).exitCode()).isEqualTo(2);
        assertThat(send(1, "--window", "0", file).exitCode()).isEqualTo(2);
        Answer nobody = send(1, file);
        assertThat(nobody.exitCode()).isEqualTo(1);
        assertThat(nobody.err()).contains("send-file: connect", "127.0.0.1:1: ");
    }

    /** A sender that does as it likes. */
    private static final class RawSender implements AutoCloseable {
        final RdmaClient client;

        RawSender(int port) {
            client = RdmaClient.builder().provider("soft").connect(HOST, port);
        }

        ByteBuffer ask(byte[] request) throws Exception {
            return ByteBuffer.wrap(client.request(request).get(30, TimeUnit.SECONDS));
        }

        static byte[] offerOf(byte[] name, long sizeBytes) {
            return ByteBuffer.allocate(2 + Long.BYTES + name.length)
                    .put(FileTransfer.OFFER)
                    .put((byte) FileTransfer.VERSION)
                    .putLong(sizeBytes)
                    .put(name)
                    .array();
        }

        ByteBuffer offer(String name, long sizeBytes) throws Exception {
            ByteBuffer answer = ask(offerOf(name.getBytes(StandardCharsets.UTF_8), sizeBytes));
            assertThat(answer.get()).isEqualTo(FileTransfer.OK);
            return answer;
        }

        ByteBuffer begin(long offset) throws Exception {
            return ask(ByteBuffer.allocate(1 + Long.BYTES)
                    .put(FileTransfer.BEGIN)
                    .putLong(offset)
                    .array());
        }

        ByteBuffer data(long offset, byte[] content, int from, int bytes) throws Exception {
            return ask(ByteBuffer.allocate(FileTransfer.DATA_HEADER_BYTES + bytes)
                    .put(FileTransfer.DATA)
                    .putLong(offset)
                    .put(content, from, bytes)
                    .array());
        }

        @Override
        public void close() {
            client.close();
        }
    }
}
