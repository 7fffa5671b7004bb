package org.verbena.testing;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.Exchange;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.api.client.Target;
import org.verbena.testing.Faults.Direction;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.Patience;

/** Clients and servers of the short form whose connections break at the test's command. */
@Timeout(120)
class FaultsTest {
    private final LinkedBlockingQueue<Exchange> held = new LinkedBlockingQueue<>();

    /** Answers "hold" when the test does, and everything else at once. */
    private final MessageHandler handler = MessageHandler.ofBytes((exchange, message) -> {
        if (new String(message, UTF_8).equals("hold")) {
            held.add(exchange);
        } else {
            exchange.reply(message);
        }
    });

    private final RdmaServer server = bind(0);
    private final Faults faults = Faults.at(server.port());

    private RdmaServer bind(int port) {
        return RdmaServer.builder().provider(InProcessProvider.NAME).bind("127.0.0.1", port, handler);
    }

    private static RdmaClient.Builder client() {
        return RdmaClient.builder()
                .provider(InProcessProvider.NAME)
                .requestTimeout(Duration.ofSeconds(Patience.LIMIT.toSeconds()))
                .backOff(Duration.ofMillis(1), Duration.ofMillis(10));
    }

    private RdmaClient connect() {
        return client().connect("127.0.0.1", server.port());
    }

    @AfterEach
    void close() {
        faults.close();
        server.close();
        assertThat(faults.connections()).isZero();
    }

    private static String ask(RdmaClient client, String question) throws Exception {
        return new String(
                client.request(question.getBytes(UTF_8)).get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS), UTF_8);
    }

    private Exchange takeHeld() throws InterruptedException {
        Exchange exchange = held.poll(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
        assertThat(exchange).as("a request has come").isNotNull();
        return exchange;
    }

    private static @Nullable Throwable failure(CompletableFuture<?> future) {
        Throwable thrown = catchThrowable(() -> future.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS));
        return thrown == null ? null : thrown.getCause();
    }

    @Test
    void carriesMessagesOfAllSizes() throws Exception {
        try (RdmaClient client = connect()) {
            assertThat(client.provider()).isEqualTo("inprocess");
            assertThat(server.provider()).isEqualTo("inprocess");
            for (int size : new int[] {1, 1000, 100_000, 3_000_000}) {
                assertThat(ask(client, "x".repeat(size))).hasSize(size);
            }
        }
    }

    @Test
    void isOnlyUsedWhereItIsNamed() {
        assertThat(ProviderChoice.installed()).anyMatch(InProcessProvider.class::isInstance);
        assertThat(ProviderChoice.choose("auto", null).provider().name()).isNotEqualTo("inprocess");
        assertThat(ProviderSet.choose("all", null).names()).doesNotContain("inprocess");
    }

    @Test
    void dropsConnectionsWithWhatIsUnderWay() throws Exception {
        try (RdmaClient client = connect()) {
            CompletableFuture<byte[]> underWay = client.request("hold".getBytes(UTF_8));
            Exchange exchange = takeHeld();
            assertThat(faults.drop()).isEqualTo(1);
            assertThat(failure(underWay))
                    .isInstanceOfSatisfying(
                            ConnectionException.Lost.class,
                            lost -> assertThat(lost.mayHaveBegun()).isTrue());
            Patience.until("the server knows", exchange::isCancelled);
            assertThat(ask(client, "again")).isEqualTo("again"); // over another connection
            assertThat(faults.connections()).isEqualTo(1);
        }
    }

    @Test
    void refusesConnectionsUntilItDoesNot() throws Exception {
        faults.refuse(true);
        assertThatThrownBy(this::connect).isInstanceOf(ConnectionException.Rejected.class);
        try (RdmaClient client =
                client().target(Target.of("127.0.0.1", server.port())).start()) {
            CompletableFuture<byte[]> waits = client.request("later".getBytes(UTF_8));
            assertThat(client.whenReady()).isNotDone();
            faults.refuse(false);
            assertThat(waits.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .hasSize(5);
        }
    }

    @Test
    void keepsRepliesBackWhileTheirWayIsSilent() throws Exception {
        try (RdmaClient client = connect()) {
            CompletableFuture<byte[]> asked = client.request("hold".getBytes(UTF_8));
            Exchange exchange = takeHeld();
            faults.silence(Direction.TO_CLIENT);
            exchange.reply("held".getBytes(UTF_8)).get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
            // What the client's loop had to do is done, and the reply was not among it.
            client.channel().eventLoop().submit(() -> {}).sync();
            assertThat(asked).isNotDone();
            CompletableFuture<byte[]> behind = client.request("behind".getBytes(UTF_8));
            faults.resume(Direction.TO_CLIENT);
            assertThat(asked.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .asString(UTF_8)
                    .isEqualTo("held");
            assertThat(behind.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .asString(UTF_8)
                    .isEqualTo("behind");
        }
    }

    @Test
    void keepsRequestsBackWhileTheirWayIsSilent() throws Exception {
        try (RdmaClient client = connect()) {
            faults.silence(Direction.TO_SERVER);
            CompletableFuture<byte[]> asked = client.request("hold".getBytes(UTF_8));
            client.channel().eventLoop().submit(() -> {}).sync();
            assertThat(held).isEmpty();
            faults.resume(Direction.TO_SERVER);
            takeHeld().reply(new byte[7]);
            assertThat(asked.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .hasSize(7);
        }
    }

    /** As with a cable that is cut: keepalive notices it, since nothing else does. */
    @Test
    void aSilentPeerIsGivenUpByKeepalive() throws Exception {
        try (RdmaClient client =
                client().option(RdmaChannelOption.KEEP_ALIVE_MILLIS, 300).connect("127.0.0.1", server.port())) {
            CompletableFuture<byte[]> asked = client.request("hold".getBytes(UTF_8));
            takeHeld();
            faults.silence(Direction.TO_CLIENT);
            faults.silence(Direction.TO_SERVER);
            assertThat(failure(asked)).isInstanceOf(ConnectionException.Lost.class);
            faults.close();
            assertThat(ask(client, "back")).isEqualTo("back");
        }
    }

    @Test
    void attemptsToConnectTimeOutInTheSilence() {
        faults.silence(Direction.TO_SERVER);
        assertThatThrownBy(() -> client().connectTimeout(Duration.ofMillis(100)).connect("127.0.0.1", server.port()))
                .isInstanceOf(ConnectionException.TimedOut.class);
    }

    @Test
    void stopsASenderWhosePeerIsSilentForLong() throws Exception {
        byte[] megabyte = new byte[1 << 20];
        try (RdmaClient client = client().maxPending(16, 16 << 20).connect("127.0.0.1", server.port())) {
            faults.silence(Direction.TO_SERVER);
            CompletableFuture<Void> first = client.send(megabyte);
            CompletableFuture<Void> last = first;
            while (client.isWritable()) { // ends, since what waits has a bound
                last = client.send(megabyte);
            }
            client.channel().eventLoop().submit(() -> {}).sync();
            server.connections().iterator().next().eventLoop().submit(() -> {}).sync();
            assertThat(first).isNotDone();
            faults.resume(Direction.TO_SERVER);
            last.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
        }
    }

    @Test
    void hasTheSameFaultsForAServerThatIsBoundAgain() throws Exception {
        int port = server.port();
        try (RdmaClient client = connect()) {
            server.close();
            assertThat(faults.connections()).isZero();
            try (RdmaServer again = bind(port)) {
                assertThat(again.port()).isEqualTo(port);
                assertThat(ask(client, "again")).isEqualTo("again");
                assertThat(Faults.at(port).connections()).isEqualTo(1);
            }
        }
    }

    @Test
    void refusesWhatIsNoPortAndNoDelay() {
        assertThatThrownBy(() -> Faults.at(0)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Faults.at(65_536)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> faults.holdBack(Direction.TO_CLIENT, -1)).isInstanceOf(IllegalArgumentException.class);
    }
}
