package org.verbena.testing;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.verbena.api.Exchange;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.service.MessageStream;
import org.verbena.testing.Faults.Direction;
import org.verbena.transport.RequestException;

/** When a client leaves a server alone, replaces a connection or ends a stream, and when a server is overloaded. */
class ServersInTestTimeTest extends InTestTime {
    private static final Duration SHORT = Duration.ofMillis(100);

    /** So many requests go to one of two servers only with a chance of one to 2^40. */
    private static final int MANY = 40;

    private final AtomicInteger others = new AtomicInteger();

    /** Answers, and counts what it answers. */
    private RdmaServer other() {
        return RdmaServer.builder().group(loops).bind("127.0.0.1", 0, MessageHandler.ofBytes((exchange, message) -> {
            others.incrementAndGet();
            exchange.reply(message);
        }));
    }

    /** How many of these requests the other server has answered, when all were answered at once. */
    private int answeredByTheOther(RdmaClient client, int requests) {
        int before = others.get();
        Duration now = time.elapsed();
        for (int i = 0; i < requests; i++) {
            CompletableFuture<byte[]> reply = client.request(ASKED, SHORT);
            time.settle();
            assertThat(reply.join()).isEqualTo(ASKED);
        }
        assertThat(time.elapsed()).isEqualTo(now);
        return others.get() - before;
    }

    /** Sends requests until so many have met the server that is silent. */
    private void lose(RdmaClient client, int requests) {
        for (int lost = 0; lost < requests; ) {
            CompletableFuture<byte[]> reply = client.request(ASKED, SHORT);
            time.settle();
            if (!reply.isDone()) {
                time.advance(SHORT);
                assertThat(reply.exceptionNow()).isInstanceOf(RequestException.TimedOut.class);
                lost++;
            }
        }
    }

    @Test
    void aServerThatAnswersNoRequestsIsTriedAgainLaterEachTime() {
        try (RdmaServer other = other();
                RdmaClient client = client().target(both(other)).connect()) {
            time.settle();
            assertThat(answeredByTheOther(client, MANY)).isBetween(1, MANY - 1);
            for (int seconds = 1; seconds <= 8; seconds *= 2) {
                faults.silence(Direction.TO_CLIENT);
                lose(client, 5);
                assertThat(answeredByTheOther(client, MANY)).isEqualTo(MANY);
                faults.resume(Direction.TO_CLIENT);
                time.advance(Duration.ofSeconds(seconds).minusNanos(1));
                assertThat(answeredByTheOther(client, MANY))
                        .as("within %d s", seconds)
                        .isEqualTo(MANY);
                time.advance(Duration.ofNanos(1));
                assertThat(answeredByTheOther(client, MANY))
                        .as("after %d s", seconds)
                        .isBetween(1, MANY - 1);
            }
            // It has answered ten times as long as it was left alone the last time.
            time.advance(Duration.ofSeconds(80));
            faults.silence(Direction.TO_CLIENT);
            lose(client, 5);
            faults.resume(Direction.TO_CLIENT);
            time.advance(Duration.ofSeconds(1));
            assertThat(answeredByTheOther(client, MANY)).isBetween(1, MANY - 1);
        }
    }

    @Test
    void aServerThatAnswersNoPingsIsLeftUntilItConnectsAgain() {
        try (RdmaServer other = other();
                RdmaClient client = client().target(both(other)).connect()) {
            time.settle();
            faults.silence(Direction.TO_CLIENT);
            faults.silence(Direction.TO_SERVER);
            time.advance(Duration.ofSeconds(40)); // twice KEEP_ALIVE_MILLIS, without a request
            assertThat(answeredByTheOther(client, MANY)).isEqualTo(MANY);
            faults.resume(Direction.TO_CLIENT);
            faults.resume(Direction.TO_SERVER);
            time.advance(Duration.ofSeconds(30)); // the longest wait between attempts
            assertThat(answeredByTheOther(client, MANY)).isBetween(1, MANY - 1);
        }
    }

    @Test
    void anOldConnectionIsReplacedAndEndsWithItsLastRequest() {
        try (RdmaClient client = client().maxConnectionAge(Duration.ofHours(1)).connect("127.0.0.1", server.port())) {
            Channel first = client.channel();
            CompletableFuture<byte[]> reply = hold(client, Duration.ofHours(2));
            time.advance(Duration.ofMinutes(54).minusNanos(1)); // up to a tenth earlier than said
            assertThat(client.channel()).isSameAs(first);
            time.advance(Duration.ofMinutes(6).plusNanos(1));
            Channel second = client.channel();
            assertThat(second).isNotSameAs(first);
            assertThat(first.isOpen()).isTrue();
            assertThat(faults.connections()).isEqualTo(2);
            held.element().reply(ASKED);
            time.settle();
            assertThat(reply.join()).isEqualTo(ASKED);
            assertThat(first.isOpen()).isFalse();
            assertThat(faults.connections()).isEqualTo(1);
            time.advance(Duration.ofMinutes(60));
            assertThat(client.channel()).isNotSameAs(second);
            assertThat(faults.connections()).isEqualTo(1);
        }
    }

    /** Else the requests of all would wait for the connections of all. */
    @Test
    void aServerIsLeftByOneClientAfterTheOther() {
        for (Duration max : List.of(Duration.ofHours(1), Duration.ofMillis(800))) {
            Duration between = max.toMillis() < 1_000 ? Duration.ofMillis(5) : Duration.ofMillis(10);
            List<RdmaClient> clients = new ArrayList<>();
            try (RdmaServer crowded = other()) {
                for (int i = 0; i < 41; i++) {
                    clients.add(client().connect("127.0.0.1", crowded.port()));
                }
                time.settle();
                CompletableFuture<Boolean> shutdown = crowded.shutdown(max);
                time.settle();
                for (int left = 40; left > 0; left--) {
                    assertThat(crowded.connections().size()).as("most %s", max).isEqualTo(left);
                    int before = others.get();
                    clients.forEach(client -> client.request(ASKED, Duration.ofMinutes(1)));
                    time.advance(between.minusNanos(1));
                    assertThat(others.get() - before).isEqualTo(left);
                    assertThat(crowded.connections().size()).isEqualTo(left);
                    time.advance(Duration.ofNanos(1));
                }
                time.settle();
                assertThat(shutdown.join()).isTrue();
            } finally {
                clients.forEach(RdmaClient::close);
            }
        }
    }

    /** While the server refuses connections, it is served by the old one. */
    @Test
    void anOldConnectionStaysUntilThereIsAnother() {
        try (RdmaClient client = client().maxConnectionAge(Duration.ofHours(1)).connect("127.0.0.1", server.port())) {
            Channel first = client.channel();
            faults.refuse(true);
            time.advance(Duration.ofMinutes(61));
            CompletableFuture<byte[]> reply = client.request(ASKED, SHORT);
            time.settle();
            assertThat(reply.join()).isEqualTo(ASKED);
            assertThat(client.channel()).isSameAs(first);
            faults.refuse(false);
            time.advance(Duration.ofSeconds(1)); // between attempts
            assertThat(client.channel()).isNotSameAs(first);
            assertThat(first.isOpen()).isFalse();
        }
    }

    private static List<CompletableFuture<byte[]>> ask(RdmaClient client, int requests) {
        List<CompletableFuture<byte[]>> replies = new ArrayList<>();
        for (int i = 0; i < requests; i++) {
            replies.add(client.request(ASKED, Duration.ofHours(1)));
        }
        return replies;
    }

    /** A burst is served, however long it waits; a queue that stood for a whole interval is not. */
    @Test
    void whatHasWaitedForLongIsRefusedWhileTheQueueStands() {
        BlockingQueue<Exchange> begun = new LinkedBlockingQueue<>();
        BlockingQueue<Boolean> turns = new LinkedBlockingQueue<>();
        try (RdmaServer slow = RdmaServer.builder()
                        .group(loops)
                        .virtualThreads(true)
                        .maxHandlers(1, 100)
                        .shedding(Duration.ofSeconds(1), Duration.ofSeconds(10))
                        .bind("127.0.0.1", 0, MessageHandler.ofBytes((exchange, message) -> {
                            begun.add(exchange);
                            turns.take();
                            exchange.reply(message);
                        }));
                RdmaClient client = client().connect("127.0.0.1", slow.port())) {
            List<CompletableFuture<byte[]>> burst = ask(client, 4);
            time.settle();
            assertThat(begun).hasSize(1);
            time.advance(Duration.ofSeconds(5));
            turns.add(true);
            time.advance(Duration.ofSeconds(6));
            turns.add(true);
            time.settle();
            assertThat(begun).as("the third has waited 11 s").hasSize(3);
            List<CompletableFuture<byte[]>> more = ask(client, 4);
            time.advance(Duration.ofSeconds(5));
            turns.add(true);
            time.settle();
            assertThat(begun).as("the interval has not ended").hasSize(4);
            time.advance(Duration.ofSeconds(6));
            turns.add(true);
            time.settle();
            assertThat(burst).allSatisfy(each -> assertThat(each.join()).isEqualTo(ASKED));
            assertThat(begun).hasSize(4);
            assertThat(more)
                    .allSatisfy(each -> assertThat(each.exceptionNow())
                            .isInstanceOfSatisfying(
                                    RequestException.Overloaded.class,
                                    refused -> assertThat(refused.retryAfter()).isEqualTo(Duration.ofSeconds(11))));
            assertThat(slow.overloadedRequests()).isEqualTo(4);
            List<CompletableFuture<byte[]>> last = ask(client, 1);
            turns.add(true);
            time.settle();
            assertThat(last).allSatisfy(each -> assertThat(each.join()).isEqualTo(ASKED));
        }
    }

    /** How long a client takes to give up a server that refuses all it gets. */
    private static Duration refusedFor() {
        TestTime time = new TestTime();
        AtomicReference<Duration> given = new AtomicReference<>();
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(time.provider(), 1);
                RdmaServer full = RdmaServer.builder()
                        .group(loops)
                        .virtualThreads(true)
                        .maxHandlers(1, 0)
                        .interruptCancelled(true)
                        .bind("127.0.0.1", 0, (exchange, message) -> new CompletableFuture<Void>().get());
                RdmaClient client = RdmaClient.builder().group(loops).retries(5).connect("127.0.0.1", full.port())) {
            client.request(ASKED, Duration.ofHours(1));
            time.settle();
            client.request(Unpooled.wrappedBuffer(ASKED), Duration.ofHours(1)).addListener(refused -> {
                assertThat(refused.cause()).isInstanceOf(RequestException.Overloaded.class);
                given.set(time.elapsed());
            });
            time.advance(Duration.ofMinutes(1));
            assertThat(full.overloadedRequests()).isEqualTo(6);
        }
        return given.get();
    }

    @Test
    void theWaitsAfterRefusalsAreTheSameEachTime() {
        Duration first = refusedFor();
        assertThat(first).isBetween(Duration.ofMillis(31), Duration.ofMillis(62)); // 1, 2, 4, 8, 16 ms and up to twice
        assertThat(refusedFor()).isEqualTo(first);
    }

    private static RequestOptions within(Duration timeout) {
        return RequestOptions.DEFAULTS.withTimeout(timeout);
    }

    /** Holds the streams of clients. */
    private RdmaServer streams(BlockingQueue<Exchange> begun) {
        return RdmaServer.builder().group(loops).bind("127.0.0.1", 0, (exchange, message) -> {
            exchange.stream();
            begun.add(exchange);
        });
    }

    @Test
    void aStreamEndsAtItsDeadlineAtBothEnds() {
        BlockingQueue<Exchange> begun = new LinkedBlockingQueue<>();
        try (RdmaServer streaming = streams(begun);
                RdmaClient client = client().connect("127.0.0.1", streaming.port())) {
            MessageStream stream = client.stream(ASKED, within(Duration.ofHours(1)));
            time.advance(Duration.ofHours(1).minusNanos(1));
            MessageStream theirs = begun.element().stream();
            CompletableFuture<Void> sent = theirs.send(ASKED);
            time.settle();
            assertThat(sent).isCompleted();
            assertThat(stream.whenOver()).isNotDone();
            assertThat(theirs.whenOver()).isNotDone();
            assertThat(begun.element().isCancelled()).isFalse();
            time.advance(Duration.ofNanos(1));
            assertThat(stream.whenOver().exceptionNow()).isInstanceOf(RequestException.TimedOut.class);
            assertThat(theirs.whenOver()).isCompletedExceptionally();
            assertThat(begun.element().isCancelled()).isTrue();
            assertThat(time.elapsed()).isEqualTo(Duration.ofHours(1));
        }
    }

    @Test
    void aStreamWithoutADeadlineLastsAsLongAsItsConnection() {
        BlockingQueue<Exchange> begun = new LinkedBlockingQueue<>();
        try (RdmaServer streaming = streams(begun);
                RdmaClient client = client().connect("127.0.0.1", streaming.port());
                Faults lost = Faults.at(streaming.port())) {
            MessageStream stream = client.stream(ASKED, RequestOptions.DEFAULTS);
            time.advance(Duration.ofHours(6));
            assertThat(stream.whenOver()).isNotDone();
            assertThat(begun.element().isCancelled()).isFalse();
            lost.silence(Direction.TO_CLIENT);
            time.advance(Duration.ofSeconds(40)); // twice KEEP_ALIVE_MILLIS
            assertThat(stream.whenOver()).isCompletedExceptionally();
        }
    }

    /** One that a handler begins on its thread has the time that its request has left. */
    @Test
    void aStreamOfAHandlerEndsWithItsRequest() {
        BlockingQueue<Exchange> begun = new LinkedBlockingQueue<>();
        BlockingQueue<MessageStream> behind = new LinkedBlockingQueue<>();
        try (RdmaServer streaming = streams(begun);
                RdmaClient middle = client().connect("127.0.0.1", streaming.port());
                RdmaServer front = RdmaServer.builder()
                        .group(loops)
                        .bind(
                                "127.0.0.1",
                                0,
                                (exchange, message) -> behind.add(middle.stream(ASKED, RequestOptions.DEFAULTS)));
                RdmaClient client = client().connect("127.0.0.1", front.port())) {
            CompletableFuture<byte[]> reply = client.request(ASKED, Duration.ofSeconds(20));
            time.advance(Duration.ofSeconds(20).minusMillis(1));
            assertThat(behind.element().whenOver()).isNotDone();
            time.advance(Duration.ofMillis(2)); // what is left goes in microseconds
            assertThat(reply).isCompletedExceptionally();
            assertThat(behind.element().whenOver().exceptionNow()).isInstanceOf(RequestException.TimedOut.class);
            assertThat(begun.element().isCancelled()).isTrue();
        }
    }
}
