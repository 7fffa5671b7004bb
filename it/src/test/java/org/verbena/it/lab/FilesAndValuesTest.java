package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.tools.Main;
import org.verbena.transport.spi.Patience;

/**
 * The samples that copy files and keep values, on verbs over each device. One process has all servers, since a JVM
 * takes the guest long to start.
 */
@Tag("lab")
@Tag("lab-long")
@Tag("lab-full")
@Timeout(350)
class FilesAndValuesTest {
    private static final int VALUES_PORT = 7650;
    private static final int FILES_PORT = 7651;

    @TempDir
    static Path directory;

    private static PeerProgram servers;

    /** What a command answered; standard error is among it. */
    private record Answer(int exitCode, String said) {}

    @BeforeAll
    static void startServers() {
        List<String> commands = new ArrayList<>();
        for (LabDevice device : LabDevice.values()) {
            commands.addAll(receiver(device, FILES_PORT));
            commands.add(Servers.NEXT);
            commands.addAll(on(device, VALUES_PORT, "kv-server"));
            commands.add(Servers.NEXT);
        }
        servers = PeerProgram.startJava(Servers.class.getName(), commands.toArray(String[]::new));
        for (LabDevice device : LabDevice.values()) {
            awaitListening(servers, device, FILES_PORT);
            awaitListening(servers, device, VALUES_PORT);
        }
    }

    @AfterAll
    static void stopServers() {
        servers.close();
    }

    /** Runs several commands at once, whose arguments have {@value #NEXT} behind them. */
    public static final class Servers {
        static final String NEXT = "--";

        private Servers() {}

        public static void main(String[] arguments) {
            List<String> command = new ArrayList<>();
            for (String argument : arguments) {
                if (argument.equals(NEXT)) {
                    String[] one = command.toArray(String[]::new);
                    Thread.ofPlatform().start(() -> System.exit(Main.run(one)));
                    command.clear();
                } else {
                    command.add(argument);
                }
            }
        }
    }

    private static void awaitListening(PeerProgram server, LabDevice device, int port) {
        server.awaitLine("listens on /" + device.address() + ":" + port + " \\(verbs\\)", Patience.LIMIT);
    }

    private static List<String> on(LabDevice device, int port, String... command) {
        List<String> all = new ArrayList<>(List.of(command));
        all.addAll(List.of("--provider", "verbs", "--host", device.address(), "--port", "" + port));
        return all;
    }

    private static List<String> receiver(LabDevice device, int port) {
        return on(device, port, "recv-file", "--out", received(device).toString());
    }

    private static Path received(LabDevice device) {
        return directory.resolve("received-" + device);
    }

    private static Answer run(LabDevice device, int port, String... command) {
        String[] arguments = on(device, port, command).toArray(String[]::new);
        StringWriter said = new StringWriter();
        PrintWriter both = new PrintWriter(said, true);
        int exitCode = Main.commandLine(arguments).setOut(both).setErr(both).execute(arguments);
        System.out.print(said);
        return new Answer(exitCode, said.toString());
    }

    private static Path file(String name, int bytes) throws IOException {
        byte[] content = new byte[bytes];
        new Random(bytes).nextBytes(content);
        return Files.write(directory.resolve(name), content);
    }

    @Test
    void filesArrive() throws IOException {
        filesArrive(LabDevice.SIW);
    }

    @Test
    void filesArriveOnRxe() throws IOException {
        filesArrive(LabDevice.RXE);
    }

    private static void filesArrive(LabDevice device) throws IOException {
        Path small = file("small-" + device, 1_500_001);
        Path empty = file("empty-" + device, 0);
        Path large = file("large-" + device, 20 << 20);
        Answer sent = run(device, FILES_PORT, "send-file", small.toString(), empty.toString(), large.toString());
        assertThat(sent.exitCode()).as(sent.said()).isZero();
        for (Path file : List.of(small, empty, large)) {
            servers.awaitLine("received .*" + file.getFileName() + ", .*SHA-256 ", Patience.LIMIT);
            assertThat(Files.mismatch(file, received(device).resolve(file.getFileName())))
                    .as("%s", file)
                    .isEqualTo(-1);
        }
        Answer again = run(device, FILES_PORT, "send-file", small.toString());
        assertThat(again.exitCode()).as(again.said()).isEqualTo(1);
        assertThat(again.said()).contains("already exists");
    }

    @Test
    void valuesAreReadWithoutTheServer() {
        valuesAreReadWithoutTheServer(LabDevice.RXE);
    }

    @Test
    void valuesAreReadWithoutTheServerOnSiw() {
        valuesAreReadWithoutTheServer(LabDevice.SIW);
    }

    private static void valuesAreReadWithoutTheServer(LabDevice device) {
        assertThat(run(device, VALUES_PORT, "kv-client", "put", "n", "41").exitCode())
                .isZero();
        assertThat(run(device, VALUES_PORT, "kv-client", "get", "n").said()).contains("41");
        Answer bench = run(device, VALUES_PORT, "kv-client", "bench", "--count", "300", "--size", "200");
        assertThat(bench.exitCode()).as(bench.said()).isZero();
        assertThat(bench.said())
                .containsPattern("get 200 B +300 ")
                .contains("requests that the server's program served during the gets: 0");
    }
}
