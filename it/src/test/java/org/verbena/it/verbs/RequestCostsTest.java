package org.verbena.it.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** How many completions an adapter writes for requests and their replies, and how many calls these take. */
@Timeout(300)
class RequestCostsTest {
    private static final int REQUESTS = 1920;
    private static final int MESSAGES = 2 * REQUESTS;

    @TempDir
    Path folder;

    @Test
    void requestsAndRepliesHaveACompletionInSixteenAndShareFrames() throws Exception {
        Path library = StubLibrary.compile(folder, "transport/verbs/src/test/c/stub_rdma.c");
        Path driver = Files.createDirectories(folder.resolve("drivers").resolve("mlx5_core"));
        Files.createSymbolicLink(
                Files.createDirectories(folder.resolve("stub0").resolve("device"))
                        .resolve("driver"),
                driver);
        Process process = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-XX:TieredStopAtLevel=1",
                        "-Xmx256m",
                        "-Dorg.verbena.verbs.library=" + library,
                        "-Dorg.verbena.cm.library=" + library,
                        "-Dorg.verbena.transport.verbs.libc=" + library,
                        "-cp",
                        System.getProperty("java.class.path"),
                        RequestCosts.class.getName(),
                        library.toString(),
                        folder.toString(),
                        String.valueOf(REQUESTS),
                        "1",
                        "16",
                        "64"))
                .redirectErrorStream(true)
                .start();
        String said;
        try {
            said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } finally {
            process.destroyForcibly();
        }
        System.out.print(said);
        List<String[]> costs = said.lines()
                .filter(line -> line.startsWith("costs "))
                .map(line -> line.split(" "))
                .toList();
        assertThat(costs).as(said).hasSize(3);
        for (String[] cost : costs) {
            // What shares a frame is too long for a work request, and has a completion with its batch.
            assertThat(Integer.parseInt(cost[3]))
                    .as("completions, %s at a time", cost[1])
                    .isLessThan(MESSAGES / 8);
        }
        // A message wakes one loop, which arms its queue once before it sleeps again.
        assertThat(Integer.parseInt(costs.getFirst()[5]))
                .as("arms, one at a time")
                .isLessThan(MESSAGES * 3 / 2);
        assertThat(Integer.parseInt(costs.getLast()[2]))
                .as("posts, 64 at a time")
                .isLessThan(MESSAGES / 2);
    }
}
