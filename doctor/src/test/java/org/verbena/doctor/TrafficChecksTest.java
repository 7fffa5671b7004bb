package org.verbena.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

@Timeout(120)
class TrafficChecksTest {
    private static final int BYTES = 64;

    /** Soft's server answers reads on its loop, which a handler keeps busy here. */
    @Test
    void aReadThatIsNotAnsweredFailsAfterItsTime() throws Exception {
        CountDownLatch busy = new CountDownLatch(1);
        CountDownLatch free = new CountDownLatch(1);
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(BYTES);
            MessageHandler handler = MessageHandler.ofBytes((exchange, message) -> {
                if (message.length == 0) {
                    busy.countDown();
                    free.await();
                    return;
                }
                RegisteredMemory region = exchange.channel().sharedMemory().register(memory, Access.REMOTE_READ);
                exchange.channel().closeFuture().addListener(closed -> region.close());
                exchange.reply(region.remote().encode());
            });
            try (RdmaServer server = RdmaServer.builder()
                            .provider("soft")
                            .threadsPerProvider(1)
                            .bind("127.0.0.1", 0, handler);
                    RdmaClient client = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port())) {
                RemoteMemory token =
                        RemoteMemory.decode(client.request(new byte[1]).get());
                assertThat(TrafficChecks.readBack("loopback", client, token, new byte[BYTES], Duration.ofMinutes(1))
                                .verdict())
                        .isEqualTo(Verdict.OK);
                client.send(new byte[0]);
                busy.await();
                assertThat(TrafficChecks.readBack("loopback", client, token, new byte[BYTES], Duration.ofMillis(50))
                                .verdict())
                        .isEqualTo(Verdict.FAILURE);
                free.countDown();
            }
        }
    }

    /** There is nothing to warn of, as nobody asked for a device. */
    @ParameterizedTest
    @ValueSource(strings = {"soft", "shm"})
    void providersWithoutDevicesNeedNoneOnTheirRoute(String provider) {
        List<Finding> findings = new ArrayList<>();
        TrafficChecks.peer(new Peer("127.0.0.1", 0, provider, false), findings::add);
        assertThat(findings).extracting(Finding::check).containsExactly("name 127.0.0.1", TrafficChecks.ROUTE);
        assertThat(findings).extracting(Finding::verdict).containsOnly(Verdict.OK);
    }

    @Test
    void noFirewallIsInTheWayOfSharedMemory() {
        InetSocketAddress remote = new InetSocketAddress("127.0.0.1", 7471);
        assertThat(TrafficChecks.whatMayBeInTheWay("soft", remote)).contains("firewall");
        assertThat(TrafficChecks.whatMayBeInTheWay("shm", remote))
                .doesNotContain("firewall")
                .contains("stopped");
    }
}
