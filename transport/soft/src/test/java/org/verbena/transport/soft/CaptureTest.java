package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.CaptureProbe;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** A session as Wireshark's dissectors see it. Needs tshark and the right to capture on the loopback device. */
@Timeout(240)
class CaptureTest {
    private static final int[] SIZES = {
        0, 1, 2, 3, 5, 64, 1000, 1461, 4096, 4097, 20_000, 65_516, 65_520, 65_536, 150_000
    };

    @TempDir
    private Path folder;

    @ParameterizedTest
    @CsvSource({"false, 0", "true, 0", "true, 1448"})
    void isUnderstoodByWireshark(boolean crc, int maxFpduBytes) throws IOException, InterruptedException {
        Path file = folder.resolve("capture.pcapng");
        int messages = 0;
        try (SoftFixture fixture =
                new SoftFixture(SoftOptions.ofSystemProperties().with(o -> {
                    o.crc = crc;
                    o.maxFpduBytes = maxFpduBytes;
                    o.sharedReceiveDepth = 64;
                }))) {
            Process capture = startCapture(fixture.address, file);
            RegisteredMemory memory = fixture.region(
                    1 << 20, Access.LOCAL_WRITE, Access.REMOTE_WRITE, Access.REMOTE_READ, Access.REMOTE_ATOMIC);
            for (int i = 0; i < memory.lengthBytes(); i += 4) {
                memory.segment().set(java.lang.foreign.ValueLayout.JAVA_INT, i, i * 0x01010107);
            }
            RecordingEndpointHandler client = fixture.connect(
                    EndpointOptions.DEFAULTS.with(o -> o.privateData = "hello".getBytes(StandardCharsets.US_ASCII)));
            RecordingEndpointHandler server = fixture.awaitAccepted();
            client.awaitConnected();
            server.awaitConnected();
            WorkRequest request = new WorkRequest(1);
            for (int size : SIZES) {
                server.receive(1, memory, 0, 200_000);
                request.asSend(1, 0).buffers().add(memory, 0, size);
                client.send(request);
                request.asWrite(2, 0, memory.address() + 7, memory.remoteKey())
                        .buffers()
                        .add(memory, 300_000, size);
                client.send(request);
                request.asRead(3, 0, memory.address() + 7, memory.remoteKey())
                        .buffers()
                        .add(memory, 600_000, size);
                client.send(request);
                client.awaitSends(3).forEach(done -> assertThat(done.status()).isEqualTo(WorkStatus.SUCCESS));
                server.awaitReceive();
                messages += 4;
            }
            request.asFetchAndAdd(4, 0, memory.address(), memory.remoteKey(), 3)
                    .buffers()
                    .add(memory, 16, 8);
            client.send(request);
            client.awaitSend();
            // And one that is refused, for the Terminate message.
            request.asRead(5, 0, 0x1000, 0x12345678).buffers().add(memory, 0, 8);
            client.send(request);
            assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR);
            client.awaitDisconnected();
            server.awaitDisconnected();
            CaptureProbe.awaitSeen(file, fixture.address);
            capture.destroy();
            assertThat(capture.waitFor(20, TimeUnit.SECONDS)).isTrue();
        }
        List<String> lines = run("tshark", "--disable-protocol", "rpcordma", "-V", "-r", file.toString());
        long segments =
                lines.stream().filter(line -> line.contains("= OpCode: ")).count();
        assertThat(segments).as("segments seen").isGreaterThanOrEqualTo(messages);
        assertThat(lines.stream().filter(line -> line.contains("Malformed") || line.contains("Bad CRC")))
                .isEmpty();
        assertThat(lines).anyMatch(line -> line.contains("Request frame header"));
        assertThat(lines).anyMatch(line -> line.contains("Reply frame header"));
        assertThat(lines).anyMatch(line -> line.contains("Remote Protection Error"));
        if (crc) {
            assertThat(lines.stream()
                            .filter(line -> line.contains("Good CRC32"))
                            .count())
                    .as("CRCs that match")
                    .isGreaterThanOrEqualTo(messages);
        }
    }

    private static Process startCapture(InetSocketAddress address, Path file) {
        Process capture = null;
        try {
            capture = new ProcessBuilder(
                            "dumpcap",
                            "-q",
                            "-i",
                            "lo",
                            "-s",
                            "0",
                            "-B",
                            "64",
                            "-f",
                            "tcp port " + address.getPort(),
                            "-w",
                            file.toString())
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
        } catch (IOException e) {
            assumeTrue(false, "no dumpcap here (Debian package tshark): " + e.getMessage());
        }
        Process started = capture;
        Patience.until("dumpcap writes its file or ends", () -> !started.isAlive() || size(file) > 0);
        assumeTrue(capture.isAlive(), "dumpcap may not capture on lo here");
        // It opens its file a moment before it listens.
        CaptureProbe.awaitSeen(file, address);
        return capture;
    }

    private static long size(Path file) {
        try {
            return Files.exists(file) ? Files.size(file) : 0;
        } catch (IOException e) {
            return 0;
        }
    }

    private static List<String> run(String... command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        List<String> lines = new ArrayList<>(process.inputReader().lines().toList());
        assertThat(process.waitFor()).isZero();
        return lines;
    }
}
