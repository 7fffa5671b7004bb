package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("no-stub")
class WorkRequestIdTest {

    @Test
    void keepsItsParts() {
        long seed = ThreadLocalRandom.current().nextLong();
        System.out.println("keepsItsParts: seed " + seed);
        Random random = new Random(seed);
        for (int i = 0; i < 1000; i++) {
            int endpoint = random.nextInt(WorkRequestId.MAX_ENDPOINTS);
            int generation = random.nextInt(1 << 16);
            int kind = random.nextInt(3);
            int slot = random.nextInt(WorkRequestId.MAX_SLOTS);
            check(endpoint, generation, kind, slot);
        }
        check(0, 0, WorkRequestId.SEND, 0);
        check(WorkRequestId.MAX_ENDPOINTS - 1, 0xffff, WorkRequestId.SHARED_RECEIVE, WorkRequestId.MAX_SLOTS - 1);
    }

    private static void check(int endpoint, int generation, int kind, int slot) {
        long id = WorkRequestId.of(endpoint, generation, kind, slot);
        assertThat(WorkRequestId.endpoint(id)).isEqualTo(endpoint);
        assertThat(WorkRequestId.generation(id)).isEqualTo(generation);
        assertThat(WorkRequestId.kind(id)).isEqualTo(kind);
        assertThat(WorkRequestId.slot(id)).isEqualTo(slot);
    }
}
