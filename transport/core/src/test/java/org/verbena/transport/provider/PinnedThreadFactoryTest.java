package org.verbena.transport.provider;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.verbena.transport.spi.Patience;

/** Threads that stay on their processors, as the kernel has it. */
@EnabledOnOs(OS.LINUX)
@Timeout(120)
class PinnedThreadFactoryTest {
    /** The processors that a thread may run on. */
    private static List<Integer> allowed() throws Exception {
        String line = Files.readAllLines(Path.of("/proc/thread-self/status")).stream()
                .filter(one -> one.startsWith("Cpus_allowed_list:"))
                .findFirst()
                .orElseThrow();
        List<Integer> processors = new ArrayList<>();
        for (String range : line.substring(line.indexOf(':') + 1).strip().split(",")) {
            String[] ends = range.split("-");
            for (int one = Integer.parseInt(ends[0]); one <= Integer.parseInt(ends[ends.length - 1]); one++) {
                processors.add(one);
            }
        }
        return processors;
    }

    @Test
    void eachThreadHasItsProcessorInTurn() throws Exception {
        List<Integer> mine = allowed();
        List<Integer> wanted = mine.subList(0, Math.min(2, mine.size()));
        PinnedThreadFactory factory = new PinnedThreadFactory("pinned", wanted);
        for (int i = 0; i < 5; i++) {
            FutureTask<List<Integer>> task = new FutureTask<>(PinnedThreadFactoryTest::allowed);
            Thread thread = factory.newThread(task);
            assertThat(thread.getName()).startsWith("pinned");
            thread.start();
            assertThat(task.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .containsExactly(wanted.get(i % wanted.size()));
        }
        assertThat(allowed()).as("the caller's thread runs where it did").isEqualTo(mine);
    }

    @Test
    void refusesProcessorsThatAreNotThere() {
        for (List<Integer> wrong : List.of(
                List.<Integer>of(),
                List.of(-1),
                List.of(PinnedThreadFactory.HIGHEST_PROCESSOR + 1),
                List.of(PinnedThreadFactory.HIGHEST_PROCESSOR))) {
            assertThatIllegalArgumentException().isThrownBy(() -> new PinnedThreadFactory("pinned", wrong));
        }
    }
}
