package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/** In a process of its own, as a class is initialized once. */
@Timeout(120)
class FirstUseTest {
    @Test
    void anInterruptedThreadMayBeTheFirst() throws Exception {
        Process program = Program.of(InterruptedFirstUse.class, "soft")
                .redirectErrorStream(true)
                .start();
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
}
