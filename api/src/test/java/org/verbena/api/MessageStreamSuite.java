package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.lang.management.ManagementFactory;
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
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.client.Target;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.service.MessageStream;
import org.verbena.api.service.Metadata;
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

    /** What goes through one stream in the full run: 10 GB, or {@code -Dverbena.stream.megabytes=}. */
    protected long veryManyBytes() {
        return Long.getLong("verbena.stream.megabytes", 10 << 10) << 20;
    }

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
    void aHandlerCanAskWhetherItHasAStream() {
        BlockingQueue<Boolean> streams = new LinkedBlockingQueue<>();
        try (RdmaServer server = onLoop((exchange, message) -> {
                    streams.add(exchange.isStream());
                    exchange.reply(message.retain());
                });
                RdmaClient client = clientOf(server)) {
            assertThat(Patience.await("a reply", client.request(bytes("one")))).isEqualTo(bytes("one"));
            assertThat(Patience.take("a request", streams)).isFalse();
            try (MessageStream stream = client.stream(bytes("two"), DEFAULTS)) {
                assertThat(all(stream)).containsExactly("two");
            }
            assertThat(Patience.take("a stream", streams)).isTrue();
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

    /** One thread reads, and another cancels. */
    @Test
    void whatIsReadBesideACancelHasNoHole() {
        long seed = new Random().nextLong();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        MessageHandler counts = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            for (int i = 0; i < 250; i++) {
                stream.send(bytes("" + i));
            }
            stream.end();
        };
        try (RdmaServer server = blocking(counts);
                RdmaClient client = clientOf(server)) {
            for (int i = 0; i < 500; i++) {
                MessageStream stream = client.stream(new byte[0], DEFAULTS);
                int before = random.nextInt(200);
                CompletableFuture<Void> due = new CompletableFuture<>();
                due.thenRunAsync(stream::cancel);
                List<String> read = new ArrayList<>();
                try {
                    for (byte[] each : stream) {
                        read.add(new String(each, UTF_8));
                        if (read.size() == before) {
                            due.complete(null);
                        }
                    }
                    assertThat(read).as("of a stream that has ended").hasSize(250);
                } catch (CancellationException cancelled) {
                    assertThat(read.size()).isLessThan(251);
                }
                assertThat(read)
                        .isEqualTo(IntStream.range(0, read.size())
                                .mapToObj(String::valueOf)
                                .toList());
                due.complete(null);
            }
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
    void whatStreamsWaitToSendIsInTheStatistics() {
        BlockingQueue<Exchange> begun = new LinkedBlockingQueue<>(); // and none accepted
        try (RdmaServer server = onLoop((exchange, message) -> begun.add(exchange));
                RdmaClient client = clientOf(server)) {
            List<MessageStream> streams =
                    List.of(client.stream(bytes(""), DEFAULTS), client.stream(bytes(""), DEFAULTS));
            for (MessageStream each : streams) {
                Patience.take("it has begun", begun);
                for (int i = 0; i < 10; i++) {
                    each.send(new byte[1000]);
                }
            }
            Patience.until("they wait", () -> client.channel().statistics().queuedBytes() == 20_000);
            streams.forEach(MessageStream::cancel);
            Patience.until("nothing waits", () -> client.channel().statistics().queuedBytes() == 0);
        }
    }

    /** Of 40 messages, or of 40,000 bytes, none of which the other end takes. */
    private static void haveABound(List<MessageStream> streams, int bytes) {
        ByteBuf one = Unpooled.wrappedBuffer(new byte[bytes]);
        List<Future<Void>> sends = new ArrayList<>();
        for (MessageStream each : streams.subList(0, 15)) {
            assertThat(each.isWritable()).isTrue();
            sends.add(each.send(one.retainedDuplicate()));
            assertThat(each.isWritable()).isEqualTo(sends.size() < 20);
            sends.add(each.send(one.retainedDuplicate()));
        }
        assertThat(streams.get(15).isWritable()).isFalse();
        assertThat(failure("one past three quarters", streams.get(0).send(one.retainedDuplicate())))
                .isInstanceOf(SendLimitException.class);
        for (MessageStream each : streams.subList(15, 25)) {
            sends.add(each.send(one.retainedDuplicate()));
        }
        assertThat(failure("one past the bound", streams.get(25).send(one.retainedDuplicate())))
                .isInstanceOf(SendLimitException.class);
        assertThat(sends).as("at the bound").hasSize(40).noneMatch(Future::isDone);
        CompletableFuture<Void> empty = streams.get(26).whenWritable();
        CompletableFuture<Void> waiting = streams.get(0).whenWritable();
        streams.subList(15, 25).forEach(MessageStream::cancel);
        Patience.until(
                "these are over", () -> sends.stream().filter(Future::isDone).count() == 10);
        assertThat(empty).isNotDone();
        streams.get(1).cancel();
        Patience.await("room for a stream of which nothing waits", empty.thenApply(none -> 1));
        assertThat(waiting).isNotDone();
        streams.subList(2, 7).forEach(MessageStream::cancel);
        Patience.await("room for all", waiting.thenApply(none -> 1));
        Future<Void> again = streams.get(0).send(one.retainedDuplicate());
        assertThat(again.isDone()).isFalse();
        streams.forEach(MessageStream::cancel);
        Patience.until("all are over", () -> again.isDone() && sends.stream().allMatch(Future::isDone));
        assertThat(one.refCnt()).isOne();
    }

    private static <B> List<B> bounds(BiFunction<Integer, Long, B> maxPending) {
        return List.of(maxPending.apply(40, 1L << 30), maxPending.apply(10_000, 40_000L));
    }

    @Test
    void whatAllStreamsOfAClientWaitToSendHasABound() {
        BlockingQueue<Exchange> begun = new LinkedBlockingQueue<>(); // and none accepted
        try (RdmaServer server = onLoop((exchange, message) -> begun.add(exchange))) {
            for (RdmaClient.Builder each :
                    bounds((messages, bytes) -> RdmaClient.builder().maxPending(messages, bytes))) {
                begun.clear();
                try (RdmaClient client = each.group(group).connect(host(), server.port())) {
                    List<MessageStream> streams = new ArrayList<>();
                    for (int i = 0; i < 30; i++) {
                        streams.add(client.stream(new byte[0], DEFAULTS));
                    }
                    Patience.until("all have begun", () -> begun.size() == 30);
                    haveABound(streams, 1000);
                    MessageStream next = client.stream(new byte[0], DEFAULTS);
                    assertThat(next.isWritable()).isTrue();
                }
            }
        }
    }

    @Test
    void whatAllStreamsOfAServersConnectionWaitToSendHasABound() throws Exception {
        BlockingQueue<MessageStream> begun = new LinkedBlockingQueue<>();
        for (RdmaServer.Builder each :
                bounds((messages, bytes) -> RdmaServer.builder().maxPending(messages, bytes))) {
            try (RdmaServer server =
                            each.group(group).bind(host(), 0, (exchange, message) -> begun.add(exchange.stream()));
                    RdmaClient client = clientOf(server)) {
                List<MessageStream> streams = new ArrayList<>();
                for (int i = 0; i < 30; i++) {
                    client.stream(new byte[0], DEFAULTS);
                    MessageStream stream = Patience.take("a stream", begun);
                    stream.send(new byte[64 << 10]).get(); // all that the client takes in advance
                    streams.add(stream);
                }
                haveABound(streams, 1000);
            }
        }
    }

    /** And that leaves room for one that is read. */
    @Test
    void aClientThatReadsNothingOfManyStreamsCostsTheServerLittle() throws Exception {
        long most = 16L << 20;
        AtomicLong waiting = new AtomicLong();
        AtomicLong highest = new AtomicLong();
        ByteBuf one = Unpooled.wrappedBuffer(new byte[8000]);
        MessageHandler flood = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            while (true) {
                stream.whenWritable().get();
                Future<Void> sent = stream.send(one.retainedDuplicate());
                if (!sent.isDone() || sent.isSuccess()) {
                    highest.accumulateAndGet(waiting.addAndGet(8000), Math::max);
                    sent.addListener(done -> waiting.addAndGet(-8000));
                }
            }
        };
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(true)
                        .maxPending(100_000, most)
                        .bind(host(), 0, (exchange, message) -> {
                            if (message.isReadable()) {
                                flood.onMessage(exchange, message);
                            } else {
                                ECHO.onMessage(exchange, message);
                            }
                        });
                RdmaClient client = clientOf(server)) {
            List<MessageStream> stopped = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                stopped.add(client.stream(new byte[1], DEFAULTS));
            }
            Patience.until("much waits", () -> waiting.get() >= most / 2);
            MessageStream other = client.stream(new byte[0], DEFAULTS);
            for (int i = 0; i < 200; i++) {
                other.send(bytes("" + i)).get();
                assertThat(new String(ByteBufUtil.getBytes(other.receive()), UTF_8))
                        .isEqualTo("" + i);
            }
            other.end();
            assertThat(all(other)).isEmpty();
            stopped.forEach(MessageStream::cancel);
            Patience.until("nothing waits", () -> waiting.get() == 0);
        }
        assertThat(highest.get()).isBetween(most / 2, most);
        Patience.until("nobody has a message", () -> one.refCnt() == 1);
    }

    /** Publishes what the test says, when the test says. */
    private static final class ByHand implements Flow.Publisher<ByteBuf>, Flow.Subscription {
        final BlockingQueue<Long> requests = new LinkedBlockingQueue<>();
        final CompletableFuture<Void> cancelled = new CompletableFuture<>();
        final CompletableFuture<Flow.Subscriber<? super ByteBuf>> subscriber = new CompletableFuture<>();

        @Override
        public void subscribe(Flow.Subscriber<? super ByteBuf> to) {
            subscriber.complete(to);
            to.onSubscribe(this);
        }

        @Override
        public void request(long count) {
            requests.add(count);
        }

        @Override
        public void cancel() {
            cancelled.complete(null);
        }
    }

    @Test
    void aPublisherIsAskedForAsMuchAsThereIsRoomFor() {
        BlockingQueue<Exchange> begun = new LinkedBlockingQueue<>(); // and none accepted
        try (RdmaServer server = onLoop((exchange, message) -> begun.add(exchange));
                RdmaClient client =
                        RdmaClient.builder().group(group).maxPending(8, 100_000).connect(host(), server.port())) {
            List<MessageStream> streams = new ArrayList<>();
            for (int i = 1; i < 10; i++) { // a request counts, too, until it is sent
                int now = i;
                streams.add(client.stream(new byte[0], DEFAULTS));
                Patience.until("it has begun", () -> begun.size() == now);
            }
            streams.subList(0, 6).forEach(each -> each.send(new byte[1]));
            ByHand publisher = new ByHand();
            ByHand other = new ByHand();
            streams.get(6).sendAll(publisher);
            streams.get(7).sendAll(other);
            assertThat(publisher.requests).isEmpty();
            streams.get(0).cancel();
            assertThat(Patience.take("a request", publisher.requests)).isOne();
            assertThat(Patience.take("a request", other.requests)).isOne();
            publisher.subscriber.join().onNext(Unpooled.wrappedBuffer(new byte[1]));
            assertThat(publisher.requests).as("more than half waits").isEmpty();
            other.subscriber.join().onNext(Unpooled.wrappedBuffer(new byte[100_000]));
            assertThat(failure(streams.get(7))).isInstanceOf(SendLimitException.class);
            Patience.await("its end", other.cancelled.thenApply(none -> 1));
            streams.subList(1, 6).forEach(MessageStream::cancel);
            assertThat(Patience.take("a request", publisher.requests)).isOne();
        }
    }

    private static Metadata meta(String name, String value) {
        return Metadata.EMPTY.with(name, value);
    }

    /** In front of the first message, and with the end. */
    @Test
    void aHandlerMaySendMetadata() throws Exception {
        CountDownLatch goOn = new CountDownLatch(1);
        BlockingQueue<Metadata> seen = new LinkedBlockingQueue<>();
        MessageHandler handler = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            seen.add(stream.metadata().get());
            exchange.addReplyMetadata(meta("first", "1"));
            int count = message.readInt();
            for (int i = 0; i < count; i++) {
                stream.send(bytes("m" + i));
                exchange.addReplyMetadata(meta("last", "" + i));
            }
            goOn.await();
            if (message.isReadable()) {
                throw new RequestFailure(7, "no");
            }
            stream.end();
            seen.add(stream.trailers().get());
        };
        try (RdmaServer server = blocking(handler);
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .intercept(request -> request.onEnd((received, cause) -> seen.add(received)))
                        .connect(host(), server.port())) {
            MessageStream two =
                    client.stream(Unpooled.buffer().writeInt(2), DEFAULTS.withMetadata(meta("tenant", "blue")));
            assertThat(Patience.take("what came with the request", seen)).isEqualTo(meta("tenant", "blue"));
            assertThat(Patience.await("what came first", two.metadata())).isEqualTo(meta("first", "1"));
            two.receive().release();
            two.receive().release();
            assertThat(two.trailers()).isNotDone();
            goOn.countDown();
            assertThat(Patience.await("what came last", two.trailers())).isEqualTo(meta("last", "1"));
            Patience.await("the end", two.whenOver().thenApply(none -> 1));
            assertThat(List.of(Patience.take("the end", seen), Patience.take("the end", seen)))
                    .containsExactlyInAnyOrder(
                            Metadata.EMPTY, meta("first", "1").with("last", "1"));

            MessageStream none = client.stream(Unpooled.buffer().writeInt(0), DEFAULTS);
            assertThat(Patience.await("all of it", none.metadata())).isEqualTo(meta("first", "1"));
            assertThat(Patience.await("all of it", none.trailers())).isEqualTo(meta("first", "1"));

            MessageStream failing = client.stream(Unpooled.buffer().writeInt(1).writeByte(0), DEFAULTS);
            assertThat(failureOf(failing.trailers())).isInstanceOf(RequestFailure.class);
        }
    }

    @Test
    void metadataMayComeWithTheOnlyReplyOrNotAtAll() throws Exception {
        MessageHandler handler = (exchange, message) -> {
            if (message.isReadable()) {
                exchange.addReplyMetadata(meta("only", "1"));
                exchange.reply(message.retain());
            } else {
                ECHO.onMessage(exchange, message);
            }
        };
        try (RdmaServer server = blocking(handler);
                RdmaClient client = clientOf(server)) {
            MessageStream reply = client.stream(bytes("x"), DEFAULTS);
            assertThat(Patience.await("with the reply", reply.metadata())).isEqualTo(meta("only", "1"));
            assertThat(Patience.await("with the reply", reply.trailers())).isEqualTo(meta("only", "1"));
            assertThat(all(reply)).containsExactly("x");
            MessageStream echo = client.stream(new byte[0], DEFAULTS);
            CompletableFuture<Metadata> first = echo.metadata();
            assertThat(first).isNotDone();
            echo.send(bytes("y")).get();
            assertThat(Patience.await("nothing", first)).isEqualTo(Metadata.EMPTY);
            echo.end();
            assertThat(all(echo)).containsExactly("y");
            assertThat(Patience.await("nothing", echo.trailers())).isEqualTo(Metadata.EMPTY);
            MessageStream cancelled = client.stream(new byte[0], DEFAULTS);
            cancelled.cancel();
            assertThat(failureOf(cancelled.metadata())).isInstanceOf(CancellationException.class);
            assertThat(failureOf(cancelled.trailers())).isInstanceOf(CancellationException.class);
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

    /** What is reachable on the heap. */
    private static long liveBytes() {
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    /** Reads with pauses, for a collection of the heap at each tenth of the total: it has not grown. */
    private static void readSlowly(MessageStream stream, long total) {
        long got = 0;
        long liveAtFirst = 0;
        long nextTenth = 0;
        for (byte[] each : stream) {
            got += each.length;
            if (got >= nextTenth) {
                nextTenth += total / 10;
                long live = liveBytes();
                liveAtFirst = liveAtFirst == 0 ? live : liveAtFirst;
                assertThat(live).as("the heap after %d bytes", got).isLessThan(liveAtFirst + (16 << 20));
            }
        }
        assertThat(got).isEqualTo(total);
    }

    private void slowReader(long total, int bytes) throws Exception {
        BlockingQueue<Throwable> lost = new LinkedBlockingQueue<>();
        AtomicLong maxUsed = new AtomicLong();
        MessageHandler source = (exchange, message) -> {
            MessageStream stream = exchange.stream();
            ByteBuf one = Unpooled.wrappedBuffer(new byte[bytes]);
            long used = ChannelBuffers.usedBytes();
            for (long i = 0; i < total / bytes; i++) {
                stream.whenWritable().get();
                stream.send(one.retainedDuplicate()).addListener(sent -> {
                    if (!sent.isSuccess()) {
                        lost.add(sent.cause());
                    }
                });
                maxUsed.accumulateAndGet(ChannelBuffers.usedBytes() - used, Math::max);
            }
            stream.end();
        };
        try (RdmaServer server = blocking(source);
                RdmaClient client = clientOf(server)) {
            MessageStream stream = client.stream(new byte[0], DEFAULTS);
            stream.end();
            readSlowly(stream, total / bytes * bytes);
            assertThat(lost).isEmpty();
        }
        assertThat(maxUsed.get())
                .as("registered memory beyond that of the connections")
                .isLessThan(16 << 20);
    }

    @Test
    void muchGoesThroughOneStream() throws Exception {
        slowReader(64L << 20, 16_000);
        slowReader(16L << 20, 1_000_000);
    }

    @Test
    @Tag("full")
    @Timeout(value = 30, unit = TimeUnit.MINUTES) // 1 GB has taken 43 s on a machine that was busy with other things
    void veryMuchGoesThroughOneStream() throws Exception {
        slowReader(veryManyBytes(), 60_000);
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
