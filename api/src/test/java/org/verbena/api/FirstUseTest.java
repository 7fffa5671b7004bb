package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/** In a process of its own, as a class is initialized once. */
@Timeout(120)
class FirstUseTest {
    @Test
    void anInterruptedThreadMayBeTheFirst() throws Exception {
        List<String> command = new ArrayList<>(
                List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (flag.startsWith("--enable-native-access")) {
                command.add("--enable-native-access=ALL-UNNAMED");
            }
        }
        command.addAll(List.of("-cp", classPath(), InterruptedFirstUse.class.getName(), "soft"));
        Process program = new ProcessBuilder(command).redirectErrorStream(true).start();
        try {
            String said = new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(program.waitFor(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
            assertThat(program.exitValue()).as(said).isZero();
            assertThat(said).doesNotContain("ClosedByInterrupt");
        } finally {
            program.destroyForcibly();
        }
    }

    /** Modules have theirs too, as surefire patches the tests into one. */
    private static String classPath() {
        return String.join(
                File.pathSeparator,
                System.getProperty("java.class.path"),
                System.getProperty("jdk.module.path", ""),
                Path.of("target", "classes").toString(),
                Path.of("target", "test-classes").toString());
    }
}
