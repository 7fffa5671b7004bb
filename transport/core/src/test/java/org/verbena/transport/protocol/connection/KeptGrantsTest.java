package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.wire.Wire;

/** Grants of shared receives that a peer keeps although it was asked for them. */
@Timeout(240)
class KeptGrantsTest extends SimulatedPair {
    private static final Device SHARED = new Device(false, 16, 16, 4, 4, 64, 4, 24);
    private static final MessageOptions OPTIONS_WITHOUT_KEEPALIVE = OPTIONS.withKeepAliveMillis(0);

    @Test
    void aPeerThatNeitherReturnsNorUsesThemIsDisconnected() throws Exception {
        Device narrow = new Device(false, 16, 16, 4, 4, 64, 4, 8); // so that there are none left to grant
        network = new SimulatedNetwork(new Random(1), narrow, Device.VERBS);
        Rogue rogue = rogue(OPTIONS_WITHOUT_KEEPALIVE, Rogue::acknowledge);
        settle();
        assertThat(left.active).isEqualTo(1);
        left.other = left;
        rogue.flags = Wire.WAITED | Wire.ASKS;
        int sent = 0;
        for (; sent < 1_000_000 && (rogue.flagsHeard & Wire.RECLAIM) == 0; sent++) { // asked once a millisecond
            left.sizes.add(0); // what is to come
            rogue.type(Wire.MESSAGE, 0, 0);
            settle();
        }
        assertThat(left.received).as("%s", left.connection).isEqualTo(sent);
        pass(1000);
        assertThat(left.inactive).as("it has its time").isZero();
        pass(30_000);
        assertThat(left.inactive).isEqualTo(1);
        assertThat(left.inactiveCause).isInstanceOf(ConnectionException.TimedOut.class);
        left.checkMemory();
    }

    @Test
    void honestPeersLoseNothing() throws Exception {
        Crowd crowd = new Crowd(
                new Random(1), SHARED, SHARED, OPTIONS_WITHOUT_KEEPALIVE, 4 * Party.POOL_BYTES, 4 * Party.POOL_BYTES);
        for (int i = 0; i < 4; i++) {
            crowd.add();
        }
        crowd.settle();
        for (int round = 0; round < 5; round++) {
            for (Party party : crowd.lefts) {
                for (int i = 0; i < 30; i++) {
                    party.sendHeap(10);
                }
                party.connection.flush();
            }
            crowd.settle();
            crowd.pass(11_000);
        }
        for (Party party : crowd.rights) {
            assertThat(party.inactive)
                    .as("%s: %s", party.name, party.inactiveCause)
                    .isZero();
            assertThat(party.received).isEqualTo(150);
        }
        crowd.close();
    }
}
