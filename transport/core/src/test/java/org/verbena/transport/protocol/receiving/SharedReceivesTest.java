package org.verbena.transport.protocol.receiving;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.protocol.wire.Credits;
import org.verbena.transport.software.SoftwareDomain;
import org.verbena.transport.software.SoftwareReceiveQueue;

/** When connections are asked to give receives back. */
class SharedReceivesTest {
    private static final int DEPTH = 9;
    private static final int MEMBERS = 2;
    private static final int MANY = 100;

    private final SoftwareDomain domain = new SoftwareDomain();
    private final RegisteredBufferPool pool =
            new RegisteredBufferPool(domain, BufferPoolOptions.DEFAULTS.withAccess(Set.of(Access.LOCAL_WRITE)));
    private final SoftwareReceiveQueue queue = new SoftwareReceiveQueue(domain, DEPTH);
    private final AtomicLong clock = new AtomicLong(Long.MAX_VALUE); // which overflows, as the JVM's may
    private SharedReceives shared;
    private int asked;

    @BeforeEach
    void open() {
        shared = new SharedReceives(queue, new MessageBuffers(pool, pool), 1024, clock::get);
        shared.refill();
        for (int i = 0; i < MEMBERS; i++) {
            assertThat(shared.join(() -> asked++)).isTrue();
        }
    }

    @AfterEach
    void close() {
        queue.close();
        shared.close();
        pool.close();
    }

    @Test
    void asksAllOnceInATimeHoweverMuchIsWanted() {
        int has = shared.promise(0, MANY);
        assertThat(asked).isEqualTo(MEMBERS);
        for (int i = 0; i < 10; i++) {
            has += shared.promise(has, MANY);
            assertThat(has).isBetween(1, DEPTH);
        }
        assertThat(asked).isEqualTo(MEMBERS);
        clock.addAndGet(MEMBERS * SharedReceives.NANOS_PER_QUESTION - 1);
        shared.promise(has, MANY);
        assertThat(asked).isEqualTo(MEMBERS);
        clock.incrementAndGet();
        shared.promise(has, MANY);
        assertThat(asked).isEqualTo(2 * MEMBERS);
    }

    @Test
    void asksAtOnceForAConnectionThatHasNone() {
        int has = 0;
        for (int i = 0; i < 10; i++) {
            has += shared.promise(has, MANY);
        }
        asked = 0;
        for (long id = 0; shared.posted() > has + MEMBERS * Credits.CONTROL_RECEIVES; id++) {
            shared.spare(shared.take(id)); // what the other connection could have
        }
        assertThat(shared.promise(0, 1)).isZero();
        assertThat(asked).isEqualTo(MEMBERS);
    }

    @Test
    void asksNobodyWhenThereIsEnough() {
        assertThat(shared.promise(0, 1)).isEqualTo(1);
        assertThat(asked).isZero();
    }
}
