package org.verbena.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.net.InetAddress;
import java.net.UnknownHostException;
import org.junit.jupiter.api.Test;

class DatagramPeerTest {
    @Test
    void hasTheAddressThatItWasMadeOf() throws UnknownHostException {
        for (String address : new String[] {"10.77.0.1", "255.255.255.255", "fd77::1", "fe80::1"}) {
            InetAddress host = InetAddress.getByName(address);
            DatagramPeer peer = DatagramPeer.of(host, 17);
            assertThat(peer.address().getAddress()).isEqualTo(host.getAddress());
            assertThat(peer.queuePairNumber()).isEqualTo(17);
        }
    }

    @Test
    void isTheSameQueuePairWhateverTheServiceLevel() throws UnknownHostException {
        DatagramPeer peer = DatagramPeer.of(InetAddress.getByName("10.77.0.1"), 17);
        DatagramPeer other = new DatagramPeer(peer.gidHigh(), peer.gidLow(), 17, 0, 3);
        assertThat(peer.isSameQueuePair(other)).isTrue();
        assertThat(peer).isNotEqualTo(other);
        assertThat(peer.isSameQueuePair(DatagramPeer.of(peer.address(), 18))).isFalse();
    }

    @Test
    void checksItsRanges() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new DatagramPeer(0, 0, 1 << 24, 0, 0))
                .withMessageContaining("queuePairNumber");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new DatagramPeer(0, 0, 0, 1 << 16, 0))
                .withMessageContaining("lid");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new DatagramPeer(0, 0, 0, 0, 16))
                .withMessageContaining("serviceLevel");
        assertThat(new DatagramPeer(-1, -1, 0xffffff, 0xffff, 15).toString()).contains("16777215");
    }
}
