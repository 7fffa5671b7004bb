package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelOption;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.service.Metadata;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.RequestException;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RateLimitedLog;

/** RdmaServer and RdmaClient where something is too much, cannot be sent, or has ended. */
public abstract class ShortFormLimitsSuite extends ApiSuite {

    private RdmaServer serve(MessageHandler handler) {
        return RdmaServer.builder().group(group).bind(host(), 0, handler);
    }

    private RdmaClient client(RdmaServer server) {
        return RdmaClient.builder().group(group).connect(host(), server.port());
    }

    // ---- replies

    @Test
    void aReplyThatCannotBeSentFailsItsRequest() {
        int limitBytes = 20_000;
        BlockingQueue<Throwable> atServer = new LinkedBlockingQueue<>();
        MessageHandler fails = (exchange, message) -> {
            switch (message.readByte()) {
                case 0 ->
                    exchange.reply(Unpooled.buffer().writeZero(limitBytes + 100))
                            .addListener(sent -> {
                                if (sent.cause() != null) {
                                    atServer.add(sent.cause());
                                }
                            });
                case 1 -> exchange.reply((ByteBuf) null);
                case 2 -> {
                    ByteBuf released = Unpooled.buffer(10).writeZero(10);
                    released.release();
                    exchange.reply(released);
                }
                case 3 -> exchange.reply((byte[]) null);
                default -> exchange.reply(message.retain());
            }
        };
        long beganNanos = System.nanoTime();
        try (LoggedWarnings logged = new LoggedWarnings(Messenger.class.getName())) {
            for (boolean virtual : new boolean[] {false, true}) {
                try (RdmaServer server = RdmaServer.builder()
                                .group(group)
                                .virtualThreads(virtual)
                                .bind(host(), 0, fails);
                        RdmaClient client = RdmaClient.builder()
                                .group(group)
                                .requestTimeout(Duration.ofHours(1))
                                .option(RdmaChannelOption.MAX_MESSAGE_BYTES, limitBytes)
                                .connect(host(), server.port())) {
                    for (int i = 0; i < 50; i++) {
                        for (byte kind = 0; kind < 4; kind++) {
                            assertThat(failure("request " + kind, client.request(new byte[] {kind, 1})))
                                    .isInstanceOf(RequestException.Failed.class);
                        }
                    }
                    // Another test of this process may have used up this second.
                    Patience.until("it is logged", () -> {
                        failure("request", client.request(new byte[] {1, 1}));
                        return !logged.texts().isEmpty();
                    });
                    assertThat(Patience.take("the reply's failure", atServer))
                            .isInstanceOfSatisfying(
                                    MessageTooLargeException.class,
                                    cause -> assertThat(cause.lengthBytes()).isEqualTo(limitBytes + 100));
                    assertThat(Patience.await("a reply", client.request(new byte[] {9, 1, 2})))
                            .containsExactly(1, 2);
                }
            }
            long periods = 1 + (System.nanoTime() - beganNanos) / RateLimitedLog.PERIOD_NANOS;
            assertThat(logged.texts())
                    .as("of two servers")
                    .hasSizeBetween(2, 2 * (int) (periods * RateLimitedLog.LINES_PER_PERIOD));
        }
    }

    /** What a reply is too many is never sent as something else. */
    @Test
    void onlyRequestsAreAnsweredAndOnce() {
        BlockingQueue<Throwable> faults = new LinkedBlockingQueue<>();
        BlockingQueue<String> atClient = new LinkedBlockingQueue<>();
        MessageHandler twice = (exchange, message) -> {
            if (exchange.isRequest()) {
                exchange.reply("the reply".getBytes(UTF_8));
            }
            exchange.reply("too many".getBytes(UTF_8)).whenComplete((sent, fault) -> faults.add(fault));
            exchange.reply(Unpooled.copiedBuffer("too many", UTF_8)).addListener(sent -> faults.add(sent.cause()));
            exchange.send("a message".getBytes(UTF_8));
        };
        for (boolean virtual : new boolean[] {false, true}) {
            try (LoggedWarnings logged = new LoggedWarnings(Messenger.class.getName());
                    RdmaServer server = RdmaServer.builder()
                            .group(group)
                            .virtualThreads(virtual)
                            .bind(host(), 0, twice);
                    RdmaClient client = RdmaClient.builder()
                            .group(group)
                            .onMessage((exchange, message) -> atClient.add(message.toString(UTF_8)))
                            .connect(host(), server.port())) {
                assertThat(Patience.await("the reply", client.request(new byte[1])))
                        .isEqualTo("the reply".getBytes(UTF_8));
                client.send(new byte[1]);
                for (int i = 0; i < 4; i++) {
                    assertThat(Patience.take("a fault", faults)).isInstanceOf(IllegalStateException.class);
                }
                for (int i = 0; i < 2; i++) {
                    assertThat(Patience.take("a message", atClient)).isEqualTo("a message");
                }
                assertThat(client.lateReplies()).isZero();
                assertThat(atClient).isEmpty();
                assertThat(logged.texts()).isNotEmpty();
            }
        }
    }

    /** As Netty's allocators do when there is no direct memory left. */
    @Test
    void memoryThatIsNotThereFailsTheFuture() {
        class Empty extends PooledByteBufAllocator {
            private volatile boolean isEmpty;

            Empty() {
                super(true);
            }

            @Override
            protected ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
                if (isEmpty && initialCapacity > 1000) {
                    throw new OutOfMemoryError("for a test");
                }
                return super.newDirectBuffer(initialCapacity, maxCapacity);
            }
        }
        Empty ofClient = new Empty();
        Empty ofServer = new Empty();
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .option(ChannelOption.ALLOCATOR, ofServer)
                        .bind(host(), 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .option(ChannelOption.ALLOCATOR, ofClient)
                        .connect(host(), server.port())) {
            ofClient.isEmpty = true;
            assertThat(failure("a send", client.send(new byte[5000]))).isInstanceOf(OutOfMemoryError.class);
            assertThat(failure("a request", client.request(new byte[5000]))).isInstanceOf(OutOfMemoryError.class);
            ofClient.isEmpty = false;
            ofServer.isEmpty = true;
            assertThat(failure("a request without a reply", client.request(new byte[5000])))
                    .isInstanceOf(RequestException.Failed.class);
            ofServer.isEmpty = false;
            assertThat(Patience.await("a reply", client.request(new byte[5000])))
                    .hasSize(5000);
        }
    }

    @Test
    void requestsOfAConnectionThatIsGoneAreNotBegun() {
        AtomicInteger begun = new AtomicInteger();
        Semaphore turns = new Semaphore(0);
        MessageHandler blocks = (exchange, message) -> {
            begun.incrementAndGet();
            turns.acquire();
        };
        long before = group.providerStatistics().abandonedRequests();
        try (RdmaServer server = RdmaServer.builder()
                .group(group)
                .virtualThreads(true)
                .maxHandlers(1, 1000)
                .bind(host(), 0, blocks)) {
            RdmaClient client = client(server);
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                requests.add(client.request(new byte[] {1}));
            }
            Patience.until("one is begun", () -> begun.get() == 1);
            settle(client.channel(), server.connections().iterator().next());
            client.close();
            Patience.until("the connection is gone", () -> server.connections().isEmpty());
            turns.release(1000);
            Patience.until("the others are dropped", () -> server.abandonedRequests() == 99);
            Patience.until("all are counted", () -> group.providerStatistics().abandonedRequests() >= before + 99);
            assertThat(begun).hasValue(1);
            assertThat(group.providerStatistics().abandonedRequests()).isEqualTo(before + 99);
            requests.forEach(
                    request -> assertThat(failure("a request", request)).isInstanceOf(ConnectionException.class));
        }
    }

    // ---- what programs write to the channels

    @Test
    void whatIsWrittenToAChannelIsAMessage() {
        BlockingQueue<String> atServer = new LinkedBlockingQueue<>();
        BlockingQueue<String> atClients = new LinkedBlockingQueue<>();
        List<RdmaClient> clients = new ArrayList<>();
        try (RdmaServer server = RdmaServer.builder()
                .group(group)
                .onConnect(channel -> channel.writeAndFlush(Unpooled.copiedBuffer("welcome", UTF_8)))
                .bind(host(), 0, (exchange, message) -> atServer.add(message.toString(UTF_8)))) {
            for (int i = 0; i < 3; i++) {
                clients.add(RdmaClient.builder()
                        .group(group)
                        .onMessage((exchange, message) -> atClients.add(message.toString(UTF_8)))
                        .connect(host(), server.port()));
                assertThat(Patience.take("the token", atClients)).isEqualTo("welcome");
            }
            for (String text : List.of("news", "\0\0\0\0\0\0\0\0\0 zeros", "x".repeat(5000), "")) {
                done("the broadcast", server.connections().writeAndFlush(Unpooled.copiedBuffer(text, UTF_8)));
                for (int i = 0; i < clients.size(); i++) {
                    assertThat(Patience.take("the broadcast", atClients)).isEqualTo(text);
                }
                done("a write", clients.get(0).channel().writeAndFlush(Unpooled.copiedBuffer(text, UTF_8)));
                assertThat(Patience.take("what was written", atServer)).isEqualTo(text);
            }
            assertThat(failure("no buffer", clients.get(0).channel().writeAndFlush("a text")))
                    .isInstanceOf(UnsupportedOperationException.class);
            for (ChannelFuture refused : server.connections().writeAndFlush("a text")) {
                assertThat(failure("no buffer", refused)).isInstanceOf(UnsupportedOperationException.class);
            }
            assertThat(server.connections().size()).isEqualTo(3);
        } finally {
            clients.forEach(RdmaClient::close);
        }
    }

    @Test
    void theProgramsAutoReadIsItsOwn() {
        BlockingQueue<RdmaChannel> accepted = new LinkedBlockingQueue<>();
        AtomicInteger handled = new AtomicInteger();
        AtomicInteger pushed = new AtomicInteger();
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .onConnect(channel -> {
                            channel.config().setAutoRead(false);
                            accepted.add(channel);
                        })
                        .bind(host(), 0, (exchange, message) -> handled.incrementAndGet());
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .onMessage((exchange, message) -> pushed.incrementAndGet())
                        .connect(host(), server.port())) {
            RdmaChannel channel = Patience.take("the connection", accepted);
            int count = 1000;
            channel.eventLoop().execute(() -> {
                for (int i = 0; i < count; i++) { // more than it takes to be unwritable, and writable again
                    channel.writeAndFlush(channel.alloc().buffer(1000).writeZero(1000));
                }
            });
            client.send(new byte[10]);
            Patience.until("all of it comes", () -> pushed.get() == count && channel.isWritable());
            settle(client.channel(), channel);
            assertThat(channel.config().isAutoRead()).isFalse();
            assertThat(handled).hasValue(0);
            channel.config().setAutoRead(true);
            Patience.until("the message is handled", () -> handled.get() == 1);
        }
    }

    @Test
    void strangersDoNotFloodTheLog() {
        try (LoggedWarnings logged = new LoggedWarnings("org.verbena");
                RdmaServer server = serve((exchange, message) -> {})) {
            for (int i = 0; i < 3 * RateLimitedLog.LINES_PER_PERIOD; i++) {
                RdmaChannel stranger = stranger(server);
                stranger.writeAndFlush(Unpooled.wrappedBuffer(new byte[] {1, 2, 3}));
                done("the server closing the connection", stranger.closeFuture());
            }
            assertThat(logged.texts()).hasSizeBetween(1, RateLimitedLog.LINES_PER_PERIOD);
        }
    }

    /** Each peer makes the handler fail: once, since one limit a connection would be none. */
    @Test
    void handlersThatPeersMakeFailDoNotFloodTheLog() {
        MessageHandler fails = (exchange, message) -> {
            throw new IllegalStateException("for a test");
        };
        for (boolean virtual : new boolean[] {false, true}) {
            long beganNanos = System.nanoTime();
            try (LoggedWarnings logged = new LoggedWarnings("org.verbena");
                    RdmaServer server = RdmaServer.builder()
                            .group(group)
                            .virtualThreads(virtual)
                            .bind(host(), 0, fails)) {
                for (int i = 0; i < 3 * RateLimitedLog.LINES_PER_PERIOD; i++) {
                    try (RdmaClient client = client(server)) {
                        assertThat(failure("a request", client.request(new byte[1])))
                                .isInstanceOf(RequestException.Failed.class);
                    }
                }
                int periods = (int) (1 + (System.nanoTime() - beganNanos) / RateLimitedLog.PERIOD_NANOS);
                assertThat(logged.texts()).hasSizeBetween(1, periods * RateLimitedLog.LINES_PER_PERIOD);
                assertThat(logged.stacks()).isBetween(1, periods);
            }
        }
    }

    /** A client whose server breaks the rules connects again and again. */
    @Test
    void aServerDoesNotFloodItsClientsLog() {
        long beganNanos = System.nanoTime();
        try (LoggedWarnings logged = new LoggedWarnings("org.verbena");
                Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .backOff(Duration.ofMillis(1), Duration.ofMillis(1))
                        .connect(host(), server.address().getPort())) {
            for (int i = 0; i < 3 * RateLimitedLog.LINES_PER_PERIOD; i++) {
                RdmaChannel accepted = server.next();
                accepted.writeAndFlush(Unpooled.wrappedBuffer(new byte[] {1, 2, 3}));
                done("the client closing", accepted.closeFuture());
            }
            int periods = (int) (1 + (System.nanoTime() - beganNanos) / RateLimitedLog.PERIOD_NANOS);
            assertThat(logged.texts().stream().filter(line -> line.contains(Messenger.class.getName())))
                    .hasSizeBetween(1, periods * RateLimitedLog.LINES_PER_PERIOD);
            assertThat(client.lateReplies()).isZero();
        }
    }

    // ---- limits

    @Test
    void aSenderThatIsTooFastIsRefused() {
        BlockingQueue<RdmaChannel> accepted = new LinkedBlockingQueue<>();
        int messages = 100;
        int bytes = 2000; // shorter ones share frames, and so do not run out of credits
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .onConnect(channel -> {
                            channel.config().setAutoRead(false);
                            accepted.add(channel);
                        })
                        .option(RdmaChannelOption.RECEIVE_DEPTH, 8)
                        .bind(host(), 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .maxPending(messages, 400_000)
                        .connect(host(), server.port())) {
            RdmaChannel server0 = Patience.take("the connection", accepted);
            List<Future<Void>> sends = new ArrayList<>();
            sendUntilRefused(client, bytes, sends);
            // What has credits leaves, and makes room for as many more.
            Patience.until("no more leave", () -> client.channel().statistics().credits() == 0);
            SendLimitException refused;
            int before;
            do {
                before = sends.size();
                settle(client.channel(), server0);
                refused = sendUntilRefused(client, bytes, sends);
            } while (sends.size() > before);
            assertThat(refused.pendingMessages()).isEqualTo(messages);
            assertThat(refused.pendingBytes()).isEqualTo((long) messages * bytes);
            assertThat(failure("a request", client.request(new byte[1]))).isInstanceOf(SendLimitException.class);
            assertThat(failure("a request", client.request(Unpooled.wrappedBuffer(new byte[1]))))
                    .isInstanceOf(SendLimitException.class);
            assertThat(failure("a message", client.send(new byte[1]))).isInstanceOf(SendLimitException.class);

            server0.config().setAutoRead(true);
            sends.forEach(send -> done("a send", send));
            assertThat(Patience.await("a reply", client.request(new byte[100_000])))
                    .hasSize(100_000);

            server0.config().setAutoRead(false);
            settle(client.channel(), server0);
            sends.clear();
            SendLimitException tooLong = sendUntilRefused(client, 100_000, sends);
            assertThat(tooLong.pendingBytes()).isBetween(300_001L, 400_000L);
            assertThat(tooLong.pendingMessages()).isLessThan(messages);
            server0.config().setAutoRead(true);
            sends.forEach(send -> done("a send", send));
            assertThat(Patience.await("a reply", client.request(new byte[1]))).hasSize(1);
        }
        assertThatThrownBy(() -> RdmaClient.builder().maxPending(0, 1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> RdmaServer.builder().maxPending(1, 0)).isInstanceOf(IllegalArgumentException.class);
    }

    /** Returns why; the sends that were not refused go into the list. */
    private static SendLimitException sendUntilRefused(RdmaClient client, int bytes, List<Future<Void>> sends) {
        for (int i = 0; i < 100_000; i++) {
            ByteBuf message = Unpooled.wrappedBuffer(new byte[bytes]);
            Future<Void> send = client.send(message);
            if (send.isDone() && send.cause() instanceof SendLimitException refused) {
                assertThat(message.refCnt()).isZero();
                return refused;
            }
            sends.add(send);
        }
        throw new AssertionError("100000 messages, and none refused");
    }

    @Test
    void theLongestMessageIsOfTheUsersBytes() {
        int limitBytes = 100_000;
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .option(RdmaChannelOption.MAX_MESSAGE_BYTES, limitBytes)
                        .bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .option(RdmaChannelOption.MAX_MESSAGE_BYTES, limitBytes)
                        .connect(host(), server.port())) {
            assertThat(Patience.await("a reply", client.request(new byte[limitBytes])))
                    .hasSize(limitBytes);
            Patience.await("a message", client.send(new byte[limitBytes]));
            for (CompletableFuture<?> longer :
                    List.of(client.request(new byte[limitBytes + 1]), client.send(new byte[limitBytes + 1]))) {
                assertThat(failure("one byte more", longer))
                        .isInstanceOfSatisfying(MessageTooLargeException.class, tooLarge -> {
                            assertThat(tooLarge.lengthBytes()).isEqualTo(limitBytes + 1);
                            assertThat(tooLarge.limitBytes()).isEqualTo(limitBytes);
                        });
            }
            RequestOptions more = RequestOptions.DEFAULTS.withMetadata(Metadata.EMPTY.with("tenant", "blue"));
            assertThat(Patience.await("a reply", client.request(new byte[limitBytes - 13], more)))
                    .hasSize(limitBytes - 13);
            assertThat(failure("a request with metadata", client.request(new byte[limitBytes - 12], more)))
                    .isInstanceOfSatisfying(MessageTooLargeException.class, tooLarge -> {
                        assertThat(tooLarge.lengthBytes()).isEqualTo(limitBytes + 1);
                        assertThat(tooLarge.limitBytes()).isEqualTo(limitBytes);
                    });
        }
    }

    @Test
    void requestsWithoutRepliesHaveABound() {
        BlockingQueue<Exchange> kept = new LinkedBlockingQueue<>();
        try (RdmaServer server =
                        RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> kept.add(exchange));
                RdmaClient client =
                        RdmaClient.builder().group(group).maxRequests(3).connect(host(), server.port())) {
            List<CompletableFuture<byte[]>> three = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                three.add(client.request(new byte[1]));
            }
            assertThat(failure("the fourth", client.request(new byte[1])))
                    .isInstanceOfSatisfying(
                            SendLimitException.class,
                            limit -> assertThat(limit.pendingMessages()).isEqualTo(3));
            Patience.take("the first", kept).reply(new byte[2]);
            assertThat(Patience.await("its reply", three.getFirst())).hasSize(2);
            CompletableFuture<byte[]> next = client.request(new byte[1]);
            for (int i = 0; i < 3; i++) {
                Patience.take("one more", kept).reply(new byte[2]);
            }
            assertThat(Patience.await("the reply", next)).hasSize(2);
        }
    }

    @Test
    void aClientWaitsUntilItIsWritable() {
        CountDownLatch reads = new CountDownLatch(1);
        MessageHandler slow = (exchange, message) -> Patience.await("the test", CompletableFuture.runAsync(() -> {
            try {
                reads.await();
            } catch (InterruptedException end) {
                throw new IllegalStateException(end);
            }
        }));
        RdmaEventLoopGroup own = new RdmaEventLoopGroup(provider(), 1);
        try (own;
                RdmaServer server = RdmaServer.builder().group(own).bind(host(), 0, slow);
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            Patience.await("it is writable", client.whenWritable());
            List<CompletableFuture<Void>> sent = new ArrayList<>();
            Patience.until("it is not writable", () -> {
                sent.add(client.send(new byte[100_000]));
                return !client.isWritable();
            });
            CompletableFuture<Void> writable = client.whenWritable();
            CompletableFuture<Void> cancelled = client.whenWritable();
            cancelled.cancel(false);
            settle(client.channel(), client.channel());
            assertThat(writable).isNotDone();
            reads.countDown();
            Patience.await("it is writable again", writable);
            sent.forEach(each -> Patience.await("a send", each));
        }
        RdmaClient closed = null;
        try (RdmaServer server = serve((exchange, message) -> {})) {
            closed = RdmaClient.builder().group(group).connect(host(), server.port());
        }
        closed.close();
        assertThat(failure("a closed client", closed.whenWritable())).isInstanceOf(ConnectionException.class);
    }

    // ---- ends

    /** Its loop has ended by then, which calls no listeners. */
    @Test
    void listenersAreCalledAfterTheEnd() {
        try (RdmaServer server = serve((exchange, message) -> {})) {
            RdmaClient client = RdmaClient.builder().provider(provider()).connect(host(), server.port());
            BlockingQueue<Throwable> told = new LinkedBlockingQueue<>();
            Future<ByteBuf> waiting = client.request(Unpooled.wrappedBuffer(new byte[1]));
            client.close();
            List<Future<?>> futures = List.of(
                    waiting,
                    client.request(Unpooled.wrappedBuffer(new byte[1])),
                    client.send(Unpooled.wrappedBuffer(new byte[1])));
            for (Future<?> future : futures) {
                future.addListener(done -> told.add(done.cause()));
                assertThat(Patience.take("the listener", told)).isInstanceOf(ConnectionException.class);
            }
            BlockingQueue<Throwable> staged = new LinkedBlockingQueue<>();
            client.send(new byte[1]).whenComplete((sent, cause) -> staged.add(cause));
            assertThat(Patience.take("the stage", staged)).isInstanceOf(ConnectionException.class);
        }
    }

    /** Whatever ends the connection or cancels: each future completes once, and calls each listener once. */
    @Test
    void everyFutureHasOneOutcome() throws Exception {
        long seed = new Random().nextLong();
        System.out.println("everyFutureHasOneOutcome: seed " + seed);
        Random random = new Random(seed);
        for (int round = 0; round < 24; round++) {
            endAtRandom(round % 6, new Random(random.nextLong()), "seed " + seed + ", round " + round);
        }
    }

    private void endAtRandom(int end, Random random, String what) throws Exception {
        boolean virtual = random.nextBoolean();
        MessageHandler handler = (exchange, message) -> {
            if (exchange.isRequest() && message.isReadable() && message.getByte(message.readerIndex()) % 3 != 0) {
                exchange.reply(message.retain());
            }
        };
        RdmaEventLoopGroup own = new RdmaEventLoopGroup(provider(), 1);
        RdmaServer server =
                RdmaServer.builder().group(group).virtualThreads(virtual).bind(host(), 0, handler);
        RdmaClient client =
                RdmaClient.builder().group(own).maxPending(300, 1 << 20).connect(host(), server.port());
        ConcurrentLinkedQueue<Watched> all = new ConcurrentLinkedQueue<>();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 3; t++) {
            long seed = random.nextLong();
            threads.add(Thread.ofPlatform().start(() -> {
                Random mine = new Random(seed);
                for (int i = 0; i < 150; i++) {
                    all.add(begin(client, mine));
                }
            }));
        }
        int enough = random.nextInt(3 * 150);
        while (all.size() < enough) {
            Thread.onSpinWait();
        }
        switch (end) {
            case 0 -> client.close();
            case 1 -> client.closeAsync();
            case 2 -> own.shutdownGracefully(0, 0, TimeUnit.MILLISECONDS);
            case 3 -> server.connections().close();
            case 4 -> client.channel().deregister();
            default -> server.close();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        client.close();
        server.close();
        own.close();
        for (Watched watched : all) {
            Patience.until(what + ": " + watched.name + " has its outcome", () -> watched.outcomes.get() > 0);
        }
        Patience.turns(group.next());
        assertThat(all).as(what).allMatch(watched -> watched.outcomes.get() == 1);
    }

    /** An operation and how often its listener was called. */
    private record Watched(String name, AtomicInteger outcomes) {}

    private static Watched begin(RdmaClient client, Random random) {
        AtomicInteger outcomes = new AtomicInteger();
        byte[] bytes = new byte[random.nextInt(random.nextInt(10) == 0 ? 20_000 : 100)];
        random.nextBytes(bytes);
        int kind = random.nextInt(4);
        boolean cancels = random.nextInt(5) == 0;
        if (kind < 2) {
            ByteBuf message = Unpooled.wrappedBuffer(bytes);
            Future<?> future = kind == 0 ? client.send(message) : client.request(message);
            future.addListener(done -> {
                outcomes.incrementAndGet();
                if (done.isSuccess()) {
                    ReferenceCountUtil.release(done.getNow());
                }
            });
            if (cancels) {
                future.cancel(false);
            }
        } else {
            CompletableFuture<?> future =
                    kind == 2 ? client.send(bytes) : client.request(bytes, Duration.ofMillis(1 + random.nextInt(50)));
            future.whenComplete((value, cause) -> outcomes.incrementAndGet());
            if (cancels) {
                future.cancel(false);
            }
        }
        return new Watched((kind % 2 == 0 ? "a send" : "a request") + (cancels ? " that is cancelled" : ""), outcomes);
    }
}
