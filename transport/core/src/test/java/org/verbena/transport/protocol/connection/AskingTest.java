package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;

/** Grants go with other frames; one of their own takes them only to a peer that asks. Frames are counted. */
@Timeout(240)
class AskingTest extends SimulatedPair {
    private static final int ROUNDS = 200;
    private static final MessageOptions NARROW = OPTIONS.withReceives(4, 256);

    private static long controlFrames(Party... parties) {
        long frames = 0;
        for (Party party : parties) {
            frames += party.connection.statistics().controlFramesSent();
        }
        return frames;
    }

    private static void request(Party party, int count) {
        for (int i = 0; i < count; i++) {
            party.sendPooled(10);
        }
        party.connection.flush();
    }

    @Test
    void requestsAndRepliesNeedNoControlFrame() throws Exception {
        connect(NARROW, NARROW);
        settle();
        long before = controlFrames(left, right);
        for (int i = 0; i < ROUNDS; i++) {
            request(left, 1);
            settle();
            request(right, 1);
            settle();
        }
        assertThat(left.received).isEqualTo(ROUNDS);
        assertThat(controlFrames(left, right)).isEqualTo(before);
        end();
    }

    @Test
    void connectionsThatShareReceivesNeedNoControlFrame() throws Exception {
        Device sharing = new Device(false, 16, 16, 4, 4, 64, 4, 128);
        Crowd crowd =
                new Crowd(new Random(1), Device.VERBS, sharing, OPTIONS, 4 * Party.POOL_BYTES, 4 * Party.POOL_BYTES);
        for (int i = 0; i < 30; i++) {
            crowd.add();
        }
        crowd.settle();
        Party[] ends = new Party[2 * crowd.lefts.size()];
        for (int i = 0; i < crowd.lefts.size(); i++) {
            ends[2 * i] = crowd.lefts.get(i);
            ends[2 * i + 1] = crowd.rights.get(i);
        }
        long before = controlFrames(ends);
        for (int i = 0; i < 20; i++) {
            crowd.lefts.forEach(left -> request(left, 1));
            crowd.settle();
            crowd.rights.forEach(right -> request(right, 1));
            crowd.settle();
        }
        assertThat(crowd.lefts).allMatch(left -> left.received == 20);
        assertThat(controlFrames(ends)).isEqualTo(before);
        crowd.close();
    }

    /** It asks with its messages, so that it need not wait: half of its window comes back before the rest is used. */
    @Test
    void whoOnlySendsAsksWithItsMessages() throws Exception {
        connected();
        for (int i = 0; i < 16; i++) {
            request(left, 1);
            settle();
        }
        long before = controlFrames(left);
        long stalls = left.connection.statistics().creditStalls();
        for (int i = 0; i < ROUNDS; i++) {
            request(left, 1);
            settle();
        }
        assertThat(right.received).isEqualTo(16 + ROUNDS);
        assertThat(left.connection.statistics().creditStalls()).isEqualTo(stalls);
        // What answers a STATE of the peer goes with the next message, or is an ACK.
        assertThat(controlFrames(left) - before).isLessThanOrEqualTo(ROUNDS / 2);
        assertThat(controlFrames(right)).isLessThanOrEqualTo(ROUNDS / 2);
        end();
    }

    @Test
    void whatIsLongerThanTheWindowComes() throws Exception {
        connect(NARROW, NARROW);
        settle();
        request(left, 50);
        settle();
        assertThat(right.received).isEqualTo(50);
        end();
    }

    @Test
    void whoWaitsAsksOnceUntilItIsGrantedMore() throws Exception {
        connect(NARROW, NARROW);
        settle();
        request(left, 1);
        settle();
        right.setReading(false);
        request(left, 1);
        settle();
        for (int i = 0; i < 20; i++) {
            request(left, 1);
            settle();
        }
        assertThat(controlFrames(left)).isLessThanOrEqualTo(2);
        right.setReading(true);
        settle();
        assertThat(right.received).isEqualTo(22);
        end();
    }
}
