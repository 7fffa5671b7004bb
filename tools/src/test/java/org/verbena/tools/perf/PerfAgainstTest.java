package org.verbena.tools.perf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.samples.ServerProcess;
import org.verbena.samples.command.CommandFailure;
import org.verbena.tools.VerbenaProcess;
import org.verbena.transport.spi.Patience;

/**
 * {@code perf client --against} with a script in the place of the C program, and what C programs have printed. The lab
 * has the programs themselves.
 */
@Timeout(240)
class PerfAgainstTest {
    /** As qperf is called: the server with a port alone. */
    private static final String QPERF = """
            #!/bin/sh
            here=$(dirname "$0")
            if [ "$1" = --listen_port ]; then
              echo $$ > "$here/server"
              echo "$2" > "$here/port"
              exec sleep 600
            fi
            [ -e "$here/port" ] || exit 1
            echo "$@" >> "$here/clients"
            [ ! -e "$here/broken" ] || { echo "it does not work"; exit 3; }
            case "$*" in
              *tcp_lat) printf 'tcp_lat:\\n    latency   =        2000 ns\\n    msg_rate  =  500000 /sec\\n' ;;
              *) printf 'tcp_bw:\\n    bw        =  3000000000 bytes/sec\\n    msg_rate  =  45776 /sec\\n' ;;
            esac
            """;

    /** Prints no number until it has been called so often. */
    private static final String UCX = """
            #!/bin/sh
            here=$(dirname "$0")
            [ "$1" != -p ] || exec sleep 600
            echo "$@" >> "$here/clients"
            average=inf
            [ $(wc -l < "$here/clients") -lt %d ] || average=165.246
            echo "20000,10.976,122.043,$average,512.11,378.22,8194,6052"
            """;

    @TempDir
    private static Path programs;

    /** The server of most tests: each that needs another starts a JVM more. */
    private static ServerProcess usual;

    @BeforeAll
    static void begin() throws IOException {
        Path script = programs.resolve("qperf");
        Files.writeString(script, QPERF);
        Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwxr-xr-x"));
        usual = serve("--with", "qperf,ucx");
    }

    @AfterAll
    static void end() {
        usual.close();
    }

    /** What the script has left in earlier tests. */
    @BeforeEach
    void tidy() throws IOException {
        for (String file : List.of("server", "port", "clients", "broken")) {
            Files.deleteIfExists(programs.resolve(file));
        }
    }

    private static ProcessBuilder process(String path, String... command) {
        ProcessBuilder builder = new ProcessBuilder(VerbenaProcess.commandLine(command));
        builder.environment().put("PATH", path);
        return builder;
    }

    private static ServerProcess serve(String... options) throws IOException {
        List<String> all = new ArrayList<>(List.of("perf", "server", "--provider", "soft", "--port", "0"));
        all.addAll(List.of(options));
        return new ServerProcess(process(programs + ":/usr/bin:/bin", all.toArray(String[]::new)));
    }

    private record Answer(int exitCode, String out, String err) {}

    private Answer client(String path, ServerProcess to, String... options) throws Exception {
        List<String> all = new ArrayList<>(List.of("perf", "client", "--provider", "soft", "-p", "" + to.port));
        all.addAll(List.of("--duration", "0.2", "--warm-up", "0.05"));
        all.addAll(List.of(options));
        Path out = programs.resolve("out");
        Path err = programs.resolve("err");
        Process client = process(path, all.toArray(String[]::new))
                .redirectOutput(out.toFile())
                .redirectError(err.toFile())
                .start();
        int exitCode = client.waitFor();
        return new Answer(exitCode, Files.readString(out), Files.readString(err));
    }

    private Answer client(ServerProcess to, String... options) throws Exception {
        return client(programs + ":/usr/bin:/bin", to, options);
    }

    private List<String> read(String file) throws IOException {
        return Files.readAllLines(programs.resolve(file));
    }

    @Test
    void comparesWhatTheProgramCanMeasure() throws Exception {
        Answer answer = client(usual, "-t", "stream,request", "-s", "64,4k", "--against", "qperf", "--json");
        assertThat(answer.exitCode()).as(answer.err()).isZero();
        List<JsonObject> tests = PerfRuns.tests(answer.out());
        assertThat(tests).hasSize(4);
        for (JsonObject test : tests.subList(0, 2)) {
            JsonObject against = test.getAsJsonObject("against");
            assertThat(against.get("program").getAsString()).isEqualTo("qperf");
            assertThat(against.get("averageMicros").getAsDouble()).isEqualTo(2);
            assertThat(against.has("p50Micros")).isFalse();
            assertThat(against.get("ratio").getAsDouble())
                    .isEqualTo(test.get("averageMicros").getAsDouble() / 2);
        }
        assertThat(tests.get(2).getAsJsonObject("against").get("reason").getAsString())
                .isEqualTo("qperf has nothing like request --lat");
        String port = read("port").getFirst();
        assertThat(read("clients"))
                .containsExactly(
                        "127.0.0.1 --listen_port " + port + " --time 1 --msg_size 64 --unify_units --verbose tcp_lat",
                        "127.0.0.1 --listen_port " + port
                                + " --time 1 --msg_size 4096 --unify_units --verbose tcp_lat");
        long pid = Long.parseLong(read("server").getFirst());
        Patience.until("the server is gone", () -> !Files.exists(Path.of("/proc/" + pid)));
    }

    @Test
    void printsTheRatioOfBandwidths() throws Exception {
        Answer text = client(usual, "-t", "stream", "--bw", "-s", "64k", "--against", "qperf");
        assertThat(text.exitCode()).as(text.err()).isZero();
        assertThat(text.out())
                .containsPattern("\n  qperf: 3000.0 MB/s, 45776 per second; perf's MB/s are \\d+\\.\\d\\d of that\n");
        Answer csv = client(usual, "-t", "stream,grpc", "--bw", "-s", "64k", "--against", "qperf", "--csv");
        List<String> lines = csv.out().lines().toList();
        assertThat(lines.get(0)).endsWith("," + Compared.NAMES);
        assertThat(lines.get(1)).containsPattern(",qperf,,,3000.000,\\d+\\.\\d{3}$");
        assertThat(lines.get(2)).endsWith(",qperf,,,,");
        assertThat(csv.err()).contains("qperf: qperf has nothing like grpc --bw");
        assertThat(lines)
                .allMatch(line -> line.split(",", -1).length == lines.getFirst().split(",").length);
    }

    @Test
    void aProgramThatFailsIsToldAndTheFiguresStay() throws Exception {
        Files.createFile(programs.resolve("broken"));
        Answer answer = client(usual, "-t", "stream", "--against", "qperf", "--json");
        assertThat(answer.exitCode()).isOne();
        JsonObject test = PerfRuns.tests(answer.out()).getFirst();
        assertThat(test.get("count").getAsLong()).isPositive();
        assertThat(test.getAsJsonObject("against").get("reason").getAsString())
                .isEqualTo("qperf ended with 3: it does not work");
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 100})
    void aProgramThatPrintsNoNumberMeasuresAgain(int runs) throws Exception {
        Path script = programs.resolve("ucx_perftest");
        Files.writeString(script, UCX.formatted(runs));
        Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwxr-xr-x"));
        Answer answer = client(usual, "-t", "stream", "--against", "ucx", "--csv");
        if (runs == 2) {
            assertThat(answer.exitCode()).as(answer.err()).isZero();
            assertThat(answer.out()).contains(",ucx_perftest,10.976,165.246,,");
            assertThat(read("clients")).hasSize(2);
        } else {
            assertThat(answer.exitCode()).isOne();
            assertThat(answer.out()).contains(",ucx_perftest,,,,");
            assertThat(answer.err()).contains("inf or nan");
        }
    }

    @Test
    void aServerRunsOnlyWhatItsUserAllows() throws Exception {
        try (ServerProcess strict = serve("--with", "perftest")) {
            Answer answer = client(strict, "-t", "stream", "--against", "qperf");
            assertThat(answer.exitCode()).isOne();
            assertThat(answer.out())
                    .contains("  qperf: the server runs no qperf for clients: start it with --with qperf");
        }
        assertThat(programs.resolve("server")).doesNotExist();
    }

    @Test
    void aProgramThatIsMissingIsNamedBeforeAnythingIsMeasured() throws Exception {
        Answer answer = client("/nowhere", usual, "-t", "stream", "--against", "qperf");
        assertThat(answer.exitCode()).isOne();
        assertThat(answer.err()).contains("qperf is not installed on the client: apt-get install qperf");
        assertThat(answer.out()).isEmpty();
    }

    @Test
    void refusesWhatNoProgramMeasures() throws Exception {
        try (PerfRuns perf = new PerfRuns()) {
            perf.run(2, "-t", "grpc", "--against", "qperf");
            assertThat(perf.errors()).contains("--against qperf: qperf has nothing like grpc --lat");
            perf.run(2, "-t", "send", "--against", "perftest");
            assertThat(perf.errors())
                    .contains("perftest needs an RDMA device for send, and perf runs without one here");
            perf.run(2, "-t", "stream", "--against", "ucx", "-q", "2");
            assertThat(perf.errors()).contains("ucx has one connection for stream --lat");
            perf.run(2, "-t", "stream", "--against", "ucx", "--rate", "10");
            assertThat(perf.errors()).contains("ucx cannot start operations at a rate");
        }
    }

    @Test
    void readsWhatPerftestPrints() {
        ToolRun run = new ToolRun(PerfTest.SEND, true, 2, 1, 1, false, 1, 500);
        assertThat(PerfTool.PERFTEST.program(run)).isEqualTo("ib_send_lat");
        assertThat(PerfTool.PERFTEST.arguments(run, 7706, "10.77.0.1"))
                .containsExactly("-R", "-F", "-p", "7706", "-n", "500", "-s", "2", "10.77.0.1");
        ToolFigures latency = PerfTool.PERFTEST.figures(run, """
                 rdma_cm QPs\t : ON
                 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:77:00:01
                ---------------------------------------------------------------------------------------
                 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\s
                 2       500          10.25          2132.36      10.68    \t       19.00       \t103.27 \t\t186.58  \t\t2132.36
                ---------------------------------------------------------------------------------------
                """);
        assertThat(latency.typicalMicros()).isEqualTo(10.68);
        assertThat(latency.averageMicros()).isEqualTo(19);
        ToolRun both = new ToolRun(PerfTest.MESSAGE, false, 4096, 2, 16, true, 1, 1000);
        assertThat(PerfTool.PERFTEST.arguments(both, 7706, null))
                .containsExactly("-R", "-F", "-p", "7706", "-n", "500", "-s", "4096", "-t", "16", "-q", "2", "-b");
        ToolFigures bandwidth = PerfTool.PERFTEST.figures(both, """
                 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
                 4096       1000             63.88              19.49  \t\t   0.004990
                """);
        assertThat(bandwidth.megabytesPerSecond()).isCloseTo(20.437, within(0.001));
        assertThat(bandwidth.perSecond()).isCloseTo(4990, within(0.001));
        ToolRun atomic = new ToolRun(PerfTest.ATOMIC, true, 8, 1, 1, false, 1, 500);
        assertThat(PerfTool.PERFTEST.arguments(atomic, 7706, null)).doesNotContain("-s");
        assertThatExceptionOfType(CommandFailure.class)
                .isThrownBy(() -> PerfTool.PERFTEST.figures(run, "Unable to open device\n"))
                .withMessage("no figures in what ib_send_lat printed: Unable to open device");
        for (String noNumber : new String[] {"inf", "-nan"}) {
            assertThat(PerfTool.PERFTEST.figures(run, """
                                     #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]
                                     2       500          10.25       2132.36      10.68       %s
                                    """.formatted(noNumber)).areFinite())
                    .isFalse();
        }
        assertThat(latency.areFinite() && bandwidth.areFinite()).isTrue();
        assertThat(PerfTool.PERFTEST.program(new ToolRun(PerfTest.WRITE, true, 2, 1, 1, false, 1, 500)))
                .isNull();
    }

    @Test
    void readsWhatQperfPrints() {
        ToolRun run = new ToolRun(PerfTest.READ, true, 64, 1, 1, false, 2, 500);
        assertThat(PerfTool.QPERF.arguments(run, 7706, "host"))
                .containsSequence("--use_cm", "1")
                .endsWith("rc_rdma_read_lat");
        ToolFigures latency = PerfTool.QPERF.figures(run, """
                rc_rdma_read_lat:
                    latency         =         35465 ns
                    msg_rate        =         28479 /sec
                """);
        assertThat(latency.averageMicros()).isEqualTo(35.465);
        assertThat(latency.typicalMicros()).isNaN();
        ToolFigures bandwidth =
                PerfTool.QPERF.figures(new ToolRun(PerfTest.WRITE, false, 64, 1, 1, false, 2, 500), """
                rc_rdma_write_bw:
                    bw              =       2168576 bytes/sec
                    msg_rate        =         33884 /sec
                """);
        assertThat(bandwidth.megabytesPerSecond()).isEqualTo(2.168576);
        assertThat(bandwidth.perSecond()).isEqualTo(33884);
    }

    @Test
    void readsWhatUcxPrints() {
        ToolRun run = new ToolRun(PerfTest.STREAM, false, 65536, 1, 16, false, 1, 20000);
        assertThat(PerfTool.UCX.arguments(run, 7706, "host"))
                .containsExactly(
                        "host",
                        "-p",
                        "7706",
                        "-t",
                        "stream_bw",
                        "-s",
                        "65536",
                        "-n",
                        "20000",
                        "-w",
                        "2000",
                        "-O",
                        "16",
                        "-f",
                        "-v");
        String printed = """
                iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
                20000,10.976,122.043,165.246,512.11,378.22,8194,6052
                """;
        ToolFigures bandwidth = PerfTool.UCX.figures(run, printed);
        assertThat(bandwidth.megabytesPerSecond()).isCloseTo(396.592, within(0.001));
        assertThat(bandwidth.perSecond()).isEqualTo(6052);
        ToolFigures latency =
                PerfTool.UCX.figures(new ToolRun(PerfTest.STREAM, true, 64, 1, 1, false, 1, 500), printed);
        assertThat(latency.typicalMicros()).isEqualTo(10.976);
        assertThat(latency.averageMicros()).isEqualTo(165.246);
        assertThat(PerfTool.UCX.environment(false)).containsEntry("UCX_TLS", "tcp");
    }

    @Test
    void aRunFromAPeerIsChecked() {
        ToolRun run = new ToolRun(PerfTest.READ, true, 64, 2, 3, false, 4, 500);
        assertThat(ToolRun.decode(run.encode())).isEqualTo(run);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ToolRun.decode("READ true 0 2 3 false 4 500"))
                .withMessage("bytes must be 1 to 1073741824, not 0");
        for (String wrong : new String[] {
            "",
            "READ",
            "RM true 64 2 3 false 4 500",
            "READ true 64 2 3 false 4 500 --file",
            "READ true 64 2 3 false 4 1;ls",
            "READ true -64 2 3 false 4 500"
        }) {
            assertThatIllegalArgumentException().as(wrong).isThrownBy(() -> ToolRun.decode(wrong));
        }
    }
}
