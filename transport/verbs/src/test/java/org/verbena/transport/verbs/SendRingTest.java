package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.WorkRequest;

class SendRingTest {

    @Test
    void takesAndFreesSlotsInOrder() {
        long seed = ThreadLocalRandom.current().nextLong();
        System.out.println("takesAndFreesSlotsInOrder: seed " + seed);
        Random random = new Random(seed);
        SendRing ring = new SendRing(5, 1);
        ArrayDeque<Long> model = new ArrayDeque<>();
        WorkRequest work = new WorkRequest(1);
        for (long id = 0; id < 1000; id++) {
            if (random.nextBoolean() && !ring.isFull()) {
                int slot = ring.next();
                assertThat(ring.position(slot)).as("not out").isGreaterThanOrEqualTo(ring.count());
                ring.take(work.asSend(id, 0));
                model.add(id);
                assertThat(ring.position(slot)).isEqualTo(ring.count() - 1);
            } else if (ring.count() > 0) {
                assertThat(ring.workId(ring.head())).isEqualTo(model.remove());
                ring.free();
            }
            assertThat(ring.count()).isEqualTo(model.size());
            assertThat(ring.isFull()).isEqualTo(model.size() == 5);
        }
    }

    @Test
    void describesWorkInWords() {
        SendRing ring = new SendRing(2, 1);
        WorkRequest work = new WorkRequest(1);
        ring.take(work.asRead(1, 0, 0x7f00, 0x12));
        ring.take(work.asSend(2, 0));
        assertThat(ring.describe(0)).isEqualTo("READ of 0 bytes at 0x7f00 with key 0x12");
        assertThat(ring.describe(1)).isEqualTo("SEND of 0 bytes");
    }
}
