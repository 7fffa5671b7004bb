package org.verbena.it.guest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.tools.Main;

/**
 * What needs a network that is not the machine's own: {@code it/lab/two-guests} with its jobs. It runs on the host, and
 * where there can be no lab it does what {@link LabMode} says.
 */
@Tag("two-guests")
@Timeout(1300)
class TwoGuestsTest {
    private static final int TIME_LIMIT_SECONDS = 1200;

    private final LabMode mode = LabMode.parse(System.getProperty("lab", "auto"));
    private final Path lab = Path.of(System.getProperty("lab.folder", "it/lab")).toAbsolutePath();
    private final Path output = Path.of(System.getProperty("lab.output", "it/target/lab"))
            .toAbsolutePath()
            .resolveSibling("two-guests");

    @Test
    void echoesOverRoceWhilePacketsAreLost() throws Exception {
        run("2%", "echo-server", "echo-client");
    }

    private void run(String loss, String jobA, String jobB) throws IOException, InterruptedException {
        assumeTrue(mode != LabMode.OFF, "the lab is off (-Dlab=off)");
        List<String> jvmFlags = Arrays.stream(
                        System.getProperty("lab.jvmFlags", "").split(" "))
                .filter(flag -> !flag.isBlank())
                .toList();
        // The lab's run before this one made the classes.
        boolean isNamed = !System.getProperty("lab.tests", "").isBlank();
        QemuGuest guest = new QemuGuest(
                lab,
                jvmFlags,
                TIME_LIMIT_SECONDS,
                isNamed ? null : output.resolveSibling("lab").resolve("classes"));
        try {
            guest.prepare();
        } catch (Guest.UnavailableException e) {
            assertThat(mode.isRequired()).as("%s", e.getMessage()).isFalse();
            assumeTrue(false, e.getMessage());
        }
        Files.createDirectories(output);
        Path console = output.resolve("console.log");
        ProcessBuilder guests = new ProcessBuilder(
                        lab.resolve("two-guests").toString(),
                        lab.resolve("jobs").resolve(jobA).toString(),
                        lab.resolve("jobs").resolve(jobB).toString())
                .redirectInput(ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()))
                .redirectErrorStream(true)
                .redirectOutput(console.toFile());
        guests.environment().put("LAB_LOSS", loss);
        // The large ones come by rendezvous, which small messages arrange.
        guests.environment().put("LAB_JOB_ECHOES", mode == LabMode.FULL ? "500,64,16 8,64k,2" : "8,64k,2");
        guests.environment().put("LAB_OUTPUT", output.toString());
        guests.environment().put("LAB_TIMEOUT", Integer.toString(TIME_LIMIT_SECONDS));
        guests.environment().put("LAB_JOB_VERBENA", writeCommand(guest).toString());
        Process running = guests.start();
        try {
            assertThat(running.waitFor(TIME_LIMIT_SECONDS + 20, TimeUnit.SECONDS))
                    .as("they end; they printed: %s", (Object) Files.readString(console))
                    .isTrue();
        } finally {
            running.descendants().forEach(ProcessHandle::destroy);
            running.destroy();
        }
        assertThat(running.exitValue())
                .as("status of the jobs; they printed: %s", (Object) Files.readString(console))
                .isZero();
    }

    /** The {@code verbena} command of what was just compiled: the launcher may not build anything in the guest. */
    private Path writeCommand(QemuGuest guest) throws IOException {
        List<String> arguments = guest.javaArguments();
        arguments.add(QemuGuest.PROGRAM_FLAG);
        arguments.add(Main.class.getName());
        Path file = output.resolve("verbena.args");
        QemuGuest.writeArguments(file, arguments);
        Path command = output.resolve("verbena");
        Files.writeString(
                command,
                "#!/bin/bash\nexec '%s' '@%s' \"$@\"\n"
                        .formatted(Path.of(System.getProperty("java.home"), "bin", "java"), file));
        Files.setPosixFilePermissions(command, PosixFilePermissions.fromString("rwxr-xr-x"));
        return command;
    }
}
