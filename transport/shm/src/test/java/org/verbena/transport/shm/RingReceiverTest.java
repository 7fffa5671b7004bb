package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.shm.FedReceiver.Rec;
import org.verbena.transport.software.ConnectionMemory;
import org.verbena.transport.software.SoftwareDomain;

/** Messages whose pieces do not belong together: they end their connection, and take no receive from others. */
class RingReceiverTest {
    private static final int RECEIVES = 8;

    private final Arena arena = Arena.ofShared();
    private final SoftwareDomain domain = new SoftwareDomain();
    private RegisteredMemory receives;
    private FedReceiver fed;

    @BeforeEach
    void open() {
        receives = domain.register(
                arena.allocate((long) RECEIVES * FedReceiver.RECEIVE_BYTES), Set.of(Access.LOCAL_WRITE));
        fed = new FedReceiver(FedReceiver.newMemory(arena), domain, new ConnectionMemory(domain), receives, RECEIVES);
    }

    @AfterEach
    void close() {
        assertThat(fed.imbalance()).isNull();
        fed.close();
        receives.close();
        assertThat(domain.registeredBytes()).as("registered bytes at the end").isZero();
        arena.close();
    }

    private void write(byte opcode, int flags, int payloadBytes, int totalBytes) {
        fed.write(new Rec(opcode, flags, new byte[payloadBytes], 0, 0, 0, totalBytes, 1));
    }

    @Test
    void aWriteDoesNotCompleteASend() {
        for (int i = 0; i < RECEIVES / 2; i++) {
            write(Ring.SEND, Ring.FIRST, 0, 48);
            write(Ring.WRITE, Ring.LAST | Ring.IMMEDIATE, 0, 0);
        }
        fed.turn();
        assertThat(fed.imbalance()).isNull();
        assertThat(fed.posted.size()).as("receives left for others").isEqualTo(RECEIVES - 1);
        assertThat(fed.end).isNotNull();
    }

    @Test
    void theLengthOfAMessageStaysTheSame() {
        write(Ring.SEND, Ring.FIRST, 8, 48);
        write(Ring.SEND, Ring.LAST, 8, 16);
        fed.turn();
        assertThat(fed.reported).isEmpty();
        assertThat(fed.end).isNotNull();
    }

    @Test
    void aWholeMessageIsReported() {
        write(Ring.SEND, Ring.FIRST, 8, 16);
        write(Ring.SEND, Ring.LAST, 8, 16);
        write(Ring.WRITTEN, Ring.FIRST | Ring.LAST | Ring.IMMEDIATE, 0, 77);
        fed.turn();
        assertThat(fed.reported).containsExactly(0L, 1L);
        assertThat(fed.end).isNull();
    }
}
