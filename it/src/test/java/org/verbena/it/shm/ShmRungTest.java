package org.verbena.it.shm;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.Carrier;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.api.ServerMemory;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.it.FleetTokens;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.Patience;

/** Shared memory beside other providers: on one port, as the first rung of a ladder, and by auto. */
@Timeout(120)
class ShmRungTest {
    private static final MessageHandler ECHO = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));

    private static RdmaServer serve(String provider) {
        return RdmaServer.builder().provider(provider).bind("127.0.0.1", 0, ECHO);
    }

    private static void assertEchoes(RdmaClient client) throws Exception {
        byte[] message = new byte[100_000];
        message[99_999] = 7;
        assertThat(client.request(message).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isEqualTo(message);
    }

    @Test
    void oneServerTakesClientsOfBothOnOnePort() throws Exception {
        try (RdmaServer server = serve("soft+shm");
                RdmaClient near = RdmaClient.builder().provider("shm").connect("127.0.0.1", server.port());
                RdmaClient far = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port())) {
            assertEchoes(near);
            assertEchoes(far);
            assertThat(near.provider()).isEqualTo("shm");
            assertThat(far.provider()).isEqualTo("soft");
        }
    }

    /** One buffer of the server, and a token for each device, whichever rung a client has come by. */
    @Test
    void eachClientGetsTheTokenOfItsDevice() throws Exception {
        LadderOptions ladder = LadderOptions.DEFAULTS.withRungs("shm", "soft").withHedgeDelay(Duration.ofMinutes(1));
        try (ServerMemory table = ServerMemory.allocate(4096, Access.REMOTE_READ, Access.REMOTE_ATOMIC);
                RdmaServer server = RdmaServer.builder()
                        .provider("soft+shm")
                        .bind(
                                "127.0.0.1",
                                0,
                                (exchange, message) ->
                                        exchange.reply(exchange.token(table).encode()));
                RdmaClient near = RdmaClient.builder().provider("shm").connect("127.0.0.1", server.port());
                RdmaClient far = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port());
                RdmaClient climbs = RdmaClient.builder().ladder(ladder).connect("127.0.0.1", server.port())) {
            assertThat(climbs.provider()).isEqualTo("shm");
            RemoteMemory nearToken = FleetTokens.of(near);
            RemoteMemory farToken = FleetTokens.of(far);
            assertThat(nearToken.address()).isEqualTo(farToken.address());
            assertThat(nearToken.key()).isNotEqualTo(farToken.key());
            assertThat(FleetTokens.of(climbs)).isEqualTo(nearToken);
            for (int i = 0; i < 4; i++) {
                FleetTokens.assertCounts(near, nearToken, table, 3 * i);
                FleetTokens.assertCounts(far, farToken, table, 3 * i + 1);
                FleetTokens.assertCounts(climbs, nearToken, table, 3 * i + 2);
            }
            FleetTokens.assertRefuses(far, nearToken);
            FleetTokens.assertRefuses(climbs, farToken);
            FleetTokens.assertCounts(near, nearToken, table, 12);
        }
    }

    @Test
    void aLadderBeginsWithSharedMemoryWhereAServerIs() throws Exception {
        LadderOptions ladder = LadderOptions.DEFAULTS.withRungs("shm", "soft").withHedgeDelay(Duration.ofMinutes(1));
        try (RdmaServer both = serve("soft+shm");
                RdmaClient client = RdmaClient.builder().ladder(ladder).connect("127.0.0.1", both.port())) {
            assertThat(client.provider()).isEqualTo("shm");
            assertEchoes(client);
        }
        try (RdmaServer soft = serve("soft");
                RdmaClient client = RdmaClient.builder().ladder(ladder).connect("127.0.0.1", soft.port())) {
            assertThat(client.provider()).isEqualTo("soft");
            LadderResult result = client.ladder();
            assertThat(result).isNotNull();
            assertThat(result.passed()).extracting(LadderResult.Passed::rung).isEqualTo(List.of("shm"));
            assertThat(result.passed().getFirst().toString()).contains("no server of it is at");
        }
    }

    /** Both ends with the defaults: what two processes of one host get. */
    @Test
    void autoTakesItWhereAServerIsAndSaysWhyNotElsewhere() throws Exception {
        try (RdmaServer both = serve("auto");
                RdmaServer soft = serve("soft");
                RdmaClient near = RdmaClient.builder().provider("auto").connect("127.0.0.1", both.port());
                RdmaClient usual = RdmaClient.builder().provider("auto").connect("127.0.0.1", soft.port())) {
            assertThat(both.provider()).isEqualTo("soft+shm");
            assertThat(near.provider()).isEqualTo("shm");
            assertThat(reason(near)).contains("a server of this host has it");
            assertThat(usual.provider()).isEqualTo("soft");
            assertThat(reason(usual)).contains("shm reaches no server at");
            assertEchoes(near);
            assertEchoes(usual);
        }
    }

    private static String reason(RdmaClient client) {
        return Carrier.of(client.channel()).reason();
    }

    @Test
    void autoDoesWithoutItByOption() {
        System.setProperty("org.verbena.shm.auto", "false");
        try (RdmaServer both = serve("soft+shm");
                RdmaServer usual = serve("auto");
                RdmaClient client = RdmaClient.builder().provider("auto").connect("127.0.0.1", both.port())) {
            assertThat(client.provider()).isEqualTo("soft");
            assertThat(usual.provider()).isEqualTo("soft");
        } finally {
            System.clearProperty("org.verbena.shm.auto");
        }
    }

    /** As across a border that shared memory does not cross: the server is seen, and refuses. */
    @Test
    void autoGoesOnWithoutItWhereItFails() throws Exception {
        PreSharedKeys keys = PreSharedKeys.of("key", "0123456789abcdef0123456789abcdef".getBytes(US_ASCII));
        try (RdmaServer refusing = RdmaServer.builder()
                        .provider("shm")
                        .option(RdmaChannelOption.PRE_SHARED_KEYS, keys)
                        .bind("127.0.0.1", 0, ECHO);
                RdmaServer usual = RdmaServer.builder().provider("soft").bind("127.0.0.1", refusing.port(), ECHO);
                RdmaClient client = RdmaClient.builder().provider("auto").connect("127.0.0.1", usual.port())) {
            assertThat(client.provider()).isEqualTo("soft");
            assertThat(reason(client)).contains("shm has failed");
            assertEchoes(client);
        }
    }

    /** A slow start on a busy machine is no reason to use another rung. */
    @Test
    void aLadderWaitsForAServerThatIsKnownToBeThere() throws Exception {
        LadderOptions hasty = LadderOptions.DEFAULTS.withRungs("shm", "soft").withHedgeDelay(Duration.ofMillis(1));
        try (RdmaServer both = serve("soft+shm")) {
            for (int i = 0; i < 20; i++) {
                try (RdmaClient client = RdmaClient.builder().ladder(hasty).connect("127.0.0.1", both.port())) {
                    assertThat(client.provider()).isEqualTo("shm");
                }
            }
        }
    }
}
