package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;
import org.verbena.transport.protocol.wire.Wire;

/** Grants of shared receives that a peer keeps although it was asked for them. */
@Timeout(240)
class KeptGrantsTest extends SimulatedPair {
    private static final Device SHARED = new Device(false, 16, 16, 4, 4, 64, 4, 24);
    private static final int HOARDERS = 100;
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

    /** It returns one now and then, or sends a message, and keeps the others. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aPeerThatKeepsMostOfThemIsDisconnected(boolean returns) throws Exception {
        Device shared = new Device(false, 64, 64, 4, 4, 64, 4, 64);
        network = new SimulatedNetwork(new Random(1), shared, Device.VERBS);
        Rogue rogue = rogue(OPTIONS_WITHOUT_KEEPALIVE.withReceives(64, 256), Rogue::acknowledge);
        settle();
        left.other = left;
        rogue.flags = Wire.WAITED | Wire.ASKS;
        for (int sent = 0; sent < 1_000_000 && (rogue.flagsHeard & Wire.RECLAIM) == 0; sent++) {
            left.sizes.add(0);
            rogue.type(Wire.MESSAGE, 0, 0);
            settle();
        }
        assertThat(left.connection.statistics().creditsGranted()).isGreaterThan(10);
        rogue.flags = 0; // it wants no more
        for (int i = 0; i < 8 && left.inactive == 0; i++) {
            if (returns) {
                rogue.type(Wire.RETURN, 1, 0);
            } else {
                left.sizes.add(0);
                rogue.type(Wire.MESSAGE, 0, 0);
            }
            settle();
            pass(4000);
        }
        assertThat(left.inactiveCause).isInstanceOf(ConnectionException.TimedOut.class);
        left.checkMemory();
    }

    /** What the peers of one address keep leaves others their window, before anybody is disconnected. */
    @Test
    void anHonestPeerKeepsItsWindowBesideAHundredOfAnotherAddress() throws Exception {
        long alone = stallsOfAnHonestPeer(0);
        assertThat(stallsOfAnHonestPeer(HOARDERS)).isLessThanOrEqualTo(2 * alone + 1);
    }

    private static long stallsOfAnHonestPeer(int hoarders) throws Exception {
        Device wide = new Device(false, 64, 64, 4, 4, 64, 4, 1024);
        Crowd crowd = new Crowd(
                new Random(1),
                wide,
                wide,
                OPTIONS_WITHOUT_KEEPALIVE.withReceives(64, 256),
                16 * Party.POOL_BYTES,
                16 * Party.POOL_BYTES);
        for (int i = 0; i < hoarders; i++) {
            Party hoarder = crowd.add(InetAddress.ofLiteral("192.0.2.1"));
            hoarder.connection.packNothing();
            crowd.settle();
            send(crowd, hoarder, 500);
            crowd.stopAll();
        }
        Party honest = crowd.add(InetAddress.ofLiteral("192.0.2.2"));
        honest.connection.packNothing();
        crowd.settle();
        assertThat(honest.active).isEqualTo(1);
        send(crowd, honest, 500); // its window grows
        long window = honest.connection.statistics().credits();
        long before = honest.connection.statistics().creditStalls();
        for (int i = 0; i < 50; i++) {
            send(crowd, honest, 30);
        }
        assertThat(honest.other.received).isEqualTo(2000);
        assertThat(window).as("beside %d", hoarders).isGreaterThanOrEqualTo(31);
        return honest.connection.statistics().creditStalls() - before;
    }

    private static void send(Crowd crowd, Party party, int messages) {
        for (int i = 0; i < messages; i++) {
            party.sendHeap(10);
        }
        party.connection.flush();
        crowd.settle();
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
