package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.api.ladder.LadderStatistics;
import org.verbena.api.metrics.LadderMetrics;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.Patience;

/** A client on soft, whose better rung becomes available later. */
@Timeout(120)
class LadderMoveTest {
    static {
        LeakWatch.start();
    }

    private static final LadderOptions MOVING = LadderOptions.DEFAULTS
            .withRungs(StagedProvider.NAME, "soft")
            .withForgetAfter(Duration.ZERO)
            .withMoveUp(Duration.ofMillis(5));

    private static final int SENDERS = 4;

    /** How many operations of a sender are under way. */
    private static final int WINDOW = 32;

    private static final byte MESSAGE = 0;
    private static final byte REQUEST = 1;

    private final StagedProvider better = new StagedProvider();
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private RdmaEventLoopGroup group;
    private RdmaEventLoopGroup servers;
    private long usedBefore;

    @BeforeEach
    void open() {
        usedBefore = ChannelBuffers.usedBytes();
        better.serve(false);
        group = new RdmaEventLoopGroup(
                new ProviderSet(
                        List.of(new ProviderChoice(better, "for a test"), ProviderChoice.choose("soft", null)),
                        Set.of()),
                1,
                null,
                CompletionLoopOptions.DEFAULTS);
        servers = new RdmaEventLoopGroup("soft", 2);
    }

    @AfterEach
    void close() {
        group.close();
        servers.close();
        assertThat(group.isTerminated()).isTrue();
        assertThat(ProviderStatistics.of(better).openConnections()).isZero();
        Patience.until("all registered buffers are home", () -> ChannelBuffers.usedBytes() <= usedBefore);
        assertThat(violations).isEmpty();
    }

    private RdmaServer serve(boolean virtualThreads, MessageHandler handler) {
        return RdmaServer.builder()
                .group(servers)
                .virtualThreads(virtualThreads)
                .bind("127.0.0.1", 0, handler);
    }

    private RdmaClient client(RdmaServer server) {
        return client(server, MOVING);
    }

    private RdmaClient client(RdmaServer server, LadderOptions options) {
        RdmaClient client = RdmaClient.builder()
                .group(group)
                .ladder(options)
                .onMessage((exchange, message) -> {})
                .connect("127.0.0.1", server.port());
        assertThat(client.provider()).isEqualTo("soft");
        return client;
    }

    private static void awaitMoved(RdmaClient client) {
        Patience.until("it moves up", () -> client.provider().equals(StagedProvider.NAME));
    }

    private static void awaitConnections(RdmaServer server, int count) {
        Patience.until("connections: " + count, () -> server.connections().size() == count);
    }

    private static byte[] text(String text) {
        return text.getBytes(US_ASCII);
    }

    private static <T> T done(CompletableFuture<T> future) throws Exception {
        return future.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    // ---- load

    /** Sends numbered messages and requests from several threads at once, and keeps account of them at the server. */
    private final class Load {
        private final Set<Long> handled = ConcurrentHashMap.newKeySet();
        private final List<Thread> threads = new ArrayList<>();
        private final long[] sent = new long[SENDERS];
        private final AtomicInteger answered = new AtomicInteger();
        private volatile boolean ends;

        void handle(Exchange exchange, ByteBuf message) {
            ByteBuf view = message.duplicate();
            byte kind = view.readByte();
            int sender = view.readInt();
            long number = view.readLong();
            if (!handled.add((long) sender << 40 | number)) {
                violations.add("sender " + sender + ": " + number + " again");
            }
            if (kind == REQUEST) {
                exchange.reply(message.retain());
            }
        }

        void start(RdmaClient client) {
            for (int i = 0; i < SENDERS; i++) {
                int sender = i;
                threads.add(Thread.ofPlatform().start(() -> {
                    try {
                        send(client, sender);
                    } catch (Throwable failure) {
                        violations.add("sender " + sender + ": " + failure);
                    }
                }));
            }
        }

        private void send(RdmaClient client, int sender) throws Exception {
            BlockingQueue<CompletableFuture<?>> window = new LinkedBlockingQueue<>();
            while (!ends) {
                if (window.size() == WINDOW) {
                    done(window.remove());
                }
                long number = sent[sender];
                byte kind = number % 3 == 0 ? MESSAGE : REQUEST;
                byte[] bytes = ByteBuffer.allocate(
                                13 + ThreadLocalRandom.current().nextInt(100))
                        .put(kind)
                        .putInt(sender)
                        .putLong(number)
                        .array();
                window.add(
                        kind == MESSAGE
                                ? client.send(bytes)
                                : client.request(bytes).thenAccept(reply -> {
                                    if (!Arrays.equals(reply, bytes)) {
                                        violations.add("sender " + sender + ": another reply");
                                    }
                                    answered.incrementAndGet();
                                }));
                sent[sender] = number + 1;
            }
            for (CompletableFuture<?> last : window) {
                done(last);
            }
        }

        void more(int replies) {
            int from = answered.get();
            Patience.until("the load runs", () -> answered.get() >= from + replies || !violations.isEmpty());
            assertThat(violations).isEmpty();
        }

        /** Everything was handled once. */
        void stop(RdmaClient client) throws Exception {
            ends = true;
            for (Thread thread : threads) {
                thread.join(Patience.LIMIT);
                assertThat(thread.isAlive()).isFalse();
            }
            Set<Long> all = new HashSet<>();
            for (int sender = 0; sender < SENDERS; sender++) {
                for (long number = 0; number < sent[sender]; number++) {
                    all.add((long) sender << 40 | number);
                }
            }
            Patience.until("all are handled", () -> handled.size() >= all.size());
            assertThat(handled).isEqualTo(all);
            assertThat(client.lateReplies()).isZero();
            assertThat(violations).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void movesUpUnderLoad(boolean virtualThreads) throws Exception {
        Load load = new Load();
        LadderStatistics before = LadderStatistics.of(StagedProvider.NAME);
        try (RdmaServer server = serve(virtualThreads, load::handle);
                RdmaClient client = client(server)) {
            RdmaChannel old = client.channel();
            load.start(client);
            load.more(2000);
            assertThat(better.connects()).isZero();
            better.serve(true);
            awaitMoved(client);
            load.more(2000);
            load.stop(client);
            Patience.until(
                    "its probation is over",
                    () -> LadderStatistics.of(StagedProvider.NAME).movedUp() > before.movedUp());
            assertThat(client.ladder().passed()).isEmpty();
            assertThat(client.channel()).isNotSameAs(old);
            assertThat(client.isWritable()).isTrue();
            assertThat(LadderResult.of(client.channel())).isEqualTo(client.ladder());
            awaitConnections(server, 1);
            Patience.until("the old one is closed", () -> !old.isOpen());
            assertThat(better.connects())
                    .as("on the best rung it tries no more")
                    .isEqualTo(1);
        }
        assertThat(LadderStatistics.of(StagedProvider.NAME))
                .isEqualTo(new LadderStatistics(
                        StagedProvider.NAME, before.used() + 1, before.passed() + 1, before.movedUp() + 1));
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        new LadderMetrics(MOVING).bindTo(registry);
        assertThat(registry.get("verbena.ladder.moved")
                        .tag("rung", StagedProvider.NAME)
                        .functionCounter()
                        .count())
                .isEqualTo(before.movedUp() + 1);
    }

    /** Several clients on the same loops, each moved many times in a row: from soft to better, and then a new one. */
    @Test
    void movesManyTimes() throws Exception {
        for (int i = 0; i < 8; i++) {
            Load load = new Load();
            better.serve(false);
            try (RdmaServer server = serve(false, load::handle);
                    RdmaClient client = client(server)) {
                load.start(client);
                load.more(50);
                better.serve(true);
                awaitMoved(client);
                load.more(50);
                load.stop(client);
            }
        }
    }

    @Test
    void anAttemptThatFailsChangesNothing() throws Exception {
        Load load = new Load();
        better.connectTo(address -> {
            throw new ConnectionException.Rejected("connect to " + address + ": nobody is at home", new byte[0]);
        });
        try (RdmaServer server = serve(false, load::handle);
                RdmaClient client = client(server)) {
            RdmaChannel old = client.channel();
            load.start(client);
            better.serve(true);
            Patience.until("it tries", () -> better.connects() >= 3);
            load.more(500);
            assertThat(client.channel()).isSameAs(old);
            assertThat(server.connections().size()).isEqualTo(1);
            better.connectTo(address -> address);
            awaitMoved(client);
            load.more(500);
            load.stop(client);
        }
    }

    // ---- what is under way

    @Test
    void whatIsInFlightFinishesOnTheOldConnection() throws Exception {
        BlockingQueue<Exchange> kept = new LinkedBlockingQueue<>();
        MessageHandler handler = (exchange, message) -> {
            if (message.toString(US_ASCII).equals("slow")) {
                kept.add(exchange);
            } else {
                exchange.reply(message.retain());
            }
        };
        try (RdmaServer server = serve(false, handler);
                RdmaClient client = client(server)) {
            CompletableFuture<byte[]> slow = client.request(text("slow"));
            Exchange exchange = Patience.take("the slow request", kept);
            RdmaChannel old = client.channel();
            better.serve(true);
            awaitMoved(client);
            assertThat(done(client.request(text("fast")))).isEqualTo(text("fast"));
            assertThat(server.connections().size())
                    .as("the old one waits for a reply")
                    .isEqualTo(2);
            assertThat(old.isActive()).isTrue();
            exchange.reply(text("a message first"));
            assertThat(done(slow)).isEqualTo(text("a message first"));
            awaitConnections(server, 1);
            Patience.until("it is closed", () -> !old.isOpen());
        }
    }

    /** The client must not close the old connection: it would lose what is behind the last reply. */
    @Test
    void whatTheServerSendsBehindItsLastReplyArrives() throws Exception {
        int messages = 200;
        BlockingQueue<Exchange> kept = new LinkedBlockingQueue<>();
        AtomicInteger arrived = new AtomicInteger();
        try (RdmaServer server = serve(true, (exchange, message) -> kept.add(exchange));
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .ladder(MOVING)
                        .onMessage((exchange, message) -> arrived.incrementAndGet())
                        .connect("127.0.0.1", server.port())) {
            CompletableFuture<byte[]> last = client.request(text("last"));
            Exchange exchange = Patience.take("the request", kept);
            better.serve(true);
            awaitMoved(client);
            exchange.channel().eventLoop().execute(() -> {
                exchange.reply(text("the reply"));
                for (int i = 0; i < messages; i++) {
                    exchange.send(new byte[50_000]);
                }
            });
            assertThat(done(last)).isEqualTo(text("the reply"));
            awaitConnections(server, 1);
            Patience.until("all have arrived", () -> arrived.get() == messages);
        }
    }

    /** The client has left the connection by then, and the server reads nothing there: it answers on the next one. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatTheServerSendsBehindItsLastReplyIsAnswered(boolean virtualThreads) throws Exception {
        int messages = 200;
        BlockingQueue<Exchange> kept = new LinkedBlockingQueue<>();
        Set<Integer> back = ConcurrentHashMap.newKeySet();
        CompletableFuture<Future<Void>> written = new CompletableFuture<>();
        long movedBefore = LadderStatistics.of(StagedProvider.NAME).movedUp();
        MessageHandler handler = (exchange, message) -> {
            if (exchange.isRequest()) {
                kept.add(exchange);
            } else if (!back.add(message.getInt(message.readerIndex()))) {
                violations.add(message.getInt(message.readerIndex()) + " came back twice");
            }
        };
        MessageHandler answering = (exchange, message) -> {
            if (!written.isDone()) {
                written.complete(exchange.channel().writeAndFlush(message.retainedDuplicate()));
            }
            exchange.send(message.retain());
        };
        try (RdmaServer server = serve(false, handler);
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .ladder(MOVING)
                        .virtualThreads(virtualThreads)
                        .onMessage(answering)
                        .connect("127.0.0.1", server.port())) {
            CompletableFuture<byte[]> last = client.request(text("last"));
            Exchange exchange = Patience.take("the request", kept);
            better.serve(true);
            Patience.until(
                    "it has moved up for good",
                    () -> LadderStatistics.of(StagedProvider.NAME).movedUp() > movedBefore);
            exchange.channel().eventLoop().execute(() -> {
                exchange.reply(text("the reply"));
                for (int number = 0; number < messages; number++) {
                    exchange.send(ByteBuffer.allocate(4).putInt(number).flip());
                }
            });
            assertThat(done(last)).isEqualTo(text("the reply"));
            Patience.until("all came back", () -> back.size() == messages);
            assertThat(done(written).await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
            assertThat(done(written).isSuccess())
                    .as("written to the connection itself")
                    .isFalse();
        }
    }

    /** A server sends more than replies; a client's handler answers: all on whichever connection there is. */
    @Test
    void messagesOfTheServerAndTheirAnswersArriveOnce() throws Exception {
        int rounds = 1000;
        Set<Integer> back = ConcurrentHashMap.newKeySet();
        MessageHandler handler = (exchange, message) -> {
            int number = message.getInt(message.readerIndex());
            if (exchange.isRequest()) {
                exchange.reply(message.copy());
                exchange.send(message.retain()); // a message of its own
            } else if (!back.add(number)) {
                violations.add(number + " came back twice");
            }
        };
        MessageHandler answering = (exchange, message) -> exchange.send(message.retain());
        try (RdmaServer server = serve(false, handler);
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .ladder(MOVING)
                        .onMessage(answering)
                        .connect("127.0.0.1", server.port())) {
            for (int number = 0; number < rounds; number++) {
                byte[] bytes = ByteBuffer.allocate(4).putInt(number).array();
                assertThat(done(client.request(bytes))).isEqualTo(bytes);
                if (number == rounds / 10) {
                    better.serve(true);
                }
                if (number == rounds / 2) {
                    awaitMoved(client);
                }
            }
            Patience.until("all came back", () -> back.size() == rounds);
        }
    }

    /** The better connection ends in its probation: the client goes on with the one that it has kept. */
    @Test
    void goesBackWhenTheBetterConnectionIsLostAtOnce() throws Exception {
        LadderStatistics before = LadderStatistics.of(StagedProvider.NAME);
        try (RdmaServer server = serve(false, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = client(server, MOVING.withMoveUp(Duration.ofMillis(200)))) {
            RdmaChannel old = client.channel();
            for (int times = 0; times < 3; times++) {
                better.serve(true);
                Patience.until("it moves up", () -> client.channel() != old);
                assertThat(old.isActive()).isTrue();
                better.serve(false);
                for (Channel child : List.copyOf(server.connections())) {
                    if (!child.remoteAddress().equals(old.localAddress())) {
                        child.close();
                    }
                }
                Patience.until("it goes back", () -> client.channel() == old);
                assertThat(done(client.request(text("hello")))).isEqualTo(text("hello"));
            }
            assertThat(LadderStatistics.of(StagedProvider.NAME).movedUp()).isEqualTo(before.movedUp());
            better.serve(true);
            Patience.until("it stays up", () -> !old.isOpen());
            assertThat(client.provider()).isEqualTo(StagedProvider.NAME);
            assertThat(done(client.request(text("again")))).isEqualTo(text("again"));
        }
    }

    /** It connects, and that is all that it does. */
    @Test
    void goesBackWhenTheBetterConnectionDoesNotAnswer() throws Exception {
        AtomicReference<Channel> answered = new AtomicReference<>();
        MessageHandler handler = (exchange, message) -> {
            if (answered.compareAndSet(null, exchange.channel())
                    || answered.get().equals(exchange.channel())) {
                exchange.reply(message.retain());
            }
        };
        try (RdmaServer server = serve(false, handler);
                RdmaClient client = client(server, MOVING.withMoveUp(Duration.ofSeconds(1)))) {
            RdmaChannel old = client.channel();
            assertThat(done(client.request(text("hello")))).isEqualTo(text("hello"));
            better.serve(true);
            List<CompletableFuture<Boolean>> outcomes = new ArrayList<>(); // there is always one under way
            BooleanSupplier isOnOld = () -> {
                outcomes.add(
                        client.request(text("hello"), Duration.ofMillis(10)).handle((reply, failure) -> true));
                return client.channel() == old;
            };
            Patience.until("it moves up", () -> !isOnOld.getAsBoolean());
            better.serve(false);
            Patience.until("it goes back", isOnOld);
            outcomes.forEach(each -> assertThat(each).succeedsWithin(Patience.LIMIT));
            assertThat(done(client.request(text("again")))).isEqualTo(text("again"));
            awaitConnections(server, 1);
        }
    }

    @Test
    void goesOnWithTheBetterConnectionWhenTheOldOneIsLost() throws Exception {
        try (RdmaServer server = serve(false, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = client(server, MOVING.withMoveUp(Duration.ofMillis(300)))) {
            RdmaChannel old = client.channel();
            better.serve(true);
            Patience.until("it moves up", () -> client.channel() != old);
            old.close().sync();
            assertThat(done(client.request(text("hello")))).isEqualTo(text("hello"));
            assertThat(client.provider()).isEqualTo(StagedProvider.NAME);
        }
    }

    /** As when its device goes: each request has its outcome, and the client comes back on the next rung. */
    @Test
    void comesBackOnTheNextRungWhenItsOwnIsLostUnderLoad() throws Exception {
        better.serve(true);
        try (RdmaServer server = serve(false, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client =
                        RdmaClient.builder().group(group).ladder(MOVING).connect("127.0.0.1", server.port())) {
            assertThat(client.provider()).isEqualTo(StagedProvider.NAME);
            AtomicBoolean isLost = new AtomicBoolean();
            AtomicInteger replies = new AtomicInteger();
            CountDownLatch outcomes = new CountDownLatch(WINDOW);
            for (int i = 0; i < WINDOW; i++) {
                ask(client, isLost, replies, outcomes);
            }
            Patience.until("the load runs", () -> replies.get() > 1000);
            better.serve(false);
            server.connections().close();
            isLost.set(true);
            assertThat(outcomes.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
            assertThat(done(client.request(text("again")))).isEqualTo(text("again"));
            assertThat(client.provider()).isEqualTo("soft");
        }
    }

    /** One request after another, until one fails or the rung is lost. */
    private static void ask(RdmaClient client, AtomicBoolean isLost, AtomicInteger replies, CountDownLatch outcomes) {
        client.request(new byte[512]).whenComplete((reply, failure) -> {
            if (failure == null && !isLost.get()) {
                replies.incrementAndGet();
                ask(client, isLost, replies, outcomes);
            } else {
                outcomes.countDown();
            }
        });
    }

    // ---- the end

    /** Closed at any time, under load: every operation has its outcome, and nothing stays open. */
    @Test
    void closingWhileItMovesLeaksNothing() throws Exception {
        for (int i = 0; i < 40; i++) {
            better.serve(false);
            try (RdmaServer server = serve(false, (exchange, message) -> exchange.reply(message.retain()))) {
                RdmaClient client = client(server, MOVING.withMoveUp(Duration.ofMillis(1)));
                List<CompletableFuture<?>> all = new ArrayList<>();
                better.serve(true);
                for (int more = ThreadLocalRandom.current().nextInt(100); more > 0; more--) {
                    all.add(client.request(text("a request")));
                    all.add(client.send(text("a message")));
                    Patience.turns(1, group.next());
                }
                CompletableFuture<Void> closed = client.closeAsync();
                all.add(client.request(text("too late")));
                done(closed);
                for (CompletableFuture<?> each : all) {
                    assertThat(each.handle((result, failure) -> true)).succeedsWithin(Patience.LIMIT);
                }
                awaitConnections(server, 0);
                Patience.until(
                        "none is open", () -> ProviderStatistics.of(better).openConnections() == 0);
            }
        }
    }

    @Test
    void aClientWithItsOwnLoopsEndsThem() throws Exception {
        try (RdmaServer server = serve(false, (exchange, message) -> exchange.reply(message.retain()))) {
            RdmaClient client = RdmaClient.builder()
                    .ladder(LadderOptions.DEFAULTS.withRungs("verbs", "soft").withMoveUp(Duration.ofMillis(1)))
                    .connect("127.0.0.1", server.port());
            assertThat(client.provider()).isEqualTo("soft");
            assertThat(done(client.request(text("hello")))).isEqualTo(text("hello"));
            client.close();
            assertThat(client.channel().eventLoop().isTerminated()).isTrue();
            done(client.closeAsync());
        }
    }

    // ---- what is seen

    private static ListAppender<ILoggingEvent> listen() {
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.list = new CopyOnWriteArrayList<>(); // others add to it while the test looks
        Logger logger = (Logger) LoggerFactory.getLogger("org.verbena.api.internal.client.Links");
        log.start();
        logger.addAppender(log);
        logger.setLevel(Level.INFO);
        return log;
    }

    private static void stopListening(ListAppender<ILoggingEvent> log) {
        Logger logger = (Logger) LoggerFactory.getLogger("org.verbena.api.internal.client.Links");
        logger.setLevel(null);
        logger.detachAppender(log);
    }

    @Test
    void isSeenInTheLogAndTheFlightRecorder() throws Exception {
        ListAppender<ILoggingEvent> log = listen();
        Path file = Files.createTempFile("ladder", ".jfr");
        try (Recording recording = new Recording()) {
            recording.enable("org.verbena.LadderMove").withoutThreshold();
            recording.start();
            try (RdmaServer server = serve(false, (exchange, message) -> exchange.reply(message.retain()));
                    RdmaClient client = client(server)) {
                better.serve(true);
                awaitMoved(client);
                Patience.until(
                        "it is logged",
                        () -> List.copyOf(log.list).stream()
                                .anyMatch(line ->
                                        line.getFormattedMessage().endsWith("has moved up from soft to better")));
                awaitConnections(server, 1);
            }
            recording.stop();
            recording.dump(file);
            List<RecordedEvent> moves = RecordingFile.readAllEvents(file).stream()
                    .filter(event -> event.getEventType().getName().equals("org.verbena.LadderMove"))
                    .toList();
            assertThat(moves).singleElement().satisfies(event -> {
                assertThat(event.getString("from")).isEqualTo("soft");
                assertThat(event.getString("to")).isEqualTo(StagedProvider.NAME);
                assertThat(event.getBoolean("moved")).isTrue();
            });
        } finally {
            stopListening(log);
            Files.delete(file);
        }
    }

    @Test
    void refusesATimeThatIsNone() {
        assertThatThrownBy(() -> MOVING.withMoveUp(Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("below 1 ms");
        assertThat(LadderOptions.DEFAULTS.moveUp()).isNull();
        assertThat(MOVING.withNeeds()
                        .withMinimumRung("soft")
                        .withHedgeDelay(Duration.ofMillis(1))
                        .moveUp())
                .isEqualTo(Duration.ofMillis(5));
    }
}
