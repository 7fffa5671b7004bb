package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** What a connection does when sends are done, and nothing has come: only what waited for them. */
class AtRestTest extends SimulatedPair {
    private static final int SHORT = 40;

    private void send() {
        left.sendHeap(SHORT);
        left.connection.flush();
    }

    @Test
    void theOutcomeOfASendAsksNothingOfTheEndpoint() throws Exception {
        connected();
        send();
        int asked = network.left.slotQueries;
        int flushed = network.left.flushes;
        settle();
        assertThat(left.succeeded).isEqualTo(1);
        assertThat(network.left.slotQueries).isEqualTo(asked);
        assertThat(network.left.flushes).isEqualTo(flushed);
        end();
    }

    @Test
    void aControlFrameThatFoundNoSlotGoesWhenASendIsDone() throws Exception {
        connected();
        send();
        network.left.refusals = 1;
        left.connection.ping(4711);
        assertThat(network.left.refusals).isZero();
        settle();
        assertThat(left.pongs).isEqualTo(1);
        end();
    }

    @Test
    void aMessageThatFoundNoSlotGoesWhenASendIsDone() throws Exception {
        connected();
        send();
        network.left.refusals = 1;
        send();
        assertThat(network.left.refusals).isZero();
        settle();
        assertThat(left.succeeded).isEqualTo(2);
        end();
    }
}
