package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SubmissionPublisher;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.client.Target;
import org.verbena.api.service.MessageStream;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.spi.Patience;

/** Streams of messages inside a request. */
public abstract class MessageStreamSuite extends ApiSuite {
    private static final RequestOptions DEFAULTS = RequestOptions.DEFAULTS;

    /** Returns what it gets, on a virtual thread. */
    private static final MessageHandler ECHO = (exchange, message) -> {
        MessageStream stream = exchange.stream();
        for (byte[] each : stream) {
            stream.send(each).get();
        }
        stream.end();
    };

    private RdmaServer blocking(MessageHandler handler) {
        return RdmaServer.builder().group(group).virtualThreads(true).bind(host(), 0, handler);
    }

    private RdmaServer onLoop(MessageHandler handler) {
        return RdmaServer.builder().group(group).bind(host(), 0, handler);
    }

    private RdmaClient clientOf(RdmaServer server) {
        return RdmaClient.builder().group(group).connect(host(), server.port());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    private static List<String> all(MessageStream stream) {
        List<String> texts = new ArrayList<>();
        stream.forEach(each -> texts.add(new String(each, UTF_8)));
        return texts;
    }

    private static Throwable failure(MessageStream stream) {
        return failureOf(stream.whenOver());
    }

    private static Throwable failureOf(CompletableFuture<?> future) {
        Patience.until("it is done", future::isDone);
        try {
            future.getNow(null);
        } catch (CancellationException cancelled) {
            return cancelled;
        } catch (CompletionException failed) {
            return failed.getCause();
        }
        throw new AssertionError("it has not failed");
    }

    /** Keeps what it receives, and requests a given number of messages. */
    private static final class Collector implements Flow.Subscriber<ByteBuf> {
        final BlockingQueue<String> messages = new LinkedBlockingQueue<>();
        final CompletableFuture<Void> end = new CompletableFuture<>();
        final CompletableFuture<Flow.Subscription> subscription = new CompletableFuture<>();
        private final long first;

        Collector(long first) {
            this.first = first;
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription.complete(given);
            if (first > 0) {
                given.request(first);
            }
        }

        @Override
        public void onNext(ByteBuf message) {
            messages.add(message.toString(UTF_8));
            message.release();
        }

        @Override
        public void onError(Throwable cause) {
            end.completeExceptionally(cause);
        }

        @Override
        public void onComplete() {
            end.complete(null);
        }
    }

    @Test
    void messagesGoBothWays() throws Exception {
        try (RdmaServer server = blocking(ECHO);
                RdmaClient client = clientOf(server);
                MessageStream stream = client.stream(bytes("hello"), DEFAULTS)) {
            stream.send(bytes("one")).get();
            assertThat(new String(ByteBufUtil.getBytes(stream.receive()), UTF_8))
                    .isEqualTo("one");
            done("a buffer", stream.send(Unpooled.wrappedBuffer(new byte[100_000])));
            ByteBuf large = stream.receive();
            assertThat(large.readableBytes()).isEqualTo(100_000);
            large.release();
            stream.send(new byte[0]);
            stream.end();
            stream.end();
            assertThat(all(stream)).containsExactly("");
            assertThat(stream.receive()).isNull();
            Patience.await("the end", stream.whenOver());
            assertThat(stream.isWritable()).isFalse();
            assertThat(failureOf(stream.send(bytes("late")))).isInstanceOf(CancellationException.class);
        }
    }

    @Test
    void aReplyMayBeManyMessages() {
        MessageHandler counting = (exchange, message) -> {
            try (MessageStream stream = exchange.stream()) {
                int count = message.readInt();
                for (int i = 0; i < count; i++) {
                    Patience.await("room", stream.whenWritable());
                    stream.send(bytes("m" + i));
                }
                stream.end();
            } // which gives up nothing of what was sent
        };
        try (RdmaServer server = blocking(counting);
                RdmaClient client = clientOf(server)) {
            for (int count : new int[] {0, 1, 257, 5000}) {
                MessageStream stream = client.stream(Unpooled.buffer(4).writeInt(count), DEFAULTS);
                stream.end();
                assertThat(all(stream))
                        .hasSize(count)
                        .endsWith(count == 0 ? new String[0] : new String[] {"m" + (count - 1)});
                Patience.await("the end", stream.whenOver());
            }
        }
    }

    /** On the loops of both ends, with publishers and subscribers. */
    @Test
    void publishersAndSubscribers() {
        MessageHandler upper = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            Collector all = new Collector(Long.MAX_VALUE);
            stream.messages().subscribe(all);
            all.end.thenRun(() -> {
                all.messages.forEach(each -> stream.send(Unpooled.wrappedBuffer(bytes("<" + each + ">"))));
                stream.end();
            });
        };
        try (RdmaServer server = onLoop(upper);
                RdmaClient client = clientOf(server)) {
            SubmissionPublisher<ByteBuf> publisher = new SubmissionPublisher<>();
            MessageStream stream = client.stream(bytes(""), DEFAULTS);
            Collector answers = new Collector(1);
            stream.messages().subscribe(answers);
            stream.sendAll(publisher);
            for (int i = 0; i < 200; i++) {
                publisher.submit(Unpooled.wrappedBuffer(bytes("" + i)));
            }
            publisher.close();
            assertThat(Patience.take("an answer", answers.messages)).isEqualTo("<0>");
            answers.subscription.join().request(198);
            for (int i = 1; i < 199; i++) {
                assertThat(Patience.take("an answer", answers.messages)).isEqualTo("<" + i + ">");
            }
            assertThat(answers.messages).isEmpty();
            assertThat(answers.end).isNotDone();
            Collector second = new Collector(1);
            stream.messages().subscribe(second);
            assertThat(failureOf(second.end)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(stream::receive).isInstanceOf(IllegalStateException.class);
            answers.subscription.join().request(Long.MAX_VALUE);
            Patience.await("the end", answers.end);
            assertThat(answers.messages).containsExactly("<199>");
            Patience.await("the end", stream.whenOver());
        }
    }

    @Test
    void aSubscriberThatFailsOrBreaksTheRulesEndsItsStream() {
        try (RdmaServer server = blocking(ECHO);
                RdmaClient client = clientOf(server)) {
            MessageStream failing = client.stream(bytes(""), DEFAULTS);
            failing.send(bytes("x"));
            failing.messages().subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription given) {
                    given.request(1);
                }

                @Override
                public void onNext(ByteBuf message) {
                    message.release();
                    throw new IllegalArgumentException("as the test wants");
                }

                @Override
                public void onError(Throwable cause) {}

                @Override
                public void onComplete() {}
            });
            assertThat(failure(failing)).isInstanceOf(CancellationException.class);
            MessageStream wrong = client.stream(bytes(""), DEFAULTS);
            Collector collector = new Collector(0);
            wrong.messages().subscribe(collector);
            collector.subscription.join().request(0);
            assertThat(failureOf(collector.end)).isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void aHandlerMayReplyInstead() {
        try (RdmaServer server = onLoop((exchange, message) -> exchange.reply(bytes("only")));
                RdmaClient client = clientOf(server)) {
            MessageStream stream = client.stream(bytes(""), DEFAULTS);
            assertThat(all(stream)).containsExactly("only");
            Patience.await("the end", stream.whenOver());
        }
    }

    @Test
    void theServersEndIsTheEnd() {
        CompletableFuture<Throwable> refused = new CompletableFuture<>();
        MessageHandler first = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            stream.send(ByteBufUtil.getBytes(stream.receive())).get();
            stream.end();
            Patience.await("the end", stream.whenOver());
            refused.complete(failureOf(stream.send(bytes("late"))));
        };
        try (RdmaServer server = blocking(first);
                RdmaClient client = clientOf(server)) {
            MessageStream stream = client.stream(bytes(""), DEFAULTS);
            List<CompletableFuture<Void>> sends = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                sends.add(stream.send(bytes("" + i)));
            }
            assertThat(all(stream)).containsExactly("0");
            Patience.await("the end", stream.whenOver());
            Patience.until("all sends are done", () -> sends.stream().allMatch(CompletableFuture::isDone));
            assertThat(Patience.await("the refusal", refused)).isInstanceOf(CancellationException.class);
        }
    }

    @Test
    void failuresReachTheOtherEnd() {
        BlockingQueue<Throwable> atServer = new LinkedBlockingQueue<>();
        MessageHandler failing = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            stream.whenOver().whenComplete((none, cause) -> atServer.add(cause));
            switch (message.readByte()) {
                case 1 -> throw new RequestFailure(7, "no");
                case 2 -> exchange.fail(new IllegalStateException("as the test wants"));
                case 3 -> stream.cancel();
                default -> stream.receive();
            }
        };
        try (RdmaServer server = blocking(failing);
                RdmaClient client = clientOf(server)) {
            MessageStream one = client.stream(new byte[] {1}, DEFAULTS);
            assertThatThrownBy(one::receive).isInstanceOf(RequestFailure.class);
            assertThat(failure(one)).isInstanceOf(RequestFailure.class);
            assertThat(Patience.take("the failure", atServer)).isInstanceOf(RequestFailure.class);
            assertThat(failure(client.stream(new byte[] {2}, DEFAULTS))).isInstanceOf(RequestException.Failed.class);
            assertThat(Patience.take("the failure", atServer)).isInstanceOf(IllegalStateException.class);
            assertThat(failure(client.stream(new byte[] {3}, DEFAULTS))).isInstanceOf(RequestException.Failed.class);
            assertThat(Patience.take("the failure", atServer)).isInstanceOf(CancellationException.class);
            MessageStream cancelled = client.stream(new byte[] {4}, DEFAULTS);
            cancelled.cancel();
            assertThat(failure(cancelled)).isInstanceOf(CancellationException.class);
            MessageStream seen = client.stream(new byte[] {4}, DEFAULTS);
            Patience.await("the server takes messages", seen.send(bytes("")).thenApply(none -> 1));
            MessageStream late = client.stream(new byte[] {5}, DEFAULTS.withTimeout(Duration.ofMillis(50)));
            assertThat(failure(late)).isInstanceOf(RequestException.TimedOut.class);
            MessageStream lost = client.stream(new byte[] {5}, DEFAULTS);
            lost.messages().subscribe(new Collector(1));
            client.channel().close();
            assertThat(failure(lost)).isInstanceOf(ConnectionException.class);
        }
    }

    @Test
    void nothingBeginsWithoutACause() {
        CompletableFuture<IllegalStateException> refused = new CompletableFuture<>();
        MessageHandler asks = (exchange, message) -> {
            try {
                exchange.stream();
            } catch (IllegalStateException cause) {
                refused.complete(cause);
            }
            exchange.reply(new byte[0]);
        };
        try (RdmaServer server = onLoop(asks);
                RdmaClient client = clientOf(server)) {
            Patience.await("a plain request", client.request(new byte[1]));
            assertThat(refused).isDone();
            assertThat(Patience.await("after it", client.request(new byte[1]))).isEmpty();
        }
        RdmaServer gone = onLoop(asks);
        RdmaClient client = clientOf(gone);
        client.close();
        gone.close();
        MessageStream stream = client.stream(bytes(""), DEFAULTS);
        assertThat(failure(stream)).isInstanceOf(ConnectionException.class);
        assertThat(failureOf(stream.send(bytes("x")))).isInstanceOf(ConnectionException.class);
    }

    @Test
    void aStreamThatIsNotReadKeepsLittleAndStopsNoOther() throws Exception {
        AtomicInteger sent = new AtomicInteger();
        MessageHandler flood = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            byte[] each = new byte[1000];
            while (true) {
                stream.whenWritable().get();
                stream.send(each).thenRun(sent::incrementAndGet);
            }
        };
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(true)
                        .bind(host(), 0, (exchange, message) -> {
                            if (message.isReadable()) {
                                flood.onMessage(exchange, message);
                            } else {
                                ECHO.onMessage(exchange, message);
                            }
                        });
                RdmaClient client = clientOf(server)) {
            MessageStream slow = client.stream(new byte[1], DEFAULTS);
            Patience.until("the window is full", () -> sent.get() >= 65);
            MessageStream other = client.stream(new byte[0], DEFAULTS);
            for (int i = 0; i < 1000; i++) {
                other.send(bytes("" + i)).get();
                assertThat(new String(ByteBufUtil.getBytes(other.receive()), UTF_8))
                        .isEqualTo("" + i);
            }
            assertThat(sent.get()).as("messages of 1000 bytes in 64 KiB").isBetween(65, 66);
            slow.close();
            other.end();
            assertThat(all(other)).isEmpty();
        }
    }

    @Test
    void whatWaitsToBeSentHasABound() {
        CountDownLatch go = new CountDownLatch(1);
        MessageHandler waits = (exchange, message) -> {
            go.await();
            ECHO.onMessage(exchange, message);
        };
        try (RdmaServer server = blocking(waits);
                RdmaClient client = clientOf(server)) {
            MessageStream stream = client.stream(bytes(""), DEFAULTS);
            List<CompletableFuture<Void>> sends = new ArrayList<>();
            for (int i = 0; i < 256; i++) {
                assertThat(stream.isWritable()).isEqualTo(i < 128);
                sends.add(stream.send(bytes("" + i)));
            }
            CompletableFuture<Void> writable = stream.whenWritable();
            assertThat(failureOf(stream.send(bytes("too many")))).isInstanceOf(SendLimitException.class);
            assertThat(writable).isNotDone();
            go.countDown();
            Patience.await("room", writable);
            sends.forEach(each -> Patience.await("a send", each));
            stream.end();
            assertThat(all(stream)).hasSize(256);
        }
    }

    @Test
    void manyStreamsShareAConnection() {
        int count = 1000;
        try (RdmaServer server = blocking(ECHO);
                RdmaClient client = clientOf(server)) {
            List<MessageStream> streams = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                streams.add(client.stream(new byte[0], DEFAULTS));
            }
            for (int round = 0; round < 3; round++) {
                for (MessageStream stream : streams) {
                    stream.send(bytes("r" + round));
                }
            }
            streams.forEach(MessageStream::end);
            for (MessageStream stream : streams) {
                assertThat(all(stream)).containsExactly("r0", "r1", "r2");
            }
        }
    }

    @Test
    void tooManyStreamsAreRefused() {
        try (RdmaServer server = onLoop((exchange, message) -> exchange.stream());
                RdmaClient client = clientOf(server)) {
            List<MessageStream> streams = new ArrayList<>();
            for (int i = 0; i < 1024; i++) {
                streams.add(client.stream(new byte[0], DEFAULTS));
            }
            MessageStream more = client.stream(new byte[0], DEFAULTS);
            assertThat(failure(more))
                    .isInstanceOfSatisfying(
                            RequestException.Refused.class,
                            refused -> assertThat(refused.reason()).isEqualTo(RequestException.Refused.Reason.LIMIT));
            streams.getFirst().cancel();
            MessageStream next = client.stream(new byte[0], DEFAULTS);
            Patience.await("it takes messages", next.send(bytes("x")).thenApply(none -> 1));
        }
    }

    @Test
    void aShutdownWaitsForStreams() throws Exception {
        RdmaServer server = blocking(ECHO);
        try (RdmaClient client = clientOf(server)) {
            MessageStream stream = client.stream(bytes(""), DEFAULTS);
            stream.send(bytes("one")).get();
            stream.receive().release();
            CompletableFuture<Boolean> ended = server.shutdown(Duration.ofSeconds(60));
            for (int i = 0; i < 100; i++) {
                stream.send(bytes("two")).get();
                stream.receive().release();
            }
            assertThat(ended).isNotDone();
            stream.end();
            assertThat(all(stream)).isEmpty();
            assertThat(Patience.await("the shutdown", ended)).isTrue();
        }
    }

    /** Whatever is under way when the server ends, at either end. */
    @Test
    void allEndsWithTheConnection() {
        int count = 50;
        AtomicInteger running = new AtomicInteger();
        MessageHandler handler = (exchange, message) -> {
            running.incrementAndGet();
            try {
                ECHO.onMessage(exchange, message);
            } finally {
                running.decrementAndGet();
            }
        };
        RdmaServer server = blocking(handler);
        try (RdmaClient client = clientOf(server)) {
            List<MessageStream> streams = new ArrayList<>();
            List<CompletableFuture<Void>> sends = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                MessageStream stream = client.stream(new byte[0], DEFAULTS);
                streams.add(stream);
                for (int j = 0; j < i; j++) {
                    sends.add(stream.send(new byte[i * 100]));
                }
            }
            MessageStream last = streams.getLast();
            byte[] first = last.iterator().next();
            assertThat(first).hasSize((count - 1) * 100);
            server.close();
            for (MessageStream stream : streams) {
                assertThat(failure(stream)).isInstanceOf(ConnectionException.class);
            }
            Patience.until("all sends are done", () -> sends.stream().allMatch(CompletableFuture::isDone));
            assertThat(failureOf(last.whenWritable())).isInstanceOf(ConnectionException.class);
            Patience.until("all handlers have ended", () -> running.get() == 0);
        }
    }

    @Test
    void aStreamWaitsForAConnection() {
        int port = lastingPort();
        try (RdmaClient client = RdmaClient.builder()
                .group(group)
                .target(Target.of(host(), port))
                .start()) {
            MessageStream given = client.stream(new byte[0], DEFAULTS);
            CompletableFuture<Void> dropped = given.send(bytes("x"));
            given.cancel();
            assertThat(failure(given)).isInstanceOf(CancellationException.class);
            assertThat(failureOf(dropped)).isInstanceOf(CancellationException.class);
            MessageStream stream = client.stream(new byte[0], DEFAULTS);
            List<CompletableFuture<Void>> sends = List.of(stream.send(bytes("a")), stream.send(bytes("b")));
            stream.end();
            try (RdmaServer server =
                    RdmaServer.builder().group(group).virtualThreads(true).bind(host(), port, ECHO)) {
                assertThat(all(stream)).containsExactly("a", "b");
                sends.forEach(each -> Patience.await("a send", each));
                assertThat(server.port()).isEqualTo(port);
            }
        }
    }

    /** Its handler runs as long as it wants, and so do the others that take turns. */
    @Test
    void streamsDoNotTakeTurnsWithRequests() {
        MessageHandler either = (exchange, message) -> {
            if (message.isReadable()) {
                exchange.reply(new byte[0]);
            } else {
                ECHO.onMessage(exchange, message);
            }
        };
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(true)
                        .orderedHandlers(true)
                        .bind(host(), 0, either);
                RdmaClient client = clientOf(server);
                MessageStream stream = client.stream(new byte[0], DEFAULTS)) {
            stream.send(bytes("a"));
            for (int i = 0; i < 2000; i++) {
                client.request(new byte[1]);
            }
            Patience.await("a request", client.request(new byte[1]));
            stream.end();
            assertThat(all(stream)).containsExactly("a");
        }
    }

    private static void slowly(MessageStream stream, long total, AtomicLong got) {
        Random random = new Random(1);
        byte[] seen;
        for (var each = stream.iterator(); each.hasNext(); ) {
            seen = each.next();
            got.addAndGet(seen.length);
            if (random.nextInt(1000) == 0) {
                Thread.onSpinWait();
            }
        }
        assertThat(got.get()).isEqualTo(total);
    }

    private void slowReader(long total, int bytes) throws Exception {
        MessageHandler source = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            ByteBuf one = Unpooled.wrappedBuffer(new byte[bytes]);
            for (long i = 0; i < total / bytes; i++) {
                stream.whenWritable().get();
                stream.send(one.retainedDuplicate());
            }
            stream.end();
        };
        try (RdmaServer server = blocking(source);
                RdmaClient client = clientOf(server)) {
            MessageStream stream = client.stream(new byte[0], DEFAULTS);
            stream.end();
            slowly(stream, total / bytes * bytes, new AtomicLong());
        }
    }

    @Test
    void muchGoesThroughOneStream() throws Exception {
        slowReader(64L << 20, 16_000);
        slowReader(16L << 20, 1_000_000);
    }

    @Test
    @Tag("full")
    void veryMuchGoesThroughOneStream() throws Exception {
        slowReader(10L << 30, 60_000);
    }

    /** Either end gives it up somewhere: both ends learn of it, and nothing is left. */
    @Test
    void eitherEndCancelsAtAnyPoint() throws Exception {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        BlockingQueue<MessageStream> begun = new LinkedBlockingQueue<>();
        MessageHandler echo = (exchange, message) -> {
            int cancelAfter = message.readInt();
            MessageStream stream = exchange.stream();
            begun.add(stream);
            int count = 0;
            for (byte[] each : stream) {
                if (count++ == cancelAfter) {
                    stream.cancel();
                }
                stream.send(each);
            }
            stream.end();
        };
        try (RdmaServer server = blocking(echo);
                RdmaClient client = clientOf(server)) {
            for (int i = 0; i < 200; i++) {
                boolean atServer = random.nextBoolean();
                int after = random.nextInt(20);
                int count = random.nextInt(20);
                MessageStream stream =
                        client.stream(Unpooled.buffer(4).writeInt(atServer ? after : Integer.MAX_VALUE), DEFAULTS);
                List<CompletableFuture<Void>> sends = new ArrayList<>();
                for (int j = 0; j < count; j++) {
                    if (!atServer && j == after) {
                        stream.cancel();
                    }
                    sends.add(stream.send(new byte[random.nextInt(3000)]));
                    if (random.nextInt(4) == 0) {
                        Thread.yield();
                    }
                }
                stream.end();
                CompletableFuture<Void> over = stream.whenOver();
                Patience.until("the end", over::isDone);
                Patience.until("all sends", () -> sends.stream().allMatch(CompletableFuture::isDone));
                boolean isCancelled = after < count;
                assertThat(over.isCompletedExceptionally())
                        .as("%s after %d of %d", atServer ? "server" : "client", after, count)
                        .isEqualTo(isCancelled);
            }
            for (MessageStream each : begun) {
                CompletableFuture<Void> over = each.whenOver();
                Patience.until("the end at the server", over::isDone);
            }
        }
    }
}
