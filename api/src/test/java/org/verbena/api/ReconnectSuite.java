package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.Target;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.Operation;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.spi.Patience;

/** Clients whose servers go away and come back. */
public abstract class ReconnectSuite extends ApiSuite {
    private static final MessageHandler ECHO = (exchange, message) -> exchange.reply(message.retain());

    /** So that no test waits long for an attempt. */
    private static final Duration MIN = Duration.ofMillis(5);

    private static final Duration MAX = Duration.ofMillis(50);

    /** How many clients are many, on this provider. */
    protected int manyClients() {
        return 200;
    }

    private RdmaServer serve(int port, MessageHandler handler) {
        return RdmaServer.builder().group(group).bind(host(), port, handler);
    }

    private RdmaClient.Builder builder() {
        return RdmaClient.builder().group(group).backOff(MIN, MAX);
    }

    private static byte[] text(String text) {
        return text.getBytes(US_ASCII);
    }

    private static void awaitState(RdmaClient client, ClientState state) {
        Patience.until("the client is " + state, () -> client.state() == state);
    }

    /** Until it has noticed that its server is gone. */
    private static void awaitLoss(RdmaClient client) {
        Patience.until("the client has no connection", () -> client.state() != ClientState.READY);
    }

    @Test
    void aClientSurvivesTheRestartsOfItsServer() {
        BlockingQueue<ClientState> states = new LinkedBlockingQueue<>();
        RdmaServer server = serve(lastingPort(), ECHO);
        int port = server.port();
        try (RdmaClient client = builder().onState(states::add).connect(host(), port)) {
            assertThat(client.state()).isEqualTo(ClientState.READY);
            for (int times = 0; times < 3; times++) {
                assertThat(Patience.await("a reply", client.request(text("before"))))
                        .isEqualTo(text("before"));
                server.close();
                awaitLoss(client);
                CompletableFuture<byte[]> bytes = client.request(text("bytes"));
                Future<ByteBuf> buffer = client.request(Unpooled.copiedBuffer("buffer", US_ASCII));
                CompletableFuture<Void> message = client.send(text("message"));
                CompletableFuture<Void> ready = client.whenReady();
                assertThat(List.of(bytes, message, ready)).noneMatch(CompletableFuture::isDone);
                assertThat(buffer.isDone()).isFalse();
                assertThat(client.isWritable()).isFalse();
                server = serve(port, ECHO);
                assertThat(Patience.await("a reply", bytes)).isEqualTo(text("bytes"));
                ByteBuf reply = done("a reply", buffer).getNow();
                assertThat(reply.toString(US_ASCII)).isEqualTo("buffer");
                reply.release();
                Patience.await("the message", message);
                Patience.await("it is ready", ready);
                Patience.await("it is ready now", client.whenReady());
                assertThat(client.channel().isActive()).isTrue();
            }
        }
        server.close();
        List<ClientState> ups = new ArrayList<>();
        Patience.until("the last state", () -> {
            states.drainTo(ups);
            return ups.contains(ClientState.CLOSED);
        });
        assertThat(ups.stream().filter(state -> state == ClientState.READY)).hasSize(4);
        assertThat(ups)
                .contains(ClientState.BACKING_OFF, ClientState.CONNECTING)
                .endsWith(ClientState.CLOSED);
        for (int i = 1; i < ups.size(); i++) {
            assertThat(ups.get(i)).isNotEqualTo(ups.get(i - 1));
        }
    }

    @Test
    void whatWasUnderWaySaysThatItMayHaveBegun() {
        BlockingQueue<Exchange> begun = new LinkedBlockingQueue<>();
        RdmaServer server = serve(lastingPort(), (exchange, message) -> begun.add(exchange));
        int port = server.port();
        try (RdmaClient client = builder().connect(host(), port)) {
            CompletableFuture<byte[]> bytes = client.request(text("bytes"));
            Future<ByteBuf> buffer = client.request(Unpooled.copiedBuffer("buffer", US_ASCII));
            Patience.take("the first", begun);
            Patience.take("the second", begun);
            server.close();
            for (Throwable cause : List.of(failure("bytes", bytes), failure("a buffer", buffer))) {
                assertThat(cause)
                        .isInstanceOfSatisfying(
                                ConnectionException.Lost.class,
                                lost -> assertThat(lost.mayHaveBegun()).isTrue());
            }
            try (RdmaServer next = serve(port, ECHO)) {
                assertThat(Patience.await("a reply", client.request(text("again"))))
                        .isEqualTo(text("again"));
                assertThat(next.connections().size()).isEqualTo(1);
            }
        }
    }

    private static void saysBegun(Throwable cause) {
        assertThat(cause)
                .isInstanceOfSatisfying(
                        ConnectionException.class,
                        lost -> assertThat(lost.mayHaveBegun()).isTrue());
    }

    @Test
    void whatMayBeSentAgainAndIsNotSaysThatItMayHaveBegun() {
        BlockingQueue<Exchange> begun = new LinkedBlockingQueue<>();
        RdmaServer server = serve(lastingPort(), (exchange, message) -> begun.add(exchange));
        RdmaClient.Builder repeating = builder().idempotent(true);
        try (RdmaClient waiting = repeating.connect(host(), server.port());
                RdmaClient closing = repeating.connect(host(), server.port());
                RdmaClient failing = repeating.failFast().connect(host(), server.port())) {
            CompletableFuture<byte[]> closed = closing.request(text("the client closes"));
            Patience.take("it", begun);
            Patience.await("closing", closing.closeAsync());
            saysBegun(failure("the request", closed));

            CompletableFuture<byte[]> waits = waiting.request(text("the server dies"));
            CompletableFuture<byte[]> fails = failing.request(text("the server dies"));
            Patience.take("one", begun);
            Patience.take("the other", begun);
            server.close();
            saysBegun(failure("without a server", fails));
            awaitLoss(waiting);
            assertThat(waits).isNotDone();
            Patience.await("closing", waiting.closeAsync());
            saysBegun(failure("the request", waits));
        }
    }

    @Test
    void whatHasWaitedIsSentBeforeWhatFollows() {
        Queue<Integer> handled = new ConcurrentLinkedQueue<>();
        MessageHandler notes = (exchange, message) -> handled.add(message.getInt(message.readerIndex()));
        RdmaServer server = serve(lastingPort(), notes);
        int port = server.port();
        try (RdmaClient client = builder().connect(host(), port)) {
            for (int round = 0; round < 10; round++) {
                server.close();
                awaitLoss(client);
                handled.clear();
                CompletableFuture<RdmaServer> back = CompletableFuture.supplyAsync(() -> serve(port, notes));
                List<CompletableFuture<Void>> sent = new ArrayList<>();
                Patience.until("the first is on its way, while others come", () -> {
                    for (int i = 0; i < 100; i++) {
                        sent.add(sendNumber(client, sent.size()));
                    }
                    return sent.getFirst().isDone();
                });
                for (int i = 0; i < 100; i++) {
                    sent.add(sendNumber(client, sent.size()));
                }
                server = Patience.await("the server", back);
                Patience.await("the last", sent.getLast());
                Patience.until("all are handled", () -> handled.size() == sent.size());
                assertThat(List.copyOf(handled)).isSorted();
            }
        }
        server.close();
    }

    private static CompletableFuture<Void> sendNumber(RdmaClient client, int number) {
        return client.send(ByteBuffer.allocate(Integer.BYTES).putInt(0, number));
    }

    /** The server closes a connection as soon as it has read that its client leaves. */
    @Test
    void whatIsSentOnAConnectionThatIsLeftGoesOn() {
        BlockingQueue<String> handled = new LinkedBlockingQueue<>();
        MessageHandler notes = (exchange, message) -> handled.add(message.toString(US_ASCII));
        try (RdmaServer server = serve(0, notes);
                RdmaClient client = builder().connect(host(), server.port())) {
            for (int round = 0; round < 5; round++) {
                Patience.await("it is ready", client.whenReady());
                Messenger chosen = client.channel().pipeline().get(Messenger.class);
                CountDownLatch held = new CountDownLatch(1);
                chosen.channel().eventLoop().execute(() -> await(held));
                Future<Void> before = Operation.SEND.start(chosen, buffer("before"), Long.MAX_VALUE, true, true);
                chosen.leave();
                Future<Void> after = Operation.SEND.start(chosen, buffer("after"), Long.MAX_VALUE, true, true);
                held.countDown();
                done("the former", before);
                done("the latter", after);
                assertThat(Patience.take("the former", handled)).isEqualTo("before");
                assertThat(Patience.take("the latter", handled)).isEqualTo("after");
                Patience.until("it is left", () -> !chosen.channel().isOpen());
            }
        }
    }

    private static ByteBuf buffer(String text) {
        return Unpooled.copiedBuffer(text, US_ASCII);
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
        } catch (InterruptedException interruption) {
            throw new IllegalStateException(interruption);
        }
    }

    @Test
    void aListenerThatBlocksWhenItsLoopHasEndedHoldsUpNoClient() {
        CountDownLatch held = new CountDownLatch(1);
        try (RdmaServer server = serve(0, ECHO)) {
            RdmaEventLoopGroup ending = new RdmaEventLoopGroup(provider(), 1);
            RdmaClient first = builder().group(ending).connect(host(), server.port());
            Future<ByteBuf> reply = done("a reply", first.request(buffer("hello")));
            reply.getNow().release();
            first.close();
            ending.close();
            CountDownLatch blocks = new CountDownLatch(1);
            reply.addListener(late -> {
                blocks.countDown();
                await(held);
            });
            await(blocks);
            assertThat(failure("of the same loop", first.request(text("late"))))
                    .isInstanceOf(ConnectionException.class);
            CompletableFuture<byte[]> twice = first.request(text("late"))
                    .exceptionally(refused -> first.request(text("later")).join());
            assertThat(failure("a stage that waits", twice)).isInstanceOf(ConnectionException.class);
            try (RdmaClient client = Patience.await("a client", builder().connectAsync(host(), server.port()))) {
                assertThat(Patience.await("a reply", client.request(text("again"))))
                        .isEqualTo(text("again"));
            }
        } finally {
            held.countDown();
        }
    }

    @Test
    void aClientThatFailsFastDoesNotWait() {
        RdmaServer server = serve(lastingPort(), ECHO);
        int port = server.port();
        try (RdmaClient client = builder().failFast().connect(host(), port)) {
            server.close();
            awaitLoss(client);
            List<CompletableFuture<?>> all = List.of(client.request(text("bytes")), client.send(text("message")));
            for (CompletableFuture<?> each : all) {
                assertThat(failure("without a server", each))
                        .isInstanceOfSatisfying(
                                ConnectionException.Unavailable.class,
                                cause -> assertThat(cause.mayHaveBegun()).isFalse())
                        .hasMessageContaining(String.valueOf(port));
            }
            try (RdmaServer next = serve(port, ECHO)) {
                Patience.await("it is ready", client.whenReady());
                assertThat(Patience.await("a reply", client.request(text("again"))))
                        .isEqualTo(text("again"));
                assertThat(next.connections().size()).isEqualTo(1);
            }
        }
    }

    @Test
    void aRequestWaitsUntilItsTimeout() {
        RdmaServer server = serve(lastingPort(), ECHO);
        try (RdmaClient client = builder().requestTimeout(Duration.ofMillis(30)).connect(host(), server.port())) {
            server.close();
            awaitLoss(client);
            List<CompletableFuture<?>> all = List.of(
                    client.request(text("a request")),
                    client.request(text("a request"), Duration.ofMillis(1)),
                    client.send(text("a message")));
            for (CompletableFuture<?> each : all) {
                assertThat(failure("too late", each)).isInstanceOf(ConnectionException.Unavailable.class);
            }
        }
    }

    @Test
    void whatIsCancelledWhileItWaitsIsNotSent() {
        BlockingQueue<String> handled = new LinkedBlockingQueue<>();
        MessageHandler notes = (exchange, message) -> {
            handled.add(message.toString(US_ASCII));
            exchange.reply(message.retain());
        };
        RdmaServer server = serve(lastingPort(), notes);
        int port = server.port();
        try (RdmaClient client = builder().connect(host(), port)) {
            server.close();
            awaitLoss(client);
            CompletableFuture<byte[]> bytes = client.request(text("bytes"));
            Future<ByteBuf> buffer = client.request(Unpooled.copiedBuffer("buffer", US_ASCII));
            CompletableFuture<byte[]> last = client.request(text("last"));
            assertThat(bytes.cancel(false)).isTrue();
            assertThat(buffer.cancel(false)).isTrue();
            try (RdmaServer next = serve(port, notes)) {
                assertThat(Patience.await("the last", last)).isEqualTo(text("last"));
                assertThat(handled).containsExactly("last");
                assertThat(next.connections().size()).isEqualTo(1);
            }
        }
    }

    @Test
    void whatWaitsHasABound() {
        RdmaServer server = serve(lastingPort(), ECHO);
        int port = server.port();
        try (RdmaClient client = builder().maxPending(3, 1000).connect(host(), port)) {
            server.close();
            awaitLoss(client);
            List<CompletableFuture<byte[]>> waiting = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                waiting.add(client.request(new byte[100]));
            }
            assertThat(client.statistics().waitingRequests()).isEqualTo(3);
            assertThat(client.statistics().waitingBytes()).isEqualTo(300);
            assertThat(client.statistics().state()).isEqualTo(client.state().name());
            assertThat(client.statistics().lastFailure()).isNotEmpty();
            CompletableFuture<byte[]> fourth = client.request(new byte[100]);
            assertThat(failure("the fourth", fourth)).isInstanceOf(SendLimitException.class);
            waiting.removeFirst().cancel(false);
            CompletableFuture<byte[]> long0 = client.request(new byte[900]);
            assertThat(failure("one that is too long", long0)).isInstanceOf(SendLimitException.class);
            Patience.until("there is room again", () -> {
                CompletableFuture<byte[]> next = client.request(new byte[100]);
                // Refused in any case, and after the one before has been accepted or refused.
                failure("one that is too long", client.request(new byte[900]));
                if (next.isCompletedExceptionally()) {
                    return false;
                }
                waiting.add(next);
                return true;
            });
            try (RdmaServer back = serve(port, ECHO)) {
                for (CompletableFuture<byte[]> each : waiting) {
                    assertThat(Patience.await("a reply", each)).hasSize(100);
                }
                assertThat(client.statistics().waitingRequests()).isZero();
                assertThat(client.statistics().waitingBytes()).isZero();
                assertThat(client.statistics().connections()).isEqualTo(2);
                assertThat(client.statistics().failedAttempts()).isPositive();
                assertThat(back.connections().size()).isEqualTo(1);
            }
        }
    }

    @Test
    void whatHasWaitedWaitsForRoomAsWell() {
        RdmaServer server = serve(lastingPort(), ECHO);
        int port = server.port();
        try (RdmaClient client = builder().maxRequests(1).connect(host(), port)) {
            server.close();
            awaitLoss(client);
            List<CompletableFuture<byte[]>> waiting = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                waiting.add(client.request(new byte[i]));
            }
            try (RdmaServer back = serve(port, ECHO)) {
                for (int i = 0; i < 5; i++) {
                    assertThat(Patience.await("a reply", waiting.get(i))).hasSize(i);
                }
                assertThat(back.connections().size()).isEqualTo(1);
            }
        }
    }

    /** Each refusal is an exception, and the Flight Recorder counts those. */
    @Test
    void whatWaitsForRoomDoesNotTryWithoutAPause() throws Exception {
        int count = 1000;
        AtomicInteger handled = new AtomicInteger();
        RdmaServer server = serve(lastingPort(), ECHO);
        int port = server.port();
        try (RdmaClient client = builder().maxRequests(10).connect(host(), port)) {
            server.close();
            awaitLoss(client);
            List<CompletableFuture<byte[]>> waiting = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                waiting.add(client.request(new byte[1]));
            }
            try (Recording recording = new Recording();
                    RdmaServer silent = serve(port, (exchange, message) -> handled.incrementAndGet())) {
                recording.enable("jdk.JavaExceptionThrow").with("throttle", "off");
                recording.start();
                Patience.until("there is no more room", () -> handled.get() == 10);
                Patience.turns(client.channel().eventLoop());
                recording.stop();
                assertThat(refusals(recording)).isBetween(1L, 2L * count);
                assertThat(waiting).noneMatch(CompletableFuture::isDone);
                assertThat(silent.connections().size()).isEqualTo(1);
            }
            try (RdmaServer back = serve(port, ECHO)) {
                for (CompletableFuture<byte[]> each : waiting.subList(count - 100, count)) {
                    assertThat(Patience.await("a reply", each)).hasSize(1);
                }
                assertThat(back.connections().size()).isEqualTo(1);
            }
        }
    }

    private static long refusals(Recording recording) throws IOException {
        Path file = Files.createTempFile("verbena", ".jfr");
        try {
            recording.dump(file);
            // Other recordings of the process may have more events in it.
            return RecordingFile.readAllEvents(file).stream()
                    .filter(event -> event.getEventType().getName().equals("jdk.JavaExceptionThrow"))
                    .filter(event -> event.getClass("thrownClass").getName().equals(SendLimitException.class.getName()))
                    .count();
        } finally {
            Files.delete(file);
        }
    }

    @Test
    void aClientMayStartBeforeItsServer() {
        RdmaServer first = serve(lastingPort(), ECHO);
        int port = first.port();
        first.close();
        RdmaClient client = builder().target(Target.of(host(), port)).start();
        assertThatThrownBy(client::channel).isInstanceOf(ConnectionException.Unavailable.class);
        assertThat(client.ladder()).isNull();
        CompletableFuture<byte[]> early = client.request(text("early"));
        CompletableFuture<Void> ready = client.whenReady();
        awaitState(client, ClientState.BACKING_OFF);
        assertThat(ready).isNotDone();
        try (RdmaServer server = serve(port, ECHO)) {
            Patience.await("it is ready", ready);
            assertThat(Patience.await("the early one", early)).isEqualTo(text("early"));
            assertThat(server.connections().size()).isEqualTo(1);
            client.close();
        }
    }

    @Test
    void closingEndsWhatWaits() {
        RdmaServer server = serve(lastingPort(), ECHO);
        RdmaClient client = builder().connect(host(), server.port());
        server.close();
        awaitLoss(client);
        CompletableFuture<byte[]> bytes = client.request(text("bytes"));
        Future<ByteBuf> buffer = client.request(Unpooled.copiedBuffer("buffer", US_ASCII));
        CompletableFuture<Void> ready = client.whenReady();
        client.close();
        assertThat(client.state()).isEqualTo(ClientState.CLOSED);
        assertThat(failure("bytes", bytes)).isInstanceOf(ConnectionException.class);
        assertThat(failure("a buffer", buffer)).isInstanceOf(ConnectionException.class);
        assertThat(failure("a state", ready)).isInstanceOf(ConnectionException.class);
        assertThat(failure("a state", client.whenReady())).isInstanceOf(ConnectionException.class);
        assertThat(failure("too late", client.request(text("late")))).isInstanceOf(ConnectionException.class);
        client.close();
    }

    /** Each of them is closed as it comes up, and the client goes on trying, but not at full speed. */
    @Test
    void aServerThatClosesAtOnceDoesNotStopAClient() {
        AtomicInteger accepted = new AtomicInteger();
        AtomicInteger refused = new AtomicInteger(20);
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .onConnect(channel -> {
                            accepted.incrementAndGet();
                            if (refused.getAndDecrement() > 0) {
                                channel.close();
                            }
                        })
                        .bind(host(), 0, ECHO);
                RdmaClient client =
                        builder().target(Target.of(host(), server.port())).start()) {
            Patience.until("it has one that stays", () -> {
                CompletableFuture<byte[]> request = client.request(text("hello"));
                return request.handle((reply, failure) -> failure == null).join();
            });
            assertThat(accepted).hasValue(21);
        }
    }

    /** Their attempts are spread (BackoffTest counts them); here all of them come back. */
    @Test
    void manyClientsComeBack() {
        int count = manyClients();
        RdmaServer server = serve(lastingPort(), ECHO);
        int port = server.port();
        List<RdmaClient> clients = new ArrayList<>();
        List<CompletableFuture<RdmaClient>> connecting = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            connecting.add(builder().backOff(MIN, Duration.ofSeconds(1)).connectAsync(host(), port));
        }
        connecting.forEach(each -> clients.add(Patience.await("a client", each)));
        server.close();
        clients.forEach(ReconnectSuite::awaitLoss);
        List<CompletableFuture<byte[]>> requests = new ArrayList<>();
        clients.forEach(client -> requests.add(client.request(text("back"))));
        try (RdmaServer back = serve(port, ECHO)) {
            requests.forEach(
                    request -> assertThat(Patience.await("a reply", request)).isEqualTo(text("back")));
            assertThat(back.connections().size()).isEqualTo(count);
            List<CompletableFuture<Void>> closing = new ArrayList<>();
            clients.forEach(client -> closing.add(client.closeAsync()));
            closing.forEach(each -> Patience.await("a client closing", each));
        }
    }

    /** Requests without a pause while the server restarts: none of those that were not begun is lost. */
    @Test
    void onlyWhatMayHaveBegunFailsUnderLoad() {
        RdmaServer server = serve(lastingPort(), ECHO);
        int port = server.port();
        try (RdmaClient client = builder().connect(host(), port)) {
            List<Throwable> failures = new ArrayList<>();
            for (int restart = 0; restart < 5; restart++) {
                List<CompletableFuture<byte[]>> requests = new ArrayList<>();
                CompletableFuture<Void> closed = null;
                for (int i = 0; i < 600; i++) {
                    requests.add(client.request(text("request " + i)));
                    if (i == 200) {
                        closed = server.closeAsync();
                    }
                    if (i == 400) {
                        Patience.await("the server closing", closed);
                        server = serve(port, ECHO);
                    }
                }
                for (CompletableFuture<byte[]> each : requests) {
                    Patience.until("it has an outcome", each::isDone);
                    if (each.isCompletedExceptionally()) {
                        failures.add(each.exceptionNow());
                    }
                }
            }
            assertThat(failures)
                    .allSatisfy(failure -> assertThat(failure)
                            .isInstanceOfSatisfying(
                                    ConnectionException.Lost.class,
                                    lost -> assertThat(lost.mayHaveBegun()).isTrue()));
        }
        server.close();
    }
}
