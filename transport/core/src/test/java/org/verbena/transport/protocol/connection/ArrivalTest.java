package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;

/** What a program above the protocol learns of messages and of its peer's program. */
@Timeout(60)
class ArrivalTest extends SimulatedPair {
    private final List<Long> arrivals = new ArrayList<>();

    @BeforeEach
    void begin() {
        connected();
        right.whim = () -> {
            if (right.received > arrivals.size()) {
                arrivals.add(right.connection.arrivalNanos(-1));
            }
        };
        network.nowNanos = 1000;
    }

    private void passesWithout(Runnable delivery) {
        left.connection.flush();
        settle();
        assertThat(right.received).isZero();
        network.nowNanos = 5_000_000;
        delivery.run();
        settle();
        assertThat(right.received).isEqualTo(1);
    }

    @Test
    void aMessageThatIsDeliveredAsItComesHasComeNow() throws Exception {
        left.sendPooled(100);
        left.connection.flush();
        settle();
        assertThat(arrivals).containsExactly(-1L);
        end();
    }

    @Test
    void aMessageComesWithItsAdvertisement() throws Exception {
        network.right.responsesHeld = true;
        left.sendPooled(50_000);
        passesWithout(() -> network.right.responsesHeld = false);
        assertThat(arrivals).containsExactly(1000L);
        left.sendPooled(100);
        left.connection.flush();
        settle();
        assertThat(arrivals).containsExactly(1000L, -1L);
        end();
    }

    @Test
    void aMessageComesWithItsFirstFragment() throws Exception {
        right.setReading(false);
        left.sendHeap(3_000); // in more fragments than the reader has receives
        passesWithout(() -> right.setReading(true));
        assertThat(arrivals).containsExactly(1000L);
        end();
    }

    @Test
    void aMessageThatNobodyReadsHasComeAllTheSame() throws Exception {
        right.setReading(false);
        left.sendPooled(100);
        passesWithout(() -> right.setReading(true));
        assertThat(arrivals).containsExactly(1000L);
        end();
    }

    @Test
    void whatAProgramAnnouncesIsToldToTheOtherOne() throws Exception {
        assertThat(left.connection.peerAnnounced()).as("by default nothing").isZero();
        end();
        network = new SimulatedNetwork(network.random, SimulatedNetwork.Device.VERBS, SimulatedNetwork.Device.VERBS);
        left = Party.of("left", Role.INITIATOR, network.left, OPTIONS);
        right = Party.of("right", Role.ACCEPTOR, network.right, OPTIONS);
        left.connection.announce(0x81);
        right.connection.announce(0xff);
        network.connect(left.connection, PrivateData.of(OPTIONS), right.connection, PrivateData.of(OPTIONS));
        assertThat(left.connection.peerAnnounced()).isZero();
        settle();
        assertThat(left.connection.peerAnnounced()).isEqualTo(0xff);
        assertThat(right.connection.peerAnnounced()).isEqualTo(0x81);
        assertThat(left.connection.negotiated()).isNotNull();
        assertThatThrownBy(() -> left.connection.announce(0x100)).isInstanceOf(IllegalArgumentException.class);
        end();
    }
}
