package org.verbena.verbs.work;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class OutstandingWorkTest {
    @Test
    void anIdIsGoodOnce() {
        OutstandingWork<String> outstanding = new OutstandingWork<>(1);
        long first = outstanding.put("first");
        assertThat(outstanding.take(first)).isEqualTo("first");
        assertThat(outstanding.take(first))
                .as("a completion that is reported twice")
                .isNull();
        long second = outstanding.put("second");
        assertThat(second).isNotEqualTo(first);
        assertThat(outstanding.take(first))
                .as("stale, and its slot is in use again")
                .isNull();
        assertThat(outstanding.size()).isOne();
        assertThat(outstanding.take(second)).isEqualTo("second");
        assertThat(outstanding.size()).isZero();
    }

    @Test
    void idsOfOthersAreUnknown() {
        OutstandingWork<String> sends = new OutstandingWork<>(4);
        OutstandingWork<String> receives = new OutstandingWork<>(4);
        long send = sends.put("send");
        long receive = receives.put("receive");
        // The same slot; only the generation and the table differ, both at random.
        assertThat(receives.take(send)).isNull();
        assertThat(sends.take(receive)).isNull();
        for (long pointer : new long[] {0, -1, 0x7f3a_1c40_1280L, Long.MIN_VALUE, 3}) {
            assertThat(sends.take(pointer)).isNull();
        }
        assertThat(sends.take(send)).isEqualTo("send");
        assertThat(receives.take(receive)).isEqualTo("receive");
    }

    @Test
    void holdsAsManyAsAskedFor() {
        assertThatIllegalArgumentException().isThrownBy(() -> new OutstandingWork<>(0));
        assertThatIllegalArgumentException().isThrownBy(() -> new OutstandingWork<>(OutstandingWork.MAX_CAPACITY + 1));
        OutstandingWork<Integer> outstanding = new OutstandingWork<>(2);
        outstanding.put(1);
        long second = outstanding.put(2);
        assertThatIllegalStateException()
                .isThrownBy(() -> outstanding.put(3))
                .withMessageStartingWith("2 work requests are outstanding");
        outstanding.take(second);
        outstanding.put(4);
        assertThat(outstanding.size()).isEqualTo(2);
    }

    @Test
    void endsAll() {
        OutstandingWork<String> outstanding = new OutstandingWork<>(3);
        long first = outstanding.put("first");
        outstanding.put("second");
        List<String> ended = new ArrayList<>();
        outstanding.takeAll(each -> {
            ended.add(each);
            outstanding.put("instead of " + each);
        });
        assertThat(ended).containsExactlyInAnyOrder("first", "second");
        assertThat(outstanding.take(first)).isNull();
        assertThat(outstanding.size()).isEqualTo(2);
    }

    @Test
    void doesAsAMapWould() {
        long seed = new Random().nextLong();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        int capacity = 1 + random.nextInt(20);
        OutstandingWork<Integer> outstanding = new OutstandingWork<>(capacity);
        Map<Long, Integer> expected = new HashMap<>();
        List<Long> given = new ArrayList<>();
        for (int step = 0; step < 20_000; step++) {
            if (random.nextBoolean() && expected.size() < capacity) {
                long id = outstanding.put(step);
                assertThat(expected.put(id, step)).as("seed " + seed).isNull();
                given.add(id);
            } else if (!given.isEmpty()) {
                // Mostly one that is outstanding, and often one of long ago.
                long id = given.get(given.size() - 1 - random.nextInt(Math.min(given.size(), 40)));
                assertThat(outstanding.take(id)).as("seed " + seed).isEqualTo(expected.remove(id));
            }
            assertThat(outstanding.size()).isEqualTo(expected.size());
        }
    }
}
