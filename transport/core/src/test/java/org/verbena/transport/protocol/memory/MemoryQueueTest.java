package org.verbena.transport.protocol.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.CountingMemoryDomain;
import org.verbena.transport.buffer.RegisteredBufferPool;

/** Whose turn it is, and how many waiters are looked at to find out. */
class MemoryQueueTest {
    private static final long CROWDED = 7;
    private static final int WAITERS = 5000;

    private long questions;
    private boolean admitsTheCrowd;
    private final List<MessageBuffers.Waiter> notified = new ArrayList<>();
    private final RegisteredBufferPool pool = new RegisteredBufferPool(
            new CountingMemoryDomain(), BufferPoolOptions.DEFAULTS.withAccess(Set.of(MemoryDomain.Access.LOCAL_WRITE)));
    private final MemoryQueue queue = new MemoryQueue(pool, (network, bytes) -> {
        questions++;
        return network != CROWDED || admitsTheCrowd;
    });

    private final class Waiter implements MessageBuffers.Waiter {
        private final long network;

        Waiter(long network) {
            this.network = network;
        }

        @Override
        public long network() {
            return network;
        }

        @Override
        public void onMemoryFreed() {
            notified.add(this);
        }
    }

    private List<Waiter> crowd() {
        List<Waiter> crowd = new ArrayList<>();
        for (int i = 0; i < WAITERS; i++) {
            crowd.add(new Waiter(CROWDED));
            queue.addForMessage(crowd.getLast(), 1000);
        }
        return crowd;
    }

    @Test
    void aMessageLooksAtFewWaitersHoweverManyWait() {
        crowd();
        Waiter other = new Waiter(2);
        questions = 0;
        for (int i = 0; i < 100; i++) {
            assertThat(queue.isTurnOf(other)).isTrue();
            queue.addForMessage(other, 1000);
            assertThat(queue.isTurnOf(other)).isTrue();
            queue.leaveMessages(other);
            queue.passOn(other);
            queue.freed(2);
        }
        assertThat(questions).isLessThan(1000);
    }

    @Test
    void anAddressThatHasItsShareIsServedAgainWhenSomethingOfItComesBack() {
        List<Waiter> crowd = crowd();
        queue.freed(2);
        assertThat(notified).isEmpty();
        admitsTheCrowd = true;
        queue.freed(CROWDED);
        assertThat(notified).containsExactly(crowd.getFirst());
        assertThat(queue.isTurnOf(crowd.getFirst())).isTrue();
        queue.leaveMessages(crowd.getFirst());
        assertThat(notified.getLast()).isSameAs(crowd.get(1));
    }

    @Test
    void addressesTakeTurns() {
        admitsTheCrowd = true;
        List<Waiter> crowd = crowd();
        Waiter other = new Waiter(2);
        queue.addForMessage(other, 1000);
        assertThat(queue.isTurnOf(other)).isFalse();
        queue.leaveMessages(crowd.getFirst());
        assertThat(queue.isTurnOf(other)).as("not behind all of the crowd").isTrue();
        queue.leaveMessages(other);
        assertThat(queue.isTurnOf(crowd.get(1))).isTrue();
    }
}
