package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * What happens when there is less registered memory than is asked for: each in a process of its own, whose pools are so
 * small.
 */
@Timeout(300)
class SoftSmallPoolTest {

    @Test
    void largeMessagesOfManyClientsTakeTurns() throws Exception {
        assertThat(outcome("turns", 64)).isEqualTo("true 0 missing");
    }

    @Test
    void aMessageOverThePoolIsRefusedWithAReason() throws Exception {
        assertThat(outcome("refused", 8))
                .contains("MessageTooLargeException")
                .contains("31457280 bytes")
                .contains("limit of 6291456")
                .contains("receive buffers");
    }

    @Test
    void keptMessagesStopOnlyTheirSender() throws Exception {
        String outcome = outcome("kept", 64);
        System.out.println(outcome);
        assertThat(outcome).startsWith("stopped true used ").contains(" all true ");
        // Its share, its window of receives twice, and what the other channels have.
        assertThat(Long.parseLong(outcome.split(" ")[3])).isLessThan(32 << 20);
    }

    private static String outcome(String what, int poolMegabytes) throws Exception {
        Process process = TrafficPeer.java(
                List.of("-Xmx512m", "-Dorg.verbena.buffers.maxRegisteredBytes=" + ((long) poolMegabytes << 20)),
                SmallPool.class,
                "soft",
                "127.0.0.1",
                what);
        try (BufferedReader output = process.inputReader()) {
            return output.lines()
                    .filter(line -> line.startsWith("outcome "))
                    .findFirst()
                    .map(line -> line.substring("outcome ".length()))
                    .orElse("the process ended");
        } finally {
            process.destroyForcibly();
        }
    }
}
