package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A JVM that denies native access. */
@Timeout(240)
class NativeAccessTest {
    private static final String CAUSE = "cause: ";

    /** Asks twice: a class that did not come up says something else the second time. */
    public static void main(String... arguments) {
        for (int i = 0; i < 2; i++) {
            System.out.println(CAUSE + new ShmProvider().unavailabilityCause());
        }
    }

    @Test
    void theCauseNamesTheFlag() throws IOException, InterruptedException {
        Process child = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--illegal-native-access=deny",
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        NativeAccessTest.class.getName())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String output = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(child.waitFor()).isZero();
        assertThat(output.lines().filter(line -> line.startsWith(CAUSE)))
                .hasSize(2)
                .allSatisfy(line -> assertThat(line).contains("--enable-native-access=ALL-UNNAMED"));
    }
}
