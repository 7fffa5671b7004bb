package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.channel.EventLoop;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.client.ClientState;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.UnusedPort;

/** Names that take long, and names of several addresses. */
@Timeout(120)
class NameLookupTest {
    private final AtomicInteger lookups = new AtomicInteger();
    private final CountDownLatch answers = new CountDownLatch(1);
    private final NameLookup names = new NameLookup(host -> {
        lookups.incrementAndGet();
        if (host.startsWith("slow")) {
            try {
                answers.await();
            } catch (InterruptedException end) {
                throw new IllegalStateException(end);
            }
        }
        InetAddress four = InetAddress.ofLiteral("127.0.0.1");
        InetAddress six = InetAddress.ofLiteral("::1");
        return host.equals("six first") ? new InetAddress[] {six, four} : new InetAddress[] {four, six};
    });

    @AfterEach
    void answer() {
        answers.countDown();
    }

    private RdmaClient.Builder builder() {
        return RdmaClient.builder().provider("soft").names(names);
    }

    @Test
    void theConnectTimeoutLimitsTheLookup() {
        assertThatThrownBy(() -> builder().connectTimeout(Duration.ofMillis(50)).connect("slow", 7471))
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("slow:7471")
                .hasMessageContaining("looking up the name");
        assertThatThrownBy(() -> builder()
                        .localHost("slow")
                        .connectTimeout(Duration.ofMillis(50))
                        .connect("127.0.0.1", 7471))
                .isInstanceOf(ConnectionException.TimedOut.class);
        Patience.until("it looks the name up", () -> lookups.get() > 0);
        assertThat(lookups).as("one look-up, which goes on").hasValue(1);
    }

    @Test
    void aLookupCanBeInterruptedAndCancelled() {
        CompletableFuture<Throwable> outcome = new CompletableFuture<>();
        Thread asking = Thread.ofPlatform()
                .start(() -> outcome.complete(catchThrowable(() -> builder().connect("slow", 7471))));
        Patience.until("it looks the name up", () -> lookups.get() == 1);
        asking.interrupt();
        assertThat(Patience.await("its outcome", outcome))
                .isInstanceOf(ConnectionException.class)
                .hasCauseInstanceOf(InterruptedException.class);

        CompletableFuture<RdmaClient> connecting = builder().connectAsync("slow too", 7471);
        Patience.until("it looks the name up", () -> lookups.get() == 2);
        connecting.cancel(true);
        assertThat(connecting).isCancelled();
    }

    /** Nobody listens on IPv6, if there is any. */
    @Test
    void theOtherFamilyIsTriedAndKept() {
        try (RdmaServer server = RdmaServer.builder()
                        .provider("soft")
                        .threadsPerProvider(1)
                        .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = builder().connect("six first", server.port())) {
            assertThat(Patience.await("a reply", client.request(new byte[2]))).hasSize(2);
            assertThat(client.channel().remoteAddress())
                    .isEqualTo(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), server.port()));
            assertThat(server.connections().size()).isEqualTo(1);
        }
    }

    /** Its only attempts are the first ones. */
    @Test
    void aClientThatDoesNotConnectAgainTriesTheOtherFamily() {
        try (RdmaServer server = RdmaServer.builder()
                        .provider("soft")
                        .threadsPerProvider(1)
                        .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = builder().reconnect(false).connect("six first", server.port())) {
            assertThat(Patience.await("a reply", client.request(new byte[2]))).hasSize(2);
        }
    }

    @Test
    void aNameIsLookedUpAgain() {
        try (RdmaServer server = RdmaServer.builder()
                        .provider("soft")
                        .threadsPerProvider(1)
                        .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = builder().lookUpEvery(Duration.ofMillis(1)).connect("several", server.port())) {
            Patience.until("several look-ups", () -> lookups.get() > 5);
            assertThat(Patience.await("a reply", client.request(new byte[2]))).hasSize(2);
            assertThat(server.connections().size()).isEqualTo(1);
        }
    }

    /** Its name has another address: the client moves there, when it looks or when its server is gone. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aClientFollowsItsName(boolean looksOften) {
        InetAddress old = InetAddress.ofLiteral("127.0.0.1");
        InetAddress next = InetAddress.ofLiteral("127.0.0.2");
        AtomicReference<InetAddress> answer = new AtomicReference<>(old);
        RdmaServer.Builder serving = RdmaServer.builder().provider("soft").threadsPerProvider(1);
        MessageHandler echo = (exchange, message) -> exchange.reply(message.retain());
        try (RdmaServer first = serving.bind(old.getHostAddress(), ApiSuite.lastingPort(), echo);
                RdmaServer second = serving.bind(next.getHostAddress(), first.port(), echo);
                RdmaClient client = builder()
                        .names(new NameLookup(host -> new InetAddress[] {answer.get()}))
                        .lookUpEvery(looksOften ? Duration.ofMillis(1) : Duration.ofHours(1))
                        .backOff(Duration.ofMillis(5), Duration.ofMillis(50))
                        .connect("moving", first.port())) {
            assertThat(Patience.await("a reply", client.request(new byte[2]))).hasSize(2);
            assertThat(first.connections().size()).isEqualTo(1);
            answer.set(next);
            if (!looksOften) {
                Patience.await("the server closing", first.closeAsync());
            }
            Patience.until("it is at the next one", () -> !second.connections().isEmpty());
            Patience.until("the old one is left", () -> first.connections().isEmpty());
            assertThat(Patience.await("a reply", client.request(new byte[2]))).hasSize(2);
            assertThat(second.connections().size()).isEqualTo(1);
            assertThat(client.channel().remoteAddress()).isEqualTo(new InetSocketAddress(next, first.port()));
        }
    }

    /** The look-up that is under way when the client becomes idle is its last, until there is a request. */
    @Test
    void anIdleClientLooksUpNoNames() {
        BlockingQueue<ClientState> idle = new LinkedBlockingQueue<>();
        try (RdmaServer server = RdmaServer.builder()
                        .provider("soft")
                        .threadsPerProvider(1)
                        .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = builder()
                        .lookUpEvery(Duration.ofMillis(1))
                        .idleAfter(Duration.ofMillis(30))
                        .onState(state -> {
                            if (state == ClientState.IDLE) {
                                idle.add(state);
                            }
                        })
                        .connect("several", server.port())) {
            EventLoop loop = client.channel().eventLoop();
            for (int round = 0; round < 3; round++) {
                Patience.take("it is idle", idle);
                Patience.until("no connection", () -> server.connections().isEmpty());
                int before = lookups.get();
                Patience.timer(loop, Duration.ofMillis(20));
                int after = lookups.get();
                assertThat(after - before).isLessThanOrEqualTo(1);
                assertThat(Patience.await("a reply", client.request(new byte[2])))
                        .hasSize(2);
                Patience.until("it looks the name up again", () -> lookups.get() > after);
            }
        }
    }

    @Test
    void manyWhoAskForOneNameShareItsLookup() {
        CompletableFuture<List<InetAddress>> first = CompletableFuture.supplyAsync(
                () -> names.addresses("connect to slow", "slow", 0),
                task -> Thread.ofVirtual().start(task));
        Patience.until("it looks the name up", () -> lookups.get() == 1);
        CompletableFuture<List<InetAddress>> second = CompletableFuture.supplyAsync(
                () -> names.addresses("connect to slow", "slow", 0),
                task -> Thread.ofVirtual().start(task));
        assertThat(names.addresses("connect to 127.0.0.1", "127.0.0.1", 0))
                .as("an address needs none")
                .hasSize(1);
        answers.countDown();
        assertThat(Patience.await("addresses", first)).hasSize(2);
        assertThat(Patience.await("addresses", second)).hasSize(2);
        assertThat(lookups.get()).isLessThanOrEqualTo(2);
    }

    @Test
    void allAddressesOfANameAreTriedAndAFailureNamesThem() throws Exception {
        try (UnusedPort port = new UnusedPort("127.0.0.1")) {
            assertThatThrownBy(() -> builder().connect("several", port.number()))
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasCauseInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining("127.0.0.1:" + port.number())
                    .hasMessageContaining("several:" + port.number())
                    .hasMessageContaining("0:0:0:0:0:0:0:1")
                    .satisfies(all -> assertThat(all.getSuppressed())
                            .as("that of the other address")
                            .hasSize(1));
        }
        try (RdmaServer server = RdmaServer.builder()
                        .provider("soft")
                        .threadsPerProvider(1)
                        .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = builder().connect("several", server.port())) {
            assertThat(Patience.await("a reply", client.request(new byte[2]))).hasSize(2);
        }
    }
}
