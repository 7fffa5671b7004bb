package org.verbena.tools.perf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.withinPercentage;
import static org.verbena.tools.perf.PerfRuns.tests;

import com.google.gson.JsonObject;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.DefaultEventLoop;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.ImmediateEventExecutor;
import io.netty.util.concurrent.Promise;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.samples.ServerProcess;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.Measurement;
import org.verbena.samples.command.Pipelined;
import org.verbena.tools.VerbenaProcess;
import org.verbena.transport.spi.Patience;

/** {@code verbena perf} against a server in another process, on the soft provider. */
@Timeout(240)
class PerfCommandTest {
    private static PerfRuns perf;

    @BeforeAll
    static void serve() throws Exception {
        perf = new PerfRuns();
    }

    @AfterAll
    static void stop() {
        perf.close();
    }

    private static String run(int exitCode, String... arguments) {
        return perf.run(exitCode, arguments);
    }

    @ParameterizedTest
    @ValueSource(strings = {"--lat", "--bw"})
    void measuresEveryTest(String mode) {
        List<JsonObject> tests = tests(run(
                0,
                mode,
                "-t",
                "message,request,stream,send,ring,grpc,read,write,atomic",
                "-s",
                "1,4k",
                "--window",
                "8",
                "--json"));
        assertThat(tests)
                .extracting(it -> it.get("test").getAsString() + " " + it.get("bytes"))
                .containsExactly(
                        "message 1",
                        "message 4096",
                        "request 1",
                        "request 4096",
                        "stream 1",
                        "stream 4096",
                        "send 1",
                        "send 4096",
                        "ring 1",
                        "ring 4096",
                        "grpc 1",
                        "grpc 4096",
                        "read 1",
                        "read 4096",
                        "write 1",
                        "write 4096",
                        "atomic 8");
        assertThat(tests).allSatisfy(it -> {
            assertThat(it.get("mode").getAsString()).isEqualTo(mode.substring(2));
            assertThat(it.get("count").getAsLong()).isPositive();
            assertThat(it.get("minMicros").getAsDouble()).isPositive();
            assertThat(it.get("p50Micros").getAsDouble())
                    .isBetween(
                            it.get("minMicros").getAsDouble(),
                            it.get("p999Micros").getAsDouble());
            assertThat(it.get("megabytesPerSecond").getAsDouble())
                    .isEqualTo(
                            it.get("perSecond").getAsDouble() * it.get("bytes").getAsInt() / 1e6);
        });
    }

    @Test
    void aMessagesLatencyIsHalfItsRoundTrip() {
        JsonObject it = tests(run(0, "-t", "message", "--json")).getFirst();
        // One is under way, so its round trip is the time that each of them takes.
        double each = 1e6 / it.get("perSecond").getAsDouble();
        assertThat(it.get("averageMicros").getAsDouble()).isBetween(each / 8, each / 2 * 1.01);
    }

    @Test
    void onlyARoundTripWithoutARateIsHalved() {
        PerfClient.Load oneByOne = new PerfClient.Load(1, 1, 0, false);
        PerfClient.Load atARate = new PerfClient.Load(1, 0, 20, false);
        assertThat(PerfTest.MESSAGE.divisor(true, oneByOne)).isEqualTo(2);
        assertThat(PerfTest.MESSAGE.divisor(true, atARate)).isOne();
        assertThat(PerfTest.MESSAGE.divisor(false, oneByOne)).isOne();
        assertThat(PerfTest.REQUEST.divisor(true, oneByOne)).isOne();
    }

    @Test
    void startsOperationsWhenTheyAreDue() {
        JsonObject it = tests(run(
                        0,
                        "-t",
                        "request",
                        "--rate",
                        "500",
                        "--duration",
                        "0.4",
                        "-q",
                        "2",
                        "--threads",
                        "2",
                        "--json"))
                .getFirst();
        assertThat(it.get("count").getAsLong()).isEqualTo(200);
        assertThat(it.get("window").getAsInt()).isZero();
        assertThat(it.get("connections").getAsInt()).isEqualTo(2);
    }

    @ParameterizedTest
    @CsvSource("--bw, 500")
    void sendsKeepToTheServersReceives(String mode, String window) {
        sendsKeepToTheReceives(mode, window);
    }

    @ParameterizedTest
    @Tag("full")
    @CsvSource({"--bw, 1", "--lat, 1"})
    void singleSendsKeepToTheServersReceives(String mode, String window) {
        sendsKeepToTheReceives(mode, window);
    }

    private static void sendsKeepToTheReceives(String mode, String window) {
        // Beyond the receives that are posted, the connection would end: iWARP repeats nothing.
        JsonObject it = tests(run(0, "-t", "send", mode, "-s", "8m", "--window", window, "-q", "2", "--json"))
                .getFirst();
        assertThat(it.get("count").getAsLong()).isPositive();
        assertThat(SendProtocol.of(8 << 20, 500, false).credits()).isEqualTo(4);
        assertThat(SendProtocol.of(64, 500, false).credits()).isEqualTo(500);
        assertThat(SendProtocol.of(16 << 20, 1, false).credits()).isEqualTo(2);
    }

    @ParameterizedTest
    @CsvSource({
        "message, 4k, 500",
        "stream, 4m, 2",
        "send, 1, 1",
    })
    void measuresBothDirectionsAtOnce(String test, String size, String window) {
        measuresBothDirections(test, size, window);
    }

    @ParameterizedTest
    @Tag("full")
    @CsvSource({
        "message, 1, 8",
        "message, 4m, 2",
        "stream, 1, 8",
        "stream, 4k, 500",
        "send, 4k, 500",
        "send, 4m, 8",
        "send, 16m, 1",
    })
    void measuresBothDirectionsWithAnySize(String test, String size, String window) {
        measuresBothDirections(test, size, window);
    }

    private static void measuresBothDirections(String test, String size, String window) {
        List<JsonObject> tests = tests(run(
                0,
                "--bw",
                "--bidirectional",
                "-t",
                test,
                "-s",
                size + "," + size,
                "--window",
                window,
                "-q",
                "2",
                "--json"));
        assertThat(tests).hasSize(2).allSatisfy(it -> {
            assertThat(it.get("bidirectional").getAsBoolean()).isTrue();
            assertThat(it.get("count").getAsLong()).isPositive();
            assertThat(it.get("megabytesPerSecond").getAsDouble())
                    .isCloseTo(
                            it.get("perSecond").getAsDouble() * it.get("bytes").getAsInt() / 1e6, withinPercentage(1));
        });
    }

    @Test
    void anOperationForWhichThereIsNoMemoryEndsTheRun() throws Exception {
        DefaultEventLoop loop = new DefaultEventLoop();
        try {
            Supplier<Future<?>> operation = () -> {
                throw new OutOfMemoryError("no direct memory");
            };
            Future<Measurement> closed = Pipelined.run(loop, Long.MAX_VALUE, 8, Long.MAX_VALUE, operation);
            Future<Measurement> open = OpenLoop.runAll(List.of(loop), 1000, 1_000_000, List.of(operation))
                    .getFirst();
            for (Future<Measurement> run : List.of(closed, open)) {
                assertThat(run.await().cause())
                        .isInstanceOf(CommandFailure.class)
                        .hasMessageContaining("--window")
                        .hasMessageContaining("no direct memory");
            }
        } finally {
            loop.shutdownGracefully();
        }
    }

    @Test
    void recordsOfEachLengthHaveTheirRing() {
        assertThat(PerfRing.capacityBytes(64, 1)).isEqualTo(64 << 10);
        assertThat(PerfRing.capacityBytes(4096, 64)).isEqualTo(2 * 64 * 4096);
        assertThat(PerfRing.capacityBytes(8 << 20, 64)).isEqualTo(64 << 20);
        List<JsonObject> tests =
                tests(run(0, "-t", "ring,message", "--bw", "-s", "1,100,70k,8m,3", "--window", "8", "--json"));
        assertThat(tests)
                .hasSize(10)
                .allSatisfy(it -> assertThat(it.get("count").getAsLong()).isPositive());
    }

    @Test
    void bothDirectionsAreSummed() {
        Measurement sent = new Measurement();
        sent.record(1000);
        sent.record(3000);
        sent.took(1_000_000_000);
        PerfFigures it = PerfFigures.of(
                PerfTest.MESSAGE, false, 500_000, new PerfClient.Load(1, 2, 0, true), sent, 6, new PerfUsage(8000, 80));
        assertThat(it.count()).isEqualTo(8);
        assertThat(it.perSecond()).isEqualTo(8);
        assertThat(it.megabytesPerSecond()).isEqualTo(4);
        assertThat(it.allocatedBytesEach()).isEqualTo(10);
    }

    @Test
    void aMessageOfTheServerThatIsMissingIsAFailure() throws Exception {
        PerfClient.Load load = new PerfClient.Load(2, 2, 0, true);
        PerfClient.endReturn(List.of(new Returned(3, 3), new Returned(4, 4)), load);
        assertThatExceptionOfType(CommandFailure.class)
                .isThrownBy(() -> PerfClient.endReturn(List.of(new Returned(3, 3), new Returned(4, 3)), load))
                .withMessage("of 7 messages that the server sent, 6 arrived");
    }

    /** A connection at the end of a run in both directions. */
    private record Returned(long sent, long received) implements PerfSubject {
        @Override
        public Supplier<Future<?>> operation(PerfTest test, boolean isLatency, int bytes, PerfClient.Load load) {
            throw new UnsupportedOperationException("it has ended");
        }

        @Override
        public EventLoop loop() {
            throw new UnsupportedOperationException("it has ended");
        }

        @Override
        public long endReturn() {
            return sent;
        }

        @Override
        public void close() {}
    }

    @Test
    void theServersMessagesAreCounted() {
        StreamCounter counter = new StreamCounter(3);
        ByteBuf bytes = Unpooled.wrappedBuffer(new byte[] {'c', 'h', 'h', 'c', 'c', 'c', 'h', 7});
        assertThat(counter.take(bytes.readSlice(4))).isFalse();
        assertThat(counter.counted()).isEqualTo(1);
        assertThat(counter.take(bytes)).isTrue();
        assertThat(counter.counted()).isEqualTo(2);
        assertThat(bytes.readableBytes()).isEqualTo(1);
        assertThatIllegalArgumentException().isThrownBy(() -> counter.take(bytes));
    }

    @Test
    void aFlowEndsAfterItsLastMessage() {
        List<Promise<Boolean>> sends = new ArrayList<>();
        List<Long> ended = new ArrayList<>();
        PerfFlow flow = new PerfFlow(64, 2, () -> {
            sends.add(ImmediateEventExecutor.INSTANCE.newPromise());
            return sends.getLast();
        });
        flow.begin0();
        sends.getFirst().setSuccess(true);
        assertThat(sends).hasSize(3);
        flow.end0(ended::add);
        sends.get(2).setSuccess(true);
        assertThat(ended).isEmpty();
        sends.get(1).setSuccess(true);
        assertThat(ended).containsExactly(3L);
        assertThat(sends).hasSize(3);
        assertThatIllegalArgumentException().isThrownBy(() -> new PerfFlow(0, 1, () -> sends.getFirst()));
        assertThatIllegalArgumentException().isThrownBy(() -> new PerfFlow((1 << 30) + 1, 1, () -> sends.getFirst()));
        assertThatIllegalArgumentException().isThrownBy(() -> new PerfFlow(1, 0, () -> sends.getFirst()));
    }

    @Test
    void theLoopsOfClientAndServerRunOnTheProcessorsThatWereNamed() throws Exception {
        String cpu = allowed("/proc/self/status").split("[-,]")[0];
        try (PerfRuns bound = new PerfRuns("--cpu", cpu)) {
            awaitLoopsOn(cpu, bound.pid(), 1);
            ProcessBuilder client = new ProcessBuilder(VerbenaProcess.commandLine(
                    bound.arguments("-t", "message", "--cpu", cpu, "--threads", "2", "-q", "2", "--duration", "60")
                            .toArray(String[]::new)));
            Process process = client.redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            try {
                awaitLoopsOn(cpu, process.pid(), 2);
                assertThat(process.isAlive()).isTrue();
            } finally {
                process.destroyForcibly();
            }
        }
    }

    /** A thread has its name before it is bound, and does nothing else in between. */
    private static void awaitLoopsOn(String cpu, long pid, int min) {
        Patience.until("loops on processor " + cpu, () -> {
            List<String> loops = loopsOf(pid);
            return loops.size() >= min && loops.stream().allMatch(cpu::equals);
        });
    }

    /** The processors of each event loop's thread. */
    private static List<String> loopsOf(long pid) {
        List<String> loops = new ArrayList<>();
        try (Stream<Path> threads = Files.list(Path.of("/proc/" + pid + "/task"))) {
            for (Path thread : threads.toList()) {
                try {
                    if (Files.readString(thread.resolve("comm")).startsWith("verbena-soft")) {
                        loops.add(allowed(thread.resolve("status").toString()));
                    }
                } catch (IOException ended) {
                    continue; // a compiler's thread, meanwhile
                }
            }
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
        return loops;
    }

    private static String allowed(String status) throws IOException {
        return Files.readAllLines(Path.of(status)).stream()
                .filter(line -> line.startsWith("Cpus_allowed_list:"))
                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                .findFirst()
                .orElseThrow();
    }

    @ParameterizedTest
    @CsvSource({"--progress, true", "--no-progress, false"})
    void showsHowMuchOfTheTimeIsOver(String option, boolean isShown) throws Exception {
        ProcessBuilder client = new ProcessBuilder(
                VerbenaProcess.commandLine(perf.arguments("-t", "read", option).toArray(String[]::new)));
        Process process = client.redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        String errors = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).isZero();
        assertThat(errors.contains("read 64") && errors.contains("% "))
                .as(errors)
                .isEqualTo(isShown);
    }

    @Test
    void aServerRejectsSendsThatTakeTooMuchMemory() {
        byte[] max = new SendProtocol(16 << 20, 4, true).encode();
        assertThat(SendProtocol.decode(Arrays.copyOf(max, 56))).isEqualTo(new SendProtocol(16 << 20, 4, true));
        for (int[] wrong : new int[][] {{16 << 20, 5}, {(16 << 20) + 1, 4}, {0, 4}, {64, 3}, {64, 2049}, {-1, -1}}) {
            byte[] request =
                    ByteBuffer.allocate(9).putInt(wrong[0]).putInt(wrong[1]).array();
            assertThatIllegalArgumentException().isThrownBy(() -> SendProtocol.decode(request));
        }
        assertThatIllegalArgumentException().isThrownBy(() -> SendProtocol.decode(new byte[8]));
    }

    @ParameterizedTest
    @ValueSource(strings = {"message", "stream", "send"})
    void manyEchoesAtARateAreUnderWayAtOnce(String test) {
        JsonObject it = tests(run(0, "-t", test, "-s", "1", "--rate", "20000", "--duration", "0.2", "--json"))
                .getFirst();
        assertThat(it.get("count").getAsLong()).isEqualTo(4000);
    }

    @Test
    void printsATableAndCommaSeparatedValues() {
        assertThat(run(0, "-t", "read").lines())
                .satisfiesExactly(
                        line -> assertThat(line).startsWith("provider soft, /127.0.0.1:"),
                        line -> assertThat(line).startsWith("test        bytes      count    min us"),
                        line -> assertThat(line).containsPattern("^read +64 +\\d+ +[\\d.]+ "),
                        line -> assertThat(line).startsWith("Warm-up: ").contains("Load average: "));
        List<String> lines = run(0, "-t", "read", "--bw", "--csv").lines().toList();
        assertThat(lines).hasSize(2);
        assertThat(lines.get(0)).startsWith("test,mode,bytes,connections,window,");
        assertThat(lines.get(1)).startsWith("read,bw,64,1,64,0.000,");
        assertThat(lines.get(1).split(",")).hasSameSizeAs(lines.get(0).split(","));
    }

    @Test
    void writesTheDistribution(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("times.hgrm");
        run(0, "-t", "write", "--histogram", file.toString());
        assertThat(Files.readString(file)).contains("Percentile", "#[Mean", "#[Max");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--size 0 | --size must be 1 to 1024m for the test request; it is 0",
                "-t grpc -s 65m | --size must be 1 to 64m for the test grpc; it is 68157440",
                "-t send -s 20m | --size must be 1 to 16m for the test send; it is 20971520",
                "--rate 5 --bw | --rate goes with --lat",
                "-b -t message | --bidirectional goes with --bw",
                "-b --bw -t message,read | --bidirectional goes with the tests message, stream and send, not with read",
                "--cpu 0,8191 | --cpu: this process has no processor 8191 (sched_setaffinity: EINVAL)",
                "--cpu 3-2 | '3-2' is not a list of processors",
                "--cpu 0, | '0,' is not a list of processors",
                "--cpu 8192 | '8192' is not a list of processors",
                "--duration 0 | --duration must be more than 0",
                "--window 0 | must be 1 or more",
                "--lat --bw | mutually exclusive",
                "-t ping | Invalid value for option '--test'",
            })
    void refusesWhatCannotBeMeant(String arguments, String why) {
        run(2, arguments.split(" "));
        assertThat(perf.errors()).contains(why);
    }

    @Test
    void aServerThatTalksSomethingElseIsNamed() throws Exception {
        try (ServerProcess echo = VerbenaProcess.startServer("echo-server", "--provider", "soft", "--port", "0")) {
            run(1, "-p", "" + echo.port, "-t", "read");
            assertThat(perf.errors()).contains("what a perf server says");
        }
    }
}
