package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledHeapByteBuf;
import io.netty.util.IllegalReferenceCountException;
import io.netty.util.concurrent.BlockingOperationException;
import io.netty.util.concurrent.Future;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.ProtocolException;
import org.verbena.transport.RequestException;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.UnusedPort;

/** RdmaServer and RdmaClient. */
public abstract class ShortFormSuite extends ApiSuite {

    private RdmaServer serve(MessageHandler handler) {
        return RdmaServer.builder().provider(provider()).threadsPerProvider(2).bind(host(), 0, handler);
    }

    private RdmaClient client(RdmaServer server) {
        return RdmaClient.builder().provider(provider()).connect(host(), server.port());
    }

    @Test
    void echoesInThreeLines() throws Exception {
        try (RdmaServer server = serve((exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = client(server)) {
            for (int size : new int[] {0, 1, 64, 2047, 2048, 2049, 16_384, 100_000, 1 << 20}) {
                byte[] reply =
                        client.request(patternBytes(size, size)).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
                assertThat(reply).isEqualTo(patternBytes(size, size));
            }
            assertThat(client.provider()).isEqualTo(provider());
            assertThat(server.connections().size()).isEqualTo(1);
        }
    }

    @Test
    void matchesRepliesToRequestsInAnyOrder() throws Exception {
        List<Runnable> replies = new ArrayList<>();
        CountDownLatch all = new CountDownLatch(100);
        MessageHandler later = (exchange, message) -> {
            ByteBuf kept = message.retain();
            synchronized (replies) {
                replies.add(() -> exchange.reply(kept));
            }
            all.countDown();
        };
        try (RdmaServer server = serve(later);
                RdmaClient client = client(server)) {
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                requests.add(client.request(patternBytes(50, i)));
            }
            assertThat(all.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)).isTrue();
            synchronized (replies) {
                replies.reversed().forEach(Runnable::run);
            }
            for (int i = 0; i < 100; i++) {
                assertThat(requests.get(i).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                        .isEqualTo(patternBytes(50, i));
            }
            assertThat(client.lateReplies()).isZero();
        }
    }

    /**
     * Byte for byte what clients send and expect: a kind, seven bytes that say which request, the time of a request,
     * and the payload.
     */
    @Test
    void theHeaderHasNotChanged() {
        MessageHandler handler = (exchange, message) -> {
            switch (message.readableBytes()) {
                case 0 -> throw new IllegalStateException("the failure");
                default -> {
                    if (exchange.isRequest()) {
                        exchange.reply(message.retain());
                    } else {
                        exchange.send(message.retain());
                    }
                }
            }
        };
        try (RdmaServer server =
                RdmaServer.builder().group(group).discloseErrors(true).bind(host(), 0, handler)) {
            RdmaChannel client = stranger(server);
            String failure = HexFormat.of()
                    .formatHex("java.lang.IllegalStateException: the failure".getBytes(StandardCharsets.UTF_8));
            for (String[] exchange : new String[][] {
                {"00 00000000000000 68656c6c6f", "00 00000000000000 68656c6c6f"},
                {"04 01020304050607 ffffffff 68656c6c6f", "02 01020304050607 68656c6c6f"},
                {"04 00000000000009 ffffffff", "03 00000000000009" + failure}
            }) {
                client.writeAndFlush(Unpooled.wrappedBuffer(HexFormat.of().parseHex(exchange[0].replace(" ", ""))));
                assertThat(HexFormat.of().formatHex(inbox(client).next())).isEqualTo(exchange[1].replace(" ", ""));
            }
            done("closing", client.close());
        }
    }

    @Test
    void aPeerThatDoesNotUseTheShortFormIsCutOffWithAReason() {
        BlockingQueue<String> logged = new LinkedBlockingQueue<>();
        AppenderBase<ILoggingEvent> appender = new AppenderBase<>() {
            @Override
            protected void append(ILoggingEvent event) {
                if (event.getLevel() == Level.WARN) {
                    logged.add(event.getFormattedMessage());
                }
            }
        };
        Logger logger = (Logger) LoggerFactory.getLogger(RdmaServerChannel.class);
        appender.start();
        logger.addAppender(appender);
        try (RdmaServer server = serve((exchange, message) -> {})) {
            for (byte[] message :
                    new byte[][] {{'h', 'e', 'l', 'l', 'o'}, {9, 0, 0, 0, 0, 0, 0, 0}, {4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}
                    }) {
                RdmaChannel client = stranger(server);
                client.writeAndFlush(Unpooled.wrappedBuffer(message));
                done("the server closing the connection", client.closeFuture());
                assertThat(Patience.take("a warning", logged))
                        .contains(
                                switch (message[0]) {
                                    case 9 -> "of kind 9";
                                    case 4 -> "of kind 4 and 11 bytes";
                                    default -> "of 5 bytes";
                                })
                        .contains("not from an RdmaClient or RdmaServer");
            }
        } finally {
            logger.detachAppender(appender);
        }
    }

    @Test
    void aPlainChannelIsRefusedInTheHandshake() {
        BlockingQueue<RdmaChannel> connected = new LinkedBlockingQueue<>();
        try (LoggedWarnings logged = new LoggedWarnings(RdmaServerChannel.class.getName());
                RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .onConnect(connected::add)
                        .bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()));
                Server plain = listen()) {
            failure("a plain channel", bootstrap().connect(server.localAddress()));
            Patience.until("the operator can read why", () -> !logged.texts().isEmpty());
            assertThat(connected).isEmpty();
            assertThatThrownBy(() -> RdmaClient.builder()
                            .group(group)
                            .failFast()
                            .connect(host(), plain.address().getPort()))
                    .satisfies(refused -> assertThat(Stream.concat(
                                    Stream.of(refused), Stream.of(refused.getSuppressed()))) // of a ladder's rungs
                            .hasAtLeastOneElementOfType(ProtocolException.class));
            try (RdmaClient client = client(server)) {
                assertThat(Patience.await("a reply", client.request(new byte[3])))
                        .hasSize(3);
            }
        }
    }

    @Test
    void aRequestWhoseTimeIsOverIsNotHandled() throws Exception {
        BlockingQueue<RdmaChannel> accepted = new LinkedBlockingQueue<>();
        BlockingQueue<String> handled = new LinkedBlockingQueue<>();
        MessageHandler notes = MessageHandler.ofBytes((exchange, message) -> {
            handled.add(new String(message, StandardCharsets.UTF_8));
            exchange.reply(message);
        });
        for (boolean virtual : new boolean[] {false, true}) {
            try (RdmaServer server = RdmaServer.builder()
                            .group(group)
                            .virtualThreads(virtual)
                            .onConnect(accepted::add)
                            .bind(host(), 0, notes);
                    RdmaClient client = client(server)) {
                RdmaChannel channel = Patience.take("the connection", accepted);
                long before = group.providerStatistics().expiredRequests();
                channel.config().setAutoRead(false);
                settle(client.channel(), channel);
                long frames = channel.statistics().framesReceived();
                CompletableFuture<byte[]> late =
                        client.request("late".getBytes(StandardCharsets.UTF_8), Duration.ofMillis(50));
                CompletableFuture<byte[]> patient = client.request("patient".getBytes(StandardCharsets.UTF_8));
                Patience.until(
                        "both requests arrive", () -> channel.statistics().framesReceived() >= frames + 2);
                Patience.timer(channel.eventLoop(), Duration.ofMillis(51)); // from its arrival on
                channel.config().setAutoRead(true);
                assertThat(Patience.await("a reply", patient)).hasSize(7);
                assertThat(Patience.take("what is handled", handled)).isEqualTo("patient");
                assertThat(handled).isEmpty();
                assertThat(catchThrowable(() -> late.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)))
                        .hasCauseInstanceOf(RequestException.TimedOut.class);
                // On virtual threads the other request's handler may be first.
                Patience.until("it is counted", () -> group.providerStatistics().expiredRequests() > before);
                assertThat(server.expiredRequests()).isEqualTo(1);
                assertThat(group.providerStatistics().expiredRequests()).isEqualTo(before + 1);
                assertThat(client.lateReplies()).isZero();
            }
        }
    }

    @Test
    void aHandlerKnowsHowLongItsClientWaits() {
        BlockingQueue<Long> remaining = new LinkedBlockingQueue<>();
        AtomicLong passedNanos = new AtomicLong();
        MessageHandler notes = (exchange, message) -> {
            remaining.add(exchange.remainingNanos());
            long beganNanos = System.nanoTime();
            while (System.nanoTime() == beganNanos) {
                Thread.onSpinWait();
            }
            passedNanos.set(System.nanoTime() - beganNanos);
            remaining.add(exchange.remainingNanos());
            remaining.add(exchange.remaining(Duration.ofHours(1)).toNanos());
            remaining.add(exchange.remaining(Duration.ofMillis(1)).toNanos());
            exchange.reply(message.retain());
        };
        for (boolean virtual : new boolean[] {false, true}) {
            try (RdmaServer server = RdmaServer.builder()
                            .group(group)
                            .virtualThreads(virtual)
                            .bind(host(), 0, notes);
                    RdmaClient client = client(server)) {
                long timeNanos = Duration.ofMinutes(5).toNanos();
                Patience.await("a reply", client.request(new byte[3], Duration.ofNanos(timeNanos)));
                long first = Patience.take("the time at first", remaining);
                long second = Patience.take("the time after it", remaining);
                assertThat(first).isPositive().isLessThanOrEqualTo(timeNanos);
                assertThat(second).isPositive().isLessThanOrEqualTo(first - passedNanos.get());
                assertThat(Patience.take("a timeout", remaining)).isPositive().isLessThanOrEqualTo(second);
                assertThat(Patience.take("a timeout", remaining)).isEqualTo(1_000_000);

                Patience.await("a reply", client.request(new byte[3], Duration.ofHours(2)));
                assertThat(Patience.take("more than fits", remaining)).isEqualTo(Long.MAX_VALUE);
                assertThat(Patience.take("the same", remaining)).isEqualTo(Long.MAX_VALUE);
                assertThat(Patience.take("the most", remaining))
                        .isEqualTo(Duration.ofHours(1).toNanos());
                remaining.clear();

                client.send(new byte[3]);
                assertThat(Patience.take("no request", remaining)).isEqualTo(Long.MAX_VALUE);
                for (int i = 0; i < 3; i++) {
                    Patience.take("the rest", remaining);
                }
            }
        }
    }

    @Test
    void sendsMessagesBothWays() {
        BlockingQueue<String> atClient = new LinkedBlockingQueue<>();
        BlockingQueue<String> atServer = new LinkedBlockingQueue<>();
        MessageHandler twice = (exchange, message) -> {
            String text = message.toString(StandardCharsets.UTF_8);
            atServer.add(text + exchange.isRequest());
            byte[] first = (text + "1").getBytes(StandardCharsets.UTF_8);
            if (exchange.isRequest()) {
                exchange.reply(first);
            } else {
                exchange.send(first);
            }
            exchange.send((text + "2").getBytes(StandardCharsets.UTF_8));
        };
        try (RdmaServer server = serve(twice);
                RdmaClient client = RdmaClient.builder()
                        .provider(provider())
                        .onMessage((exchange, message) -> atClient.add(message.toString(StandardCharsets.UTF_8)))
                        .connect(host(), server.port())) {
            client.send("a".getBytes(StandardCharsets.UTF_8));
            assertThat(Patience.take("a message", atServer)).isEqualTo("afalse");
            assertThat(Patience.take("an answer", atClient)).isEqualTo("a1");
            assertThat(Patience.take("an answer", atClient)).isEqualTo("a2");
            byte[] reply = Patience.await("the reply", client.request("b".getBytes(StandardCharsets.UTF_8)));
            assertThat(reply).asString(StandardCharsets.UTF_8).isEqualTo("b1");
            assertThat(Patience.take("a message", atServer)).isEqualTo("btrue");
            assertThat(Patience.take("what follows the reply", atClient)).isEqualTo("b2");
        }
    }

    @Test
    void worksFromVirtualThreads() throws Exception {
        try (RdmaServer server = serve((exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = client(server)) {
            AtomicInteger right = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int t = 0; t < 50; t++) {
                int number = t;
                threads.add(Thread.ofVirtual().start(() -> {
                    for (int i = 0; i < 20; i++) {
                        byte[] bytes = patternBytes(10 + number * 30, i);
                        if (Arrays.equals(Patience.await("a reply", client.request(bytes)), bytes)) {
                            right.incrementAndGet();
                        }
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertThat(right).hasValue(50 * 20);
        }
    }

    @Test
    void aRequestTimesOutAndItsLateReplyIsCounted() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            CompletableFuture<byte[]> request = client.request(patternBytes(10, 1), Duration.ofMillis(50));
            assertThat(failure("the request", request))
                    .isInstanceOf(RequestException.TimedOut.class)
                    .hasMessageContaining("50 ms")
                    .hasMessageContaining(String.valueOf(server.address().getPort()));
            RdmaChannel atServer = server.next();
            reply(atServer, nextRequest(atServer));
            Patience.until("the late reply is counted", () -> client.lateReplies() == 1);
            CompletableFuture<byte[]> next = client.request(patternBytes(10, 2));
            reply(atServer, nextRequest(atServer));
            assertThat(Patience.await("the next reply", next)).isEqualTo(patternBytes(10, 2));
        }
    }

    @Test
    void everyRequestHasATimeoutOfItsOwn() throws Exception {
        CompletableFuture<Runnable> answerTheFirst = new CompletableFuture<>();
        MessageHandler onlyTheFirst = (exchange, message) -> {
            ByteBuf kept = message.retain();
            if (!answerTheFirst.complete(() -> exchange.reply(kept))) {
                kept.release();
            }
        };
        try (RdmaServer server = serve(onlyTheFirst);
                RdmaClient client = client(server)) {
            CompletableFuture<byte[]> patient = client.request(new byte[] {1}, Duration.ofSeconds(Long.MAX_VALUE));
            Runnable answer = answerTheFirst.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
            long start = System.nanoTime();
            CompletableFuture<byte[]> later = client.request(new byte[1], Duration.ofMillis(400));
            CompletableFuture<byte[]> sooner = client.request(new byte[1], Duration.ofMillis(50));
            for (CompletableFuture<byte[]> future : List.of(sooner, later)) {
                assertThat(failure("a request", future)).isInstanceOf(RequestException.TimedOut.class);
                if (future == sooner) {
                    assertThat(later.isDone() && System.nanoTime() - start < TimeUnit.MILLISECONDS.toNanos(400))
                            .isFalse();
                }
            }
            assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(400));
            assertThat(patient.isDone()).isFalse();
            answer.run();
            assertThat(patient.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .containsExactly(1);
        }
    }

    @Test
    void aCancelledRequestReleasesNothingEarly() throws Exception {
        try (RdmaServer server = serve((exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = client(server)) {
            int count = 200;
            int cancelled = 0;
            for (int i = 0; i < count; i++) {
                Future<ByteBuf> request = client.request(Unpooled.wrappedBuffer(patternBytes(20_000, i)));
                if (request.cancel(false)) {
                    cancelled++;
                } else {
                    request.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS).release();
                }
            }
            assertThat(cancelled).isPositive();
            byte[] bytes = patternBytes(20_000, 7);
            assertThat(client.request(bytes).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isEqualTo(bytes);
            assertThat(client.lateReplies()).isLessThanOrEqualTo(cancelled);
        }
    }

    @Test
    void aHandlersFailureIsTheRequestsFailureAndTellsThePeerNothing() {
        MessageHandler failing = (exchange, message) -> {
            if (message.readableBytes() == 3) {
                throw new IllegalArgumentException("not that");
            }
            throw new AssertionError("secret");
        };
        try (RdmaServer server = serve(failing);
                RdmaClient client = client(server)) {
            for (int bytes : new int[] {3, 4, 3}) {
                assertThat(failure("the request", client.request(new byte[bytes])))
                        .isInstanceOf(RequestException.Failed.class)
                        .hasMessageContaining("handler failed")
                        .hasMessageContaining("log")
                        .hasMessageNotContaining("not that")
                        .hasMessageNotContaining("secret")
                        .hasMessageNotContaining("Illegal")
                        .hasMessageNotContaining("Error");
            }
        }
    }

    @Test
    void aServerMayDescribeAHandlersFailure() {
        MessageHandler failing = (exchange, message) -> {
            throw new IllegalArgumentException("not that");
        };
        try (RdmaServer server = RdmaServer.builder()
                        .provider(provider())
                        .discloseErrors(true)
                        .bind(host(), 0, failing);
                RdmaClient client = client(server)) {
            assertThat(failure("the request", client.request(new byte[3])))
                    .isInstanceOf(RequestException.Failed.class)
                    .hasMessageContaining("IllegalArgumentException: not that");
        }
    }

    /** Netty reports that there is no direct memory left by an error. */
    @Test
    void anErrorWhileSendingFailsTheFutureAndReleasesTheMessage() throws Exception {
        try (RdmaServer server = RdmaServer.builder()
                        .provider(provider())
                        .bind(host(), 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
                RdmaClient client = client(server)) {
            ByteBuf sent = new Unreadable();
            assertThat(failure("a send", client.send(sent))).isInstanceOf(OutOfMemoryError.class);
            assertThat(sent.refCnt()).isZero();
            ByteBuf asked = new Unreadable();
            assertThat(failure("a request", client.request(asked))).isInstanceOf(OutOfMemoryError.class);
            assertThat(asked.refCnt()).isZero();
            assertThat(client.request(new byte[] {1}).get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .containsExactly(1);
        }
    }

    private static final class Unreadable extends UnpooledHeapByteBuf {
        Unreadable() {
            super(UnpooledByteBufAllocator.DEFAULT, 8, 8);
        }

        @Override
        public boolean hasArray() { // asked by who copies it
            throw new OutOfMemoryError("for a test");
        }
    }

    @Test
    void aHandlerThatForgetsToRetainIsTold() throws Exception {
        BlockingQueue<Throwable> told = new LinkedBlockingQueue<>();
        MessageHandler forgets = (exchange, message) -> {
            if (message.readableBytes() % 2 == 0) {
                message.release();
                return;
            }
            try {
                exchange.reply(message);
            } catch (IllegalStateException forgot) {
                told.add(forgot);
                throw forgot;
            }
        };
        try (RdmaServer server = RdmaServer.builder()
                        .provider(provider())
                        .discloseErrors(true)
                        .bind(host(), 0, forgets);
                RdmaClient client = client(server)) {
            for (int bytes : new int[] {1, 2, 5001, 5000, 3}) {
                assertThat(failure("a request of " + bytes + " bytes", client.request(new byte[bytes])))
                        .isInstanceOf(RequestException.Failed.class)
                        .hasMessageContaining("reply(message.retain())");
            }
            assertThat(told).hasSize(3);
            assertThat(client.channel().isActive()).isTrue();
        }
    }

    @Test
    void aMessageThatCannotBeSentFailsAtOnce() {
        try (RdmaServer server = serve((exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = client(server)) {
            ByteBuf released = Unpooled.buffer(10).writeZero(10);
            released.release();
            assertThat(failure("a released request", client.request(released)))
                    .isInstanceOf(IllegalReferenceCountException.class)
                    .hasMessageContaining("released");
            assertThat(failure("a released message", client.send(released)))
                    .isInstanceOf(IllegalReferenceCountException.class);
            assertThat(failure("no request", client.request((ByteBuf) null)))
                    .isInstanceOf(NullPointerException.class)
                    .hasMessageContaining("message");
            for (CompletableFuture<?> none : List.of(
                    client.request((byte[]) null),
                    client.request((ByteBuffer) null),
                    client.send((byte[]) null),
                    client.send((ByteBuffer) null),
                    RdmaFutures.toCompletable(client.send((ByteBuf) null)))) {
                assertThat(failure("nothing", none))
                        .isInstanceOf(NullPointerException.class)
                        .hasMessageContaining("the message is null");
            }
            assertThat(Patience.await("a reply", client.request(new byte[3]))).hasSize(3);
        }
    }

    @Test
    void speaksTheTypesOfTheJdk() throws Exception {
        MessageHandler bytes = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));
        MessageHandler buffers = MessageHandler.ofBuffer((exchange, message) -> {
            assertThat(message.isReadOnly()).isTrue();
            exchange.reply(message);
            assertThat(message.position()).as("the position stays").isZero();
        });
        for (MessageHandler handler : List.of(bytes, buffers)) {
            try (RdmaServer server = serve(handler);
                    RdmaClient client = client(server);
                    Arena arena = Arena.ofConfined()) {
                for (int size : new int[] {0, 1, 2048, 2049, 100_000, 1 << 20}) {
                    byte[] sent = patternBytes(size, size);
                    byte[] reused = sent.clone();
                    CompletableFuture<byte[]> reply = client.request(reused);
                    Arrays.fill(reused, (byte) 0); // it was copied
                    assertThat(Patience.await("a reply", reply)).isEqualTo(sent);

                    ByteBuffer direct = ByteBuffer.allocateDirect(size + 2).position(1);
                    direct.put(sent).flip().position(1);
                    CompletableFuture<ByteBuffer> answer = client.request(direct);
                    assertThat(direct.position()).as("the position stays").isOne();
                    direct.put(1, new byte[size]);
                    assertThat(Patience.await("a reply", answer)).isEqualTo(ByteBuffer.wrap(sent));

                    MemorySegment segment = arena.allocate(size);
                    MemorySegment.copy(sent, 0, segment, ValueLayout.JAVA_BYTE, 0, size);
                    ByteBuffer back =
                            Patience.await("a reply", client.request(segment.asByteBuffer(), Duration.ofSeconds(20)));
                    assertThat(MemorySegment.ofBuffer(back).mismatch(segment)).isEqualTo(-1);
                }
                assertThat(Patience.await("a send", client.send(ByteBuffer.allocate(5))))
                        .isNull();
            }
        }
    }

    @Test
    void futuresCompleteOnTheLoopAndTheirAsyncStagesDoNot() {
        CompletableFuture<Void> mayAnswer = new CompletableFuture<>();
        MessageHandler waits = (exchange, message) -> {
            ByteBuf kept = message.retain();
            mayAnswer.thenRun(() -> exchange.reply(kept));
        };
        try (RdmaServer server = serve(waits);
                RdmaClient client = client(server)) {
            CompletableFuture<byte[]> request = client.request(new byte[3]);
            CompletableFuture<Boolean> onTheLoop =
                    request.thenApply(reply -> client.channel().eventLoop().inEventLoop());
            CompletableFuture<Integer> blocking = request.thenApplyAsync(reply -> {
                assertThat(Thread.currentThread().isVirtual()).isTrue();
                return client.request(new byte[4]).join().length;
            });
            CompletableFuture<Boolean> further =
                    blocking.thenApplyAsync(length -> Thread.currentThread().isVirtual());
            mayAnswer.complete(null);
            assertThat(Patience.await("a stage", onTheLoop)).isTrue();
            assertThat(Patience.await("a stage that waits", blocking)).isEqualTo(4);
            assertThat(Patience.await("a stage of that", further)).isTrue();
        }
    }

    @Test
    void aCancelledFutureOfTheJdkGivesItsReplyUp() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel atServer = server.next();
            CompletableFuture<byte[]> request = client.request(new byte[3]);
            byte[] first = nextRequest(atServer);
            assertThat(request.cancel(true)).isTrue();
            CompletableFuture<ByteBuffer> limited = client.request(ByteBuffer.allocate(3));
            byte[] second = nextRequest(atServer); // given up before, it would not be sent
            assertThat(failure("a future that its owner limits", limited.orTimeout(1, TimeUnit.MILLISECONDS)))
                    .isInstanceOf(TimeoutException.class);
            reply(atServer, first);
            Patience.until("that reply is dropped", () -> client.lateReplies() == 1);
            reply(atServer, second);
            CompletableFuture<byte[]> next = client.request(new byte[4]);
            reply(atServer, nextRequest(atServer));
            assertThat(Patience.await("the next reply", next)).hasSize(4);
        }
    }

    @Test
    void pendingRequestsFailWhenTheServerGoes() throws InterruptedException {
        CountDownLatch there = new CountDownLatch(1);
        MessageHandler silent = (exchange, message) -> there.countDown();
        RdmaServer server = serve(silent);
        try (RdmaClient client =
                RdmaClient.builder().provider(provider()).failFast().connect(host(), server.port())) {
            CompletableFuture<byte[]> request = client.request(new byte[10]);
            assertThat(there.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();
            int port = server.port();
            server.close();
            assertThat(failure("what has no server", request))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining(String.valueOf(port))
                    .hasMessageContaining("the peer has closed the connection");
            for (CompletableFuture<?> future : List.of(client.request(new byte[10]), client.send(new byte[10]))) {
                assertThat(failure("what has no server", future))
                        .isInstanceOf(ConnectionException.class)
                        .hasMessageContaining(String.valueOf(port));
            }
        }
        server.close();
    }

    @Test
    void whatIsSentWhileTheServerClosesFailsWithItsAddress() {
        for (int round = 0; round < 10; round++) {
            RdmaServer server = serve((exchange, message) -> {});
            try (RdmaClient client =
                    RdmaClient.builder().provider(provider()).failFast().connect(host(), server.port())) {
                client.send(new byte[10]).join();
                int port = server.port();
                server.closeAsync();
                CompletableFuture<?> sent = client.send(new byte[10]);
                while (!sent.isCompletedExceptionally()) {
                    if (sent.isDone()) {
                        sent = client.send(new byte[10]);
                    }
                }
                assertThat(failure("what has no server", sent))
                        .isInstanceOf(ConnectionException.class)
                        .hasMessageContaining(String.valueOf(port));
            }
            server.close();
        }
    }

    @Test
    void aClosedClientSaysThatItIsClosed() {
        try (RdmaServer server = serve((exchange, message) -> {})) {
            RdmaClient client = client(server);
            CompletableFuture<byte[]> pending = client.request(new byte[10]);
            client.close();
            for (CompletableFuture<?> future :
                    List.of(pending, client.request(new byte[10]), client.send(new byte[10]))) {
                assertThat(failure("what is asked of a closed client", future))
                        .isInstanceOf(ConnectionException.class)
                        .hasMessageContaining("this end has closed the connection");
            }
            client.close();
        }
    }

    @Test
    void refusesToWaitOnTheEventLoop() throws Exception {
        CompletableFuture<RdmaServer> itself = new CompletableFuture<>();
        BlockingQueue<Throwable> refusals = new LinkedBlockingQueue<>();
        MessageHandler waits = (exchange, message) -> {
            RdmaServer server = itself.join();
            for (ThrowingCallable wait : List.<ThrowingCallable>of(
                    server::close,
                    () -> exchange.reply(Unpooled.wrappedBuffer(new byte[1])).sync(),
                    () -> exchange.send(new byte[1]).join())) {
                refusals.add(catchThrowable(wait));
            }
        };
        try (RdmaServer server = serve(waits);
                RdmaClient client = client(server)) {
            itself.complete(server);
            assertThat(client.request(new byte[1]).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .hasSize(1);
            CompletableFuture<Void> tried = new CompletableFuture<>();
            client.channel().eventLoop().execute(() -> {
                for (ThrowingCallable wait : List.<ThrowingCallable>of(
                        client::close,
                        () -> client.request(new byte[1]).get(),
                        () -> client.request(new byte[1]).get(1, TimeUnit.SECONDS),
                        () -> client.request(ByteBuffer.allocate(1))
                                .thenApply(reply -> reply)
                                .join(),
                        // A shorter one is done by then on a provider that copies it.
                        () -> client.send(Unpooled.wrappedBuffer(new byte[8 << 10]))
                                .sync())) {
                    refusals.add(catchThrowable(wait));
                }
                tried.complete(null);
            });
            Patience.await("the loop", tried);
            for (int i = 0; i < 8; i++) {
                assertThat(Patience.take("a refusal", refusals))
                        .isInstanceOf(BlockingOperationException.class)
                        .hasMessageContaining("do not wait on the event loop");
            }
            assertThat(client.channel().isActive()).isTrue();
        }
    }

    @Test
    void aHandlerMayCloseItsServerWithoutWaiting() {
        CompletableFuture<RdmaServer> itself = new CompletableFuture<>();
        CompletableFuture<CompletableFuture<Void>> closing = new CompletableFuture<>();
        MessageHandler closes =
                (exchange, message) -> closing.complete(itself.join().closeAsync());
        RdmaServer server = serve(closes);
        itself.complete(server);
        try (RdmaClient client = client(server)) {
            RdmaChannel connection = client.channel();
            client.send(new byte[1]);
            Patience.await("the server closing", Patience.await("the handler", closing));
            done("the client's connection", connection.closeFuture());
        }
        try (RdmaServer shared = RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> {});
                RdmaClient client = client(shared)) {
            RdmaChannel connection = client.channel();
            Patience.await("the server closing", shared.closeAsync());
            done("the client's connection", connection.closeFuture());
        }
    }

    @Test
    void checkTheirArgumentsWhereTheyAreGiven() {
        MessageHandler handler = (exchange, message) -> {};
        assertThatThrownBy(() -> serve(null))
                .isInstanceOf(NullPointerException.class)
                .hasMessageContaining("handler");
        for (int port : new int[] {-1, 65_536, 70_000}) {
            assertThatThrownBy(() -> RdmaServer.bind(host(), port, handler))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining(host() + ":" + port)
                    .hasMessageContaining("0 to 65535");
            assertThatThrownBy(() -> RdmaClient.connect(host(), port))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("1 to 65535");
        }
        assertThatThrownBy(() -> RdmaClient.connect(host(), 0)).hasMessageContaining("1 to 65535");
        for (String host : new String[] {null, "", "  "}) {
            assertThatThrownBy(() -> RdmaClient.connect(host, 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("host");
            assertThatThrownBy(() -> RdmaServer.bind(host, 1, handler)).hasMessageContaining("host");
        }
        for (int wrong : new int[] {0, -1}) {
            Duration timeout = Duration.ofSeconds(wrong);
            assertThatThrownBy(() -> RdmaClient.builder().connectTimeout(timeout))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("connectTimeout " + timeout);
            assertThatThrownBy(() -> RdmaClient.builder().requestTimeout(timeout))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("requestTimeout " + timeout);
            assertThatThrownBy(() -> RdmaServer.builder().threadsPerProvider(wrong))
                    .hasMessageContaining("threadsPerProvider " + wrong);
        }
        assertThatThrownBy(() -> RdmaClient.builder().provider(null)).hasMessageContaining("provider");
        assertThatThrownBy(() -> RdmaClient.builder().onMessage(null)).hasMessageContaining("handler");
        try (RdmaServer server = serve(handler);
                RdmaClient client = client(server)) {
            assertThatThrownBy(() -> client.request(new byte[1], Duration.ZERO)).hasMessageContaining("timeout PT0S");
            assertThatThrownBy(() -> client.request(new byte[1], (Duration) null))
                    .hasMessageContaining("timeout is null");
        }
    }

    @Test
    void sayWhyTheyCannotConnect() throws Exception {
        try (UnusedPort port = new UnusedPort(host())) {
            RdmaClient.Builder builder = RdmaClient.builder().provider(provider());
            assertThatThrownBy(() -> builder.connect(host(), port.number()))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining(host())
                    .hasMessageContaining(String.valueOf(port.number()));
            assertThat(failure("connecting in the background", builder.connectAsync(host(), port.number())))
                    .isInstanceOf(ConnectionException.class);
        }
        assertThatThrownBy(() -> RdmaClient.connect("no-such-host.invalid", 1))
                .isInstanceOf(ConnectionException.Unreachable.class)
                .hasMessageContaining("no-such-host.invalid:1");
    }

    @Test
    void shareLoopsAndLeaveThemAlone() throws Exception {
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            assertThat(client.request(new byte[5]).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .hasSize(5);
        }
        assertThat(group.isShuttingDown()).isFalse();
        RdmaServer again = RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> {});
        again.close();
        again.close();
    }

    @Test
    void connectInTheBackground() throws Exception {
        try (RdmaServer server = serve((exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = RdmaClient.builder()
                        .provider(provider())
                        .connectAsync(host(), server.port())
                        .get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)) {
            CompletableFuture<Integer> length = client.request(new byte[7]).thenApply(bytes -> bytes.length);
            assertThat(length.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)).isEqualTo(7);
        }
    }

    @Test
    void aFloodOfRequestsIsBoundedByTheServer() throws Exception {
        try (RdmaServer server = serve((exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client = client(server)) {
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            for (int i = 0; i < 2000; i++) {
                requests.add(client.request(patternBytes(4000, i)));
            }
            for (int i = 0; i < 2000; i++) {
                assertThat(requests.get(i).get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                        .isEqualTo(patternBytes(4000, i));
            }
        }
    }

    @Test
    void futuresKeepTheirFailures() {
        MessageHandler silent = (exchange, message) -> {};
        try (RdmaServer server = serve(silent);
                RdmaClient client = client(server)) {
            CompletableFuture<byte[]> timedOut = client.request(new byte[1], Duration.ofMillis(20));
            assertThatThrownBy(() -> timedOut.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .isInstanceOf(ExecutionException.class)
                    .hasCauseInstanceOf(RequestException.TimedOut.class);
            Future<ByteBuf> request = client.request(Unpooled.wrappedBuffer(new byte[1]));
            RdmaFutures.toCompletable(request).cancel(true);
            assertThat(request.isCancelled()).isTrue();
        }
    }

    @Test
    void closingTheLoopsSendsWhatWasFlushed() {
        BlockingQueue<Integer> lengths = new LinkedBlockingQueue<>();
        RdmaEventLoopGroup own = new RdmaEventLoopGroup(provider(), 1);
        try (RdmaServer server = serve((exchange, message) -> lengths.add(message.readableBytes()))) {
            RdmaClient client = RdmaClient.builder().group(own).connect(host(), server.port());
            for (int i = 0; i < 300; i++) {
                client.send(new byte[2000 + i]);
            }
            own.close();
            assertThat(own.isTerminated()).isTrue();
            for (int i = 0; i < 300; i++) {
                assertThat(Patience.take("a message", lengths)).isEqualTo(2000 + i);
            }
            own.close();
        }
    }
}
