package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.client.Target;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.service.MessageStream;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/** Clients that leave connections which carry nothing. */
public abstract class IdleSuite extends ApiSuite {
    private static final MessageHandler ECHO = (exchange, message) -> {
        if (exchange.isRequest()) {
            exchange.reply(message.retain());
        }
    };

    private static final Duration SOON = Duration.ofMillis(20);

    private final BlockingQueue<ClientState> states = new LinkedBlockingQueue<>();

    private RdmaServer serve(int port, MessageHandler handler) {
        return RdmaServer.builder().group(group).bind(host(), port, handler);
    }

    private RdmaClient.Builder builder() {
        return RdmaClient.builder()
                .group(group)
                .backOff(Duration.ofMillis(5), Duration.ofMillis(50))
                .idleAfter(SOON);
    }

    private static byte[] text(String text) {
        return text.getBytes(US_ASCII);
    }

    private static void awaitState(RdmaClient client, ClientState state) {
        Patience.until("the client is " + state, () -> client.state() == state);
    }

    private static void awaitNobody(RdmaServer server) {
        Patience.until("the server has no client", () -> server.connections().isEmpty());
    }

    /** Lets another client become idle so many times, which takes at least as many times as long as it takes one. */
    private void awaitIdleTimes(int times) {
        try (RdmaServer server = serve(0, ECHO);
                RdmaClient other = builder().connect(host(), server.port())) {
            for (int i = 0; i < times; i++) {
                Patience.await("a reply", other.request(new byte[1]));
                awaitState(other, ClientState.IDLE);
            }
        }
    }

    @Test
    void aClientLeavesWhatItDoesNotUseAndComesBack() {
        try (RdmaServer server = serve(0, ECHO)) {
            try (RdmaClient client = builder().onState(states::add).connect(host(), server.port())) {
                assertThat(Patience.take("a state", states)).isEqualTo(ClientState.CONNECTING);
                for (int round = 0; round < 3; round++) {
                    assertThat(Patience.take("a state", states)).isEqualTo(ClientState.READY);
                    assertThat(Patience.take("a state", states)).isEqualTo(ClientState.IDLE);
                    awaitNobody(server);
                    assertThat(client.state()).isEqualTo(ClientState.IDLE);
                    assertThat(Patience.await("a reply", client.request(text("again"))))
                            .isEqualTo(text("again"));
                    assertThat(Patience.take("a state", states)).isEqualTo(ClientState.CONNECTING);
                }
            }
            awaitNobody(server);
        }
        Patience.until("it is closed", () -> states.contains(ClientState.CLOSED));
    }

    @Test
    void allConnectionsAreLeftAndAllServersComeBack() {
        try (RdmaServer one = serve(0, ECHO);
                RdmaServer two = serve(0, ECHO);
                RdmaClient client = builder()
                        .target(Target.of(List.of(one.localAddress(), two.localAddress())))
                        .connections(3)
                        .connect()) {
            for (int round = 0; round < 3; round++) {
                awaitState(client, ClientState.IDLE);
                awaitNobody(one);
                awaitNobody(two);
                Patience.await("a message", client.send(text("wake up")));
                Patience.until(
                        "all connections, or it is idle again",
                        () -> one.connections().size() + two.connections().size() == 6
                                || client.state() == ClientState.IDLE);
            }
        }
    }

    @Test
    void whatIsUnderWayKeepsItAwake() {
        BlockingQueue<Exchange> asked = new LinkedBlockingQueue<>();
        try (RdmaServer server = serve(0, (exchange, message) -> asked.add(exchange));
                RdmaClient client = builder().connect(host(), server.port())) {
            CompletableFuture<byte[]> slow = client.request(text("slow"));
            Exchange request = Patience.take("the request", asked);
            awaitIdleTimes(4);
            assertThat(client.state()).isEqualTo(ClientState.READY);
            assertThat(client.channel().isActive()).isTrue();
            request.reply(text("done"));
            assertThat(Patience.await("a reply", slow)).isEqualTo(text("done"));
            awaitState(client, ClientState.IDLE);
        }
    }

    @Test
    void aStreamKeepsItAwake() {
        BlockingQueue<MessageStream> begun = new LinkedBlockingQueue<>();
        try (RdmaServer server = serve(0, (exchange, message) -> begun.add(exchange.stream()));
                RdmaClient client = builder().connect(host(), server.port())) {
            MessageStream stream = client.stream(text("begin"), RequestOptions.DEFAULTS);
            MessageStream answer = Patience.take("the stream", begun);
            awaitIdleTimes(4);
            assertThat(client.state()).isEqualTo(ClientState.READY);
            assertThat(stream.whenOver()).isNotDone();
            answer.end();
            stream.end();
            Patience.await("the end", stream.whenOver());
            awaitState(client, ClientState.IDLE);
        }
    }

    @Test
    void aHandlerKeepsItAwake() {
        BlockingQueue<String> pushed = new LinkedBlockingQueue<>();
        try (RdmaServer server = serve(0, ECHO);
                RdmaClient client = builder()
                        .onState(states::add)
                        .onMessage((exchange, message) -> pushed.add(message.toString(US_ASCII)))
                        .connect(host(), server.port())) {
            awaitIdleTimes(4);
            Patience.await("a message", server.clients().iterator().next().send(text("news")));
            assertThat(Patience.take("a message", pushed)).isEqualTo("news");
            assertThat(client.state()).isEqualTo(ClientState.READY);
            assertThat(states).containsExactly(ClientState.CONNECTING, ClientState.READY);
        }
    }

    /** A client that must not lose its connection keeps it. */
    @Test
    void aClientThatDoesNotConnectAgainIsNeverIdle() {
        try (RdmaServer server = serve(0, ECHO);
                RdmaClient client = builder().reconnect(false).connect(host(), server.port())) {
            awaitIdleTimes(4);
            assertThat(client.state()).isEqualTo(ClientState.READY);
            assertThat(Patience.await("a reply", client.request(text("still")))).isEqualTo(text("still"));
        }
    }

    /** Messages that are written to the connection itself count as well; what the two ends agree on does not. */
    @Test
    void allThatAConnectionCarriesCounts() {
        BlockingQueue<String> handled = new LinkedBlockingQueue<>();
        try (RdmaServer server = serve(0, (exchange, message) -> {
                    handled.add(message.toString(US_ASCII));
                    exchange.client().send(message.retain());
                });
                RdmaClient client =
                        builder().onMessage((exchange, message) -> {}).connect(host(), server.port())) {
            RdmaChannel channel = client.channel();
            Messenger messenger = channel.pipeline().get(Messenger.class);
            assertThat(channel.statistics().framesSent()).isPositive();
            assertThat(messenger.carried()).isZero();
            done("a message", channel.writeAndFlush(Unpooled.copiedBuffer("plain", US_ASCII)));
            assertThat(Patience.take("it", handled)).isEqualTo("plain");
            Patience.until("the answer", () -> messenger.carried() == 2);
        }
    }

    @Test
    void waitingForAConnectionMakesOne() {
        try (RdmaServer server = serve(0, ECHO);
                RdmaClient client = builder().idleAfter(Duration.ofMillis(200)).connect(host(), server.port())) {
            awaitState(client, ClientState.IDLE);
            assertThat(client.isWritable()).isTrue();
            Patience.await("it is writable", client.whenWritable());
            Patience.await("it is ready", client.whenReady());
            Patience.until("it is idle again", () -> client.state() == ClientState.IDLE);
        }
    }

    /** What comes to an idle client waits for the attempt to connect, and fails with it. */
    @Test
    void aClientThatFailsFastConnectsFirst() {
        RdmaServer server = serve(lastingPort(), ECHO);
        int port = server.port();
        try (RdmaClient client = builder()
                .failFast()
                .requestTimeout(Duration.ofHours(1))
                .onState(states::add)
                .connect(host(), port)) {
            awaitState(client, ClientState.IDLE);
            assertThat(Patience.await("a reply", client.request(text("once")))).isEqualTo(text("once"));
            awaitState(client, ClientState.IDLE);
            server.close();
            for (CompletableFuture<?> each : List.of(client.request(text("twice")), client.send(text("a message")))) {
                assertThat(failure("without a server", each))
                        .isInstanceOfSatisfying(
                                ConnectionException.Unavailable.class,
                                cause -> assertThat(cause.mayHaveBegun()).isFalse());
            }
            assertThat(failure("at once", client.request(text("again"))))
                    .isInstanceOf(ConnectionException.Unavailable.class);
            server = serve(port, ECHO);
            Patience.await("it is ready", client.whenReady());
            assertThat(Patience.await("a reply", client.request(text("back")))).isEqualTo(text("back"));
        } finally {
            server.close();
        }
    }

    /** Its server was replaced meanwhile: what it finds is what there is when it wakes. */
    @Test
    void anIdleClientFollowsItsServers() {
        AtomicReference<List<InetSocketAddress>> known = new AtomicReference<>(List.of());
        AtomicReference<Consumer<? super List<InetSocketAddress>>> updates = new AtomicReference<>();
        RdmaServer first = serve(0, ECHO);
        known.set(List.of(first.localAddress()));
        try (RdmaServer second = serve(0, ECHO);
                RdmaClient client = builder()
                        .target(Target.resolver(to -> {
                            updates.set(to);
                            to.accept(known.get());
                            return () -> {};
                        }))
                        .connect()) {
            awaitState(client, ClientState.IDLE);
            first.close();
            updates.get().accept(List.of(second.localAddress()));
            assertThat(Patience.await("a reply", client.request(text("moved")))).isEqualTo(text("moved"));
            assertThat(client.channel().remoteAddress()).isEqualTo(second.localAddress());
            awaitState(client, ClientState.IDLE);
            awaitNobody(second);
            updates.get().accept(List.of(second.localAddress(), second.localAddress()));
            assertThat(client.state()).isEqualTo(ClientState.IDLE);
        }
    }

    @Test
    void anIdleClientCloses() {
        try (RdmaServer server = serve(0, ECHO)) {
            RdmaClient client = builder().connect(host(), server.port());
            awaitState(client, ClientState.IDLE);
            client.close();
            assertThat(client.state()).isEqualTo(ClientState.CLOSED);
            assertThat(failure("too late", client.request(text("late")))).isInstanceOf(ConnectionException.class);
            assertThat(failure("too late", client.whenReady())).isInstanceOf(ConnectionException.class);
            awaitNobody(server);
        }
    }

    @Test
    void theTimeIsChecked() {
        assertThatThrownBy(() -> RdmaClient.builder().idleAfter(Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class);
    }

    /** Requests of all kinds come at any moment of the client's way into idleness and back: each is answered once. */
    @Test
    void nothingIsLostWhileAClientBecomesIdle() {
        long seed = Long.getLong("verbena.seed", System.nanoTime());
        System.out.println("-Dverbena.seed=" + seed);
        Random random = new Random(seed);
        ConcurrentHashMap<Integer, AtomicInteger> handled = new ConcurrentHashMap<>();
        AtomicInteger rests = new AtomicInteger();
        MessageHandler counts = (exchange, message) -> {
            handled.computeIfAbsent(message.getInt(message.readerIndex()), number -> new AtomicInteger())
                    .incrementAndGet();
            if (exchange.isRequest()) {
                exchange.reply(message.retain());
            }
        };
        int number = 0;
        try (RdmaServer server = serve(0, counts);
                RdmaClient patient = racing(rests).connect(host(), server.port());
                RdmaClient hasty = racing(rests).failFast().connect(host(), server.port());
                RdmaClient repeating =
                        racing(rests).idempotent(true).connections(2).connect(host(), server.port())) {
            List<RdmaClient> clients = List.of(patient, hasty, repeating);
            int rounds = 0;
            while (rounds < 300 || rests.get() < 100) {
                rounds++;
                Patience.timer(group.next(), Duration.ofNanos(random.nextLong(6_000_000)));
                List<CompletableFuture<byte[]>> bytes = new ArrayList<>();
                List<Future<ByteBuf>> buffers = new ArrayList<>();
                List<CompletableFuture<Void>> sent = new ArrayList<>();
                for (RdmaClient client : clients) {
                    for (int burst = random.nextInt(1, 4); burst > 0; burst--) {
                        ByteBuffer message = ByteBuffer.allocate(Integer.BYTES).putInt(0, number++);
                        switch (random.nextInt(3)) {
                            case 0 -> bytes.add(client.request(message.array()));
                            case 1 -> buffers.add(client.request(Unpooled.wrappedBuffer(message)));
                            default -> sent.add(client.send(message));
                        }
                        if (random.nextInt(4) == 0) {
                            Patience.timer(group.next(), Duration.ofNanos(random.nextLong(3_000_000)));
                        }
                    }
                }
                bytes.forEach(
                        each -> assertThat(Patience.await("a reply", each)).hasSize(Integer.BYTES));
                buffers.forEach(each ->
                        assertThat(done("a reply", each).getNow().release()).isTrue());
                sent.forEach(each -> Patience.await("a message", each));
            }
            int all = number;
            Patience.until("all are handled", () -> handled.size() == all);
            assertThat(handled.values()).allSatisfy(times -> assertThat(times).hasValue(1));
        }
    }

    private RdmaClient.Builder racing(AtomicInteger rests) {
        return builder().idleAfter(Duration.ofMillis(2)).onState(state -> {
            if (state == ClientState.IDLE) {
                rests.incrementAndGet();
            }
        });
    }
}
