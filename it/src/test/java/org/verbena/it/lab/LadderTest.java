package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.socket.SocketChannel;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.Carrier;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaLadder;
import org.verbena.api.RdmaServer;
import org.verbena.api.ladder.LadderCapability;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.transport.spi.Patience;

/** Clients that connect by a ladder, to servers with a device of the kernel, without one, and without RDMA. */
@Tag("lab")
@Timeout(300)
class LadderTest {
    static final MessageHandler ECHO = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));

    /** The guest is slow: verbs has all the time that it needs. */
    static final LadderOptions PATIENT = LadderOptions.DEFAULTS.withHedgeDelay(Duration.ofSeconds(20));

    private static final String ADDRESS = LabDevice.RXE.address();

    private static RdmaServer server(String provider, int port) {
        return RdmaServer.builder().provider(provider).threadsPerProvider(1).bind(ADDRESS, port, ECHO);
    }

    private static RdmaClient client(LadderOptions options, int port) {
        return RdmaClient.builder().ladder(options).connect(ADDRESS, port);
    }

    static void assertServes(RdmaClient client) {
        assertThat(client.request("hello".getBytes(java.nio.charset.StandardCharsets.US_ASCII)))
                .succeedsWithin(Patience.LIMIT)
                .isEqualTo("hello".getBytes(java.nio.charset.StandardCharsets.US_ASCII));
    }

    @Test
    void usesVerbsWhereTheServerHasIt() {
        try (RdmaServer server = server("verbs+soft", 0);
                RdmaClient client = client(PATIENT, server.port())) {
            assertServes(client);
            assertThat(client.ladder().rung()).isEqualTo("verbs");
            assertThat(client.ladder().passed()).isEmpty();
            assertThat(client.provider()).isEqualTo("verbs");
            assertThat(List.copyOf(server.connections()))
                    .extracting(child -> Carrier.of(child).name())
                    .containsExactly("verbs");
        }
    }

    /** The device says at once that nobody listens; the delay would be too long for the test. */
    @Test
    void usesSoftWhereTheServerHasNoDeviceAndMovesUpWhenItHas() {
        LadderOptions forgetful = PATIENT.withHedgeDelay(Duration.ofHours(1)).withForgetAfter(Duration.ZERO);
        int port;
        try (RdmaServer server = server("soft", 0);
                RdmaClient client = client(forgetful, server.port())) {
            port = server.port();
            assertServes(client);
            assertThat(client.ladder().rung()).isEqualTo("soft");
            System.out.println(client.ladder().reason());
            assertThat(client.ladder().passed())
                    .singleElement()
                    .satisfies(passed -> assertThat(passed.rung()).isEqualTo("verbs"));
            assertThatThrownBy(() -> client(forgetful.withMinimumRung("verbs"), server.port()))
                    .hasMessageContaining("none below verbs is allowed");
        }
        try (RdmaServer server = server("verbs+soft", port);
                RdmaClient client = client(forgetful, port)) {
            assertThat(server.port()).isEqualTo(port);
            assertServes(client);
            assertThat(client.ladder().rung()).isEqualTo("verbs");
        }
    }

    /** rxe has atomics, siw has none. */
    @Test
    void leavesADeviceThatLacksWhatIsNeeded() {
        LadderOptions needing = PATIENT.withNeeds(LadderCapability.ATOMICS).withRungs("verbs");
        try (RdmaServer rxe = server("verbs", 0);
                RdmaServer siw = RdmaServer.builder()
                        .provider("verbs")
                        .threadsPerProvider(1)
                        .bind(LabDevice.SIW.address(), 0, ECHO);
                RdmaClient client = client(needing, rxe.port())) {
            assertThat(client.ladder().rung()).isEqualTo("verbs");
            assertThatThrownBy(() -> RdmaClient.builder().ladder(needing).connect(LabDevice.SIW.address(), siw.port()))
                    .hasMessageContaining("verbs: it has no atomics");
        }
    }

    @Test
    void streamsUsePlainTcpWhereTheServerHasNothingElse() throws Exception {
        try (ServerSocket plain = new ServerSocket(0, 10, InetAddress.getByName(ADDRESS));
                RdmaEventLoopGroup group = new RdmaEventLoopGroup("ladder", 1)) {
            SocketChannel channel = Patience.await(
                    "the ladder",
                    RdmaLadder.connectStream(
                            new Bootstrap().group(group).handler(new ChannelInboundHandlerAdapter()),
                            new InetSocketAddress(ADDRESS, plain.getLocalPort()),
                            LadderOptions.DEFAULTS));
            LadderResult result = LadderResult.of(channel);
            System.out.println(result.reason());
            assertThat(result.rung()).isEqualTo(Carrier.TCP);
            assertThat(result.passed()).extracting(LadderResult.Passed::rung).isEqualTo(List.of("verbs", "soft"));
        }
    }
}
