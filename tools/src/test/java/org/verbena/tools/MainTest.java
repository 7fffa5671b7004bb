package org.verbena.tools;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.Json;
import picocli.CommandLine;

/** The command line, as far as it needs no device. */
@Timeout(240)
class MainTest {
    /** What a command answered. */
    private record Answer(int exitCode, String out, String err) {}

    private static Answer run(String... args) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command =
                Main.commandLine(args).setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        int exitCode = command.execute(args);
        return new Answer(exitCode, out.toString(), err.toString());
    }

    static Stream<String> commands() {
        return Main.COMMANDS.stream();
    }

    @ParameterizedTest
    @MethodSource("commands")
    void aCommandAloneIsTheSameAsAmongAll(String name) {
        CommandLine alone = Main.commandLine(name, "--no-such-option");
        assertThat(alone.getSubcommands()).containsOnlyKeys(name);
        assertThat(helpOf(alone.getSubcommands().get(name)))
                .isEqualTo(
                        helpOf(Main.commandLineOfAllCommands().getSubcommands().get(name)));
    }

    /** Its own and that of the commands below it. */
    private static String helpOf(CommandLine command) {
        StringBuilder help = new StringBuilder(command.getUsageMessage());
        command.getSubcommands().values().forEach(child -> help.append(helpOf(child)));
        return help.toString();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "--help", "no-such-command", "--no-such-option", "--version --help"})
    void buildsNoCommandThatIsNotNamed(String line) {
        assertThat(Main.commandLine(line.split(" ")).getSubcommands()).isEmpty();
        assertThat(Main.commandLine((line + " rping echo-client").trim().split(" "))
                        .getSubcommands()
                        .keySet())
                .isSubsetOf("rping");
    }

    @Test
    void theHelpIsThatOfAllCommands() {
        assertThat(run("--help").out())
                .isEqualTo(Main.commandLineOfAllCommands().getUsageMessage())
                .contains("Usage: verbena [-h] [--version] COMMAND");
    }

    @Test
    void helpListsAllCommands() {
        Answer help = run("--help");
        assertThat(help.exitCode()).isZero();
        assertThat(help.out().lines().map(line -> line.trim().split(" ")[0])).containsAll(Main.COMMANDS);
    }

    @Test
    void theVersionNeedsNoCommand() {
        assertThat(Main.commandLine("--version").getSubcommands()).isEmpty();
        Answer version = run("--version");
        assertThat(version.exitCode()).isZero();
        assertThat(version.out()).startsWith("verbena ");
    }

    @ParameterizedTest
    @MethodSource("commands")
    void everyCommandHasHelpAndVersion(String name) {
        Answer help = run(name, "--help");
        assertThat(help.exitCode()).isZero();
        assertThat(help.out()).contains("Usage: verbena " + name, "Exit codes:", "--version");
        Answer version = run(name, "--version");
        assertThat(version.exitCode()).isZero();
        assertThat(version.out()).startsWith("verbena ").contains("Java ");
    }

    @Test
    void xsrqHasHelpOfItsOwn() {
        Answer help = run("pingpong", "xsrq", "--help");
        assertThat(help.exitCode()).isZero();
        assertThat(help.out().replaceAll("\\s+", " "))
                .contains("Usage: verbena pingpong xsrq", "--clients", "--num_tests", "not yet on an adapter");
        assertThat(run("pingpong", "--help").out()).contains("Usage: verbena pingpong", "KIND", "xsrq");
    }

    @Test
    void helpIsACommandToo() {
        assertThat(run("help").exitCode()).isZero();
        assertThat(run("help").out().lines().map(line -> line.trim().split(" ")[0]))
                .containsAll(Main.COMMANDS);
        assertThat(run("help", "rping")).isEqualTo(run("rping", "--help"));
        assertThat(run("help", "no-such-command").exitCode()).isEqualTo(2);
    }

    @Test
    void asksWhichCommand() {
        Answer answer = run();
        assertThat(answer.exitCode()).isEqualTo(2);
        assertThat(answer.err()).contains("rping", "devices");
        assertThat(answer.err().lines().toList().getFirst())
                .isEqualTo("verbena: choose a command (see verbena --help)");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "rping",
                "rping -s -c",
                "rping -c",
                "rping -s -S 22",
                "rping -s -S 65537",
                "rping -s -S many",
                "rping -s -C -1",
                "rping -s -p 65536",
                "rping -s --no-such-option",
                "pingpong",
                "pingpong tcp",
                "pingpong rc -m 1000",
                "pingpong rc -m 0",
                "pingpong rc -n 0",
                "pingpong rc -r 0",
                "pingpong rc host1 host2",
                "pingpong xsrq -n 0",
                "pingpong xsrq -c 0",
                "pingpong xsrq -c",
                "pingpong xsrq host1 host2",
                "pingpong -d rxe0 xsrq",
                "pingpong uc -o",
                "pingpong uc -N",
                "pingpong ud -m 1024",
                "pingpong ud -t",
                "pingpong rc -q 2",
                "pingpong srq -q 0",
                "pingpong srq -q 257",
                "pingpong srq -j",
                "pingpong xsrq -r 5",
                "echo-client --count 0",
                "echo-client --port 70000",
                "echo-client --port 0",
                "table-client --port 0",
                "grpc-client --port 0",
                "http-client --port 0",
                "send-file --port 0 some-file",
                "kv-client get key --port 0",
                "rping -c -a 127.0.0.1 -p 0",
                "pingpong rc -p 0 127.0.0.1",
                "pingpong xsrq -p 0 127.0.0.1",
                "rdma-rc -p 0 127.0.0.1",
                "echo-server -p -1",
                "echo-client --port many",
                "demo --port 65536",
                "pingpong rc -p 65536",
                "rdma-rc -p 70000",
                "rdma-client -p 0",
                "rdma-server -p 70000",
                "tutorial-client",
                "tutorial-client 127.0.0.1",
                "tutorial-client 127.0.0.1 0",
                "tutorial-client 127.0.0.1 70000",
                "tutorial-server -p 70000",
                "tutorial-server -n -1",
                "tutorial-server 7471",
                "rping -s -q --provider soft",
                "echo-client --warm-up -1",
                "grpc-client --count 0",
                "echo-client --spin -1",
                "echo-server --spin -1",
                "table-client --window 0",
                "table-server --row-size 7",
                "relay",
                "relay --to localhost",
                "relay --to localhost:0",
                "relay --to :5432",
                "relay --listen 65536 --to localhost:5432",
            })
    void refusesWrongUsageWithTwo(String line) {
        Answer answer = run(line.split(" "));
        assertThat(answer.exitCode()).as(answer.err()).isEqualTo(2);
        String command = line.startsWith("pingpong") ? "pingpong" : line.split(" ")[0];
        assertThat(answer.err().lines())
                .as("one line, the error")
                .hasSize(1)
                .first()
                .asString()
                .startsWith(command)
                .contains("(see verbena " + command)
                .endsWith(" --help)");
        assertThat(answer.out()).isEmpty();
    }

    @Test
    void refusesCommandsThatAreNotThere() {
        Answer answer = run("no-such-command");
        assertThat(answer.exitCode()).isEqualTo(2);
        assertThat(answer.err().lines())
                .hasSize(1)
                .first()
                .asString()
                .startsWith("verbena: there is no command 'no-such-command'")
                .endsWith(" (see verbena --help)");
        // Of all commands.
        assertThat(run("asyncwitch").err().lines())
                .hasSize(1)
                .first()
                .asString()
                .contains("there is no command 'asyncwitch'; did you mean", "asyncwatch");
    }

    @ParameterizedTest
    @CsvSource({
        "dmeo, demo",
        "echo, echo-server or echo-client",
        "perff, perf",
        "kv-client becnh, bench",
        "pingpong sqr, srq",
        "echo-client --coutn, --count"
    })
    void suggestsWhatIsSimilar(String line, String similar) {
        assertThat(run(line.split(" ")).err()).contains("; did you mean " + similar);
    }

    @ParameterizedTest
    @ValueSource(strings = {"x", "qqqqqqq", "echo-client --zzzzzz"})
    void suggestsNothingWhereNothingIsSimilar(String line) {
        assertThat(run(line.split(" ")).err()).doesNotContain("did you mean");
    }

    @ParameterizedTest
    @ValueSource(strings = {"nonsense --help", "--help nonsense", "kv-client nonsense --help", "pingpong tcp --help"})
    void aCommandThatIsNotThereHasNoHelp(String line) {
        Answer answer = run(line.split(" "));
        assertThat(answer.exitCode()).isEqualTo(2);
        assertThat(answer.out()).isEmpty();
        assertThat(answer.err().lines()).hasSize(1).first().asString().contains("there is no command '");
    }

    @Test
    void namesTheOptionThatIsNotThere() {
        assertThat(run("echo-client", "--coutn", "3").err().lines())
                .hasSize(1)
                .first()
                .asString()
                .startsWith("echo-client: ")
                .contains("--coutn");
    }

    @Test
    void helpHasItsCommandsInGroups() {
        List<String> help = run("--help").out().lines().toList();
        assertThat(help)
                .containsAll(
                        Main.GROUPS.keySet().stream().map(group -> group + ":").toList());
        int at = help.indexOf("Files and values:");
        assertThat(help.get(at - 1)).isEmpty();
        assertThat(help.get(at + 1)).startsWith("  recv-file ").contains("Receives files that send-file sends");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "rdma-rc -d no-such-device",
                "rdma-client -s 127.0.0.1 -p 1",
                "rdma-server -s 192.0.2.1",
                "tutorial-client 127.0.0.1 1",
                "tutorial-client no.such.host.invalid 1",
                "tutorial-server -s 192.0.2.1",
                "tutorial-server -s no.such.host.invalid",
            })
    void rawSamplesRefuseAtOnceWithoutADevice(String line) {
        Answer answer = run(line.split(" "));
        assertThat(answer.exitCode()).isEqualTo(1);
        assertThat(answer.err().lines()).hasSizeBetween(1, 2).first().asString().startsWith(line.split(" ")[0] + ": ");
    }

    @Test
    void bashCompletesCommandsAndOptions(@TempDir Path directory) throws Exception {
        Answer answer = run("completion");
        assertThat(answer.exitCode()).isZero();
        Path script = Files.writeString(directory.resolve("verbena.bash"), answer.out());
        assertThat(Bash.complete(script, "verbena", "ech")).containsExactlyInAnyOrder("echo-server", "echo-client");
        assertThat(Bash.complete(script, "verbena", "echo-client", "--cou")).containsExactly("--count");
        assertThat(Bash.complete(script, "verbena", "kv-client", "ben")).containsExactly("bench");
    }

    @ParameterizedTest
    @CsvSource({"64, 64", "1k, 1024", "64K, 65536", "1m, 1048576", "1g, 1073741824"})
    void readsSizesWithSuffixes(String text, int bytes) {
        assertThat(new ByteSize().convert(text)).isEqualTo(bytes);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "k", "2g", "1.5k", "64kb", "99999999999999999999"})
    void refusesInvalidSizes(String text) {
        assertThatExceptionOfType(CommandLine.TypeConversionException.class)
                .isThrownBy(() -> new ByteSize().convert(text))
                .withMessageContaining("'" + text + "'");
    }

    /** What JSON is made of. */
    record Thing(String name, int count, List<String> parts, boolean whole) {}

    @Test
    void writesJson() {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("thing", new Thing("a \"b\"\n\u0001", -1, List.of("x", "y"), true));
        map.put("none", List.of());
        map.put("empty", Map.of());
        assertThat(Json.of(map)).isEqualTo("""
                        {
                          "thing": {
                            "name": "a \\"b\\"\\n\\u0001",
                            "count": -1,
                            "parts": [
                              "x",
                              "y"
                            ],
                            "whole": true
                          },
                          "none": [],
                          "empty": {}
                        }
                        """);
    }
}
