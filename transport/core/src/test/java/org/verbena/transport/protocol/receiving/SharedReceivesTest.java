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
import org.verbena.transport.spi.PeerAddress;

/** When connections are asked to give receives back. */
class SharedReceivesTest {
    private static final int DEPTH = 90;
    private static final int MANY = 1000;
    private static final long ONE_ADDRESS = 1;
    private static final long OTHER_ADDRESS = 2;

    private final SoftwareDomain domain = new SoftwareDomain();
    private final RegisteredBufferPool pool =
            new RegisteredBufferPool(domain, BufferPoolOptions.DEFAULTS.withAccess(Set.of(Access.LOCAL_WRITE)));
    private final AtomicLong clock = new AtomicLong(Long.MAX_VALUE); // which overflows, as the JVM's may
    private SoftwareReceiveQueue queue;
    private SharedReceives shared;
    private int asked;

    @BeforeEach
    void open() {
        open(DEPTH);
    }

    private void open(int depth) {
        queue = new SoftwareReceiveQueue(domain, depth);
        shared = new SharedReceives(queue, new MessageBuffers(pool, pool), 1024, clock::get);
        shared.refill();
    }

    private SharedReceives.Seat join(long network) {
        SharedReceives.Seat seat = shared.join(() -> asked++, network);
        assertThat(seat).isNotNull();
        return seat;
    }

    /** As many as the connection gets that asks again and again. */
    private static int hoard(SharedReceives.Seat seat) {
        int has = 0;
        for (int more = seat.promise(MANY); more > 0; more = seat.promise(MANY)) {
            has += more;
        }
        return has;
    }

    @AfterEach
    void close() {
        queue.close();
        shared.close();
        pool.close();
    }

    @Test
    void asksOnceInATimeHoweverMuchIsWanted() {
        SharedReceives.Seat hoarder = join(ONE_ADDRESS);
        SharedReceives.Seat other = join(ONE_ADDRESS);
        hoard(hoarder);
        assertThat(asked).isEqualTo(1);
        for (int i = 0; i < 10; i++) {
            hoarder.used();
            other.promise(MANY);
        }
        assertThat(asked).isEqualTo(1);
        clock.addAndGet(2 * SharedReceives.NANOS_PER_QUESTION - 1);
        other.promise(MANY);
        assertThat(asked).isEqualTo(1);
        clock.incrementAndGet();
        other.promise(MANY);
        assertThat(asked).isEqualTo(3);
    }

    @Test
    void asksAtOnceForAConnectionThatHasNone() {
        SharedReceives.Seat hoarder = join(ONE_ADDRESS);
        SharedReceives.Seat other = join(OTHER_ADDRESS);
        int has = hoard(hoarder);
        hoarder.used();
        asked = 0;
        for (long id = 0; shared.posted() >= has + 2 * Credits.CONTROL_RECEIVES; id++) {
            shared.spare(shared.take(id)); // what the other connection could have
        }
        assertThat(other.promise(1)).isZero();
        assertThat(asked).isEqualTo(1);
    }

    @Test
    void asksNobodyWhenThereIsEnough() {
        assertThat(join(ONE_ADDRESS).promise(1)).isEqualTo(1);
        assertThat(asked).isZero();
    }

    @Test
    void oneAddressHasNoMoreThanHalf() {
        int hoarded = hoard(join(ONE_ADDRESS)) + hoard(join(ONE_ADDRESS)) + hoard(join(ONE_ADDRESS));
        assertThat(hoarded).isBetween(DEPTH / 4, DEPTH / 2);
        assertThat(hoard(join(OTHER_ADDRESS))).isGreaterThanOrEqualTo(hoarded / 2);
    }

    @Test
    void whatIsUsedReturnedOrLeftCountsNoMore() {
        SharedReceives.Seat first = join(ONE_ADDRESS);
        SharedReceives.Seat second = join(ONE_ADDRESS);
        int all = hoard(first);
        assertThat(hoard(second)).isEqualTo(1);
        first.returned(all - 1);
        int most = hoard(second);
        assertThat(most).isGreaterThan(all / 2);
        for (int i = 0; i <= most; i++) {
            second.used();
        }
        second.leave();
        assertThat(hoard(first)).isGreaterThan(all / 2);
    }

    @Test
    void connectionsOfUnknownAddressesAreNotCountedTogether() {
        assertThat(hoard(join(PeerAddress.UNKNOWN))).isGreaterThan(DEPTH / 2);
    }

    /** To look for receives costs no more the more connections there are. */
    @Test
    void whoWasAskedIsNotAskedAgainForTheSame() {
        queue.close();
        shared.close();
        int silent = 1000;
        open(4 * silent);
        for (int i = 0; i < silent; i++) {
            join(ONE_ADDRESS).promise(2);
        }
        hoard(join(OTHER_ADDRESS));
        SharedReceives.Seat last = join(OTHER_ADDRESS);
        for (long id = 0; id < 4 * silent; id++) {
            shared.spare(shared.take(id));
        }
        for (int i = 0; i < 100; i++) {
            assertThat(last.promise(1)).isZero();
        }
        assertThat(asked).isLessThanOrEqualTo(2 * silent);
    }
}
