package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.Patience;

class SoftShutdownTest extends ShutdownSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    /** SIGTERM comes while a handler has a request. */
    @Test
    void aProcessThatIsTerminatedAnswersFirst() throws Exception {
        Process process = Program.of(TerminatedServer.class, provider())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (BufferedReader said =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            int port = Integer.parseInt(next(said));
            try (RdmaClient client = RdmaClient.builder().group(group).connect(host(), port)) {
                CompletableFuture<byte[]> request = client.request(new byte[5]);
                assertThat(next(said)).isEqualTo("begun");
                process.toHandle().destroy(); // Process.destroy() closes its streams as well
                assertThat(next(said)).isEqualTo("ending");
                assertThat(request).isNotDone();
                process.getOutputStream().write('\n');
                process.getOutputStream().flush();
                assertThat(Patience.await("the reply", request)).hasSize(5);
            }
            assertThat(process.waitFor(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        } finally {
            process.destroyForcibly();
        }
    }

    /** What the program says next; the log has other lines. */
    private static String next(BufferedReader output) throws IOException {
        while (true) {
            String line = output.readLine();
            assertThat(line).as("the program has ended").isNotNull();
            if (line.startsWith("> ")) {
                return line.substring(2);
            }
        }
    }
}
