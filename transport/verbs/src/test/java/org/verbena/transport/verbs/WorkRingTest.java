package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.transport.spi.WorkRequest;

@Tag("no-stub")
class WorkRingTest {

    @Test
    void takesAndFreesSlotsInOrder() {
        long seed = ThreadLocalRandom.current().nextLong();
        System.out.println("takesAndFreesSlotsInOrder: seed " + seed);
        Random random = new Random(seed);
        WorkRing<SendSlot> ring = new WorkRing<>(5, SendSlot::new);
        ArrayDeque<Long> model = new ArrayDeque<>();
        WorkRequest work = new WorkRequest(1);
        for (long id = 0; id < 1000; id++) {
            if (random.nextBoolean() && !ring.isFull()) {
                int slot = ring.next();
                assertThat(ring.position(slot)).as("not out").isGreaterThanOrEqualTo(ring.count());
                ring.slot(slot).set(work.asSend(id, 0));
                ring.take();
                model.add(id);
                assertThat(ring.position(slot)).isEqualTo(ring.count() - 1);
            } else if (ring.count() > 0) {
                int slot = ring.head();
                assertThat(ring.free()).isSameAs(ring.slot(slot));
                assertThat(ring.slot(slot).workId).isEqualTo(model.remove());
            }
            assertThat(ring.count()).isEqualTo(model.size());
            assertThat(ring.isFull()).isEqualTo(model.size() == 5);
        }
    }

    @Test
    void describesWorkInWords() {
        SendSlot slot = new SendSlot();
        WorkRequest work = new WorkRequest(1);
        slot.set(work.asRead(1, 0, 0x7f00, 0x12));
        assertThat(slot.describe()).isEqualTo("READ of 0 bytes at 0x7f00 with key 0x12");
        slot.set(work.asSend(2, 0));
        assertThat(slot.describe()).isEqualTo("SEND of 0 bytes");
    }
}
