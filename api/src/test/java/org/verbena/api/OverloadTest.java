package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.verbena.api.internal.request.Retries;
import org.verbena.transport.RequestException;
import org.verbena.transport.spi.Patience;

/** Servers that take no more requests than they can serve. */
class OverloadTest extends ApiSuite {
    /** More than any test handles. */
    private static final int MANY = 1_000_000;

    private final Semaphore turns = new Semaphore(0);
    private final AtomicInteger atOnce = new AtomicInteger();
    private final AtomicInteger most = new AtomicInteger();
    private final BlockingQueue<Integer> begun = new LinkedBlockingQueue<>();

    @Override
    protected String provider() {
        return "soft";
    }

    private RdmaServer.Builder server() {
        return RdmaServer.builder().group(group).virtualThreads(true);
    }

    private RdmaClient client(RdmaServer server) {
        return RdmaClient.builder().group(group).connect(host(), server.port());
    }

    /** Notes that it began, and replies when it has a turn. */
    private void handle(Exchange exchange, ByteBuf message) throws InterruptedException {
        most.accumulateAndGet(atOnce.incrementAndGet(), Math::max);
        begun.add((int) message.getByte(message.readerIndex()));
        turns.acquire();
        atOnce.decrementAndGet();
        exchange.reply(message.retain());
    }

    private static RequestException.Overloaded refusal(CompletableFuture<byte[]> request) {
        AtomicReference<Throwable> cause = new AtomicReference<>();
        Patience.until("the request fails", () -> request.isCompletedExceptionally());
        request.whenComplete((reply, failure) -> cause.set(failure));
        assertThat(cause.get()).isInstanceOf(RequestException.Overloaded.class);
        return (RequestException.Overloaded) cause.get();
    }

    @Test
    void someRunSomeWaitAndTheRestIsRefused() {
        try (RdmaServer server = server().maxHandlers(2, 3).bind(host(), 0, this::handle);
                RdmaClient client = client(server)) {
            long before = group.providerStatistics().overloadedRequests();
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                requests.add(client.request(new byte[] {(byte) i}));
            }
            RequestException.Overloaded refused = refusal(requests.get(5));
            assertThat(refused.isRetriable()).isTrue();
            assertThat(refused.retryAfter()).isBetween(Duration.ZERO, Patience.LIMIT);
            assertThat(refused).hasMessageContaining("overloaded").hasMessageContaining("try again in");
            assertThat(server.overloadedRequests()).isEqualTo(1);
            assertThat(group.providerStatistics().overloadedRequests()).isEqualTo(before + 1);
            // The first two begin side by side, those that wait in their order.
            assertThat(List.of(Patience.take("the first", begun), Patience.take("the second", begun)))
                    .containsExactlyInAnyOrder(0, 1);
            assertThat(most).hasValue(2);
            assertThat(group.providerStatistics().waitingRequests()).isEqualTo(3);
            turns.release(5);
            for (int i = 0; i < 5; i++) {
                assertThat(Patience.await("a reply", requests.get(i))).containsExactly(i);
            }
            assertThat(most).hasValue(2);
            assertThat(group.providerStatistics().waitingRequests()).isZero();
            turns.release();
            assertThat(Patience.await("room again", client.request(new byte[] {6})))
                    .containsExactly(6);
        }
    }

    /** What is cancelled gives its place up at once, and what it had. */
    @Test
    void cancelledRequestsTakeNoPlace() {
        try (RdmaServer server = server().maxHandlers(1, 50).bind(host(), 0, this::handle);
                RdmaClient client = client(server);
                RdmaClient other = client(server)) {
            CompletableFuture<byte[]> first = client.request(new byte[] {0});
            assertThat(Patience.take("the first", begun)).isZero();
            for (int round = 1; round <= 3; round++) {
                List<CompletableFuture<byte[]>> waiting = new ArrayList<>();
                for (int i = 0; i < 50; i++) {
                    waiting.add(client.request(new byte[] {1}));
                }
                for (Channel accepted : server.connections()) {
                    settle(client.channel(), accepted);
                }
                assertThat(refusal(other.request(new byte[] {2})).retryAfter())
                        .isBetween(Duration.ZERO, Patience.LIMIT);
                waiting.forEach(each -> each.cancel(false));
                int dropped = round * 50;
                Patience.until("all are dropped", () -> server.abandonedRequests() == dropped);
            }
            CompletableFuture<byte[]> next = other.request(new byte[] {3});
            for (Channel accepted : server.connections()) {
                settle(other.channel(), accepted);
            }
            assertThat(next).as("it waits").isNotDone();
            turns.release(2);
            assertThat(Patience.await("the first reply", first)).containsExactly(0);
            assertThat(Patience.await("the next reply", next)).containsExactly(3);
            assertThat(Patience.take("the next", begun)).isEqualTo(3);
            assertThat(server.overloadedRequests()).isEqualTo(3);
        }
    }

    @Test
    void messagesThatAreNoRequestsAreNotLimited() {
        try (RdmaServer server = server().maxHandlers(1, 0).bind(host(), 0, this::handle);
                RdmaClient client = client(server)) {
            CompletableFuture<byte[]> request = client.request(new byte[] {1});
            assertThat(Patience.take("the request", begun)).isEqualTo(1);
            client.send(new byte[] {2});
            assertThat(Patience.take("the message", begun)).isEqualTo(2);
            turns.release(2);
            Patience.await("a reply", request);
        }
    }

    @Test
    void theFrameIsAsDocumented() {
        try (RdmaServer server = server().maxHandlers(1, 0).bind(host(), 0, this::handle)) {
            RdmaChannel peer = stranger(server);
            peer.writeAndFlush(Unpooled.wrappedBuffer(HexFormat.of().parseHex("0400000000000001" + "ffffffff" + "01")));
            assertThat(Patience.take("the request", begun)).isEqualTo(1);
            peer.writeAndFlush(Unpooled.wrappedBuffer(HexFormat.of().parseHex("0400000000000003" + "ffffffff" + "03")));
            byte[] refusal = inbox(peer).next();
            assertThat(HexFormat.of().formatHex(refusal))
                    .startsWith("0500000000000003")
                    .hasSize(24);
            turns.release();
            assertThat(HexFormat.of().formatHex(inbox(peer).next())).isEqualTo("020000000000000101");
            done("closing", peer.close());
        }
    }

    @Test
    void sheddingBeginsWithAStandingQueueAndEndsWithIt() {
        try (RdmaServer server = server().maxHandlers(1, 1000)
                        .shedding(Duration.ofMillis(1), Duration.ofMillis(20))
                        .bind(host(), 0, this::handle);
                RdmaClient client = client(server)) {
            shedAndRecover(server, client);
        }
    }

    private void shedAndRecover(RdmaServer server, RdmaClient client) {
        List<CompletableFuture<byte[]>> requests = new ArrayList<>();
        Patience.until("one is refused, where more come than are handled", () -> {
            for (int i = 0; i < 10; i++) {
                requests.add(client.request(new byte[1]));
            }
            turns.release();
            return server.overloadedRequests() > 0;
        });
        turns.release(MANY);
        int refusals = 0;
        for (CompletableFuture<byte[]> request : requests) {
            Patience.until("an outcome", request::isDone);
            if (request.isCompletedExceptionally()) {
                assertThat(refusal(request).retryAfter()).isGreaterThanOrEqualTo(Duration.ofMillis(2));
                refusals++;
            }
        }
        assertThat(refusals).as("not those of the first interval").isLessThan(requests.size());
        assertThat(server.overloadedRequests()).isEqualTo(refusals);
        Patience.until("requests are served again", () -> {
            CompletableFuture<byte[]> again = client.request(new byte[1]);
            Patience.until("an outcome", again::isDone);
            return !again.isCompletedExceptionally();
        });
    }

    @Test
    void aHandlerOnTheLoopShedsWhatWaitedWithItsBatch() {
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .shedding(Duration.ofMillis(1), Duration.ofMillis(20))
                        .bind(host(), 0, this::handle);
                RdmaClient client = client(server)) {
            shedAndRecover(server, client);
        }
    }

    /** Answers the next request with a kind and what follows; returns the request. */
    private static byte[] answer(RdmaChannel server, int kind, byte... rest) {
        byte[] frame = nextRequest(server);
        server.writeAndFlush(Unpooled.wrappedBuffer(new byte[] {(byte) kind}, Arrays.copyOfRange(frame, 1, 8), rest));
        return frame;
    }

    private static byte[] afterMicros(int micros) {
        return ByteBuffer.allocate(4).putInt(micros).array();
    }

    @Test
    void aClientMaySendARefusedRequestAgain() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .retries(2)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel accepted = server.next();
            for (int size : new int[] {100, 100_000}) { // eight retries, within the burst
                byte[] message = patternBytes(size, size);
                CompletableFuture<byte[]> request = client.request(message);
                byte[] first = answer(accepted, 5, afterMicros(1000));
                byte[] second = answer(accepted, 5, afterMicros(0));
                byte[] third = answer(accepted, 2, (byte) 7);
                assertThat(Patience.await("the reply", request)).containsExactly(7);
                for (byte[] frame : List.of(first, second, third)) {
                    assertThat(payload(frame)).isEqualTo(message);
                }
                assertThat(List.of(first[7], second[7], third[7])).doesNotHaveDuplicates();

                request = client.request(message);
                for (int i = 0; i < 3; i++) {
                    answer(accepted, 5, afterMicros(1000));
                }
                assertThat(refusal(request).retryAfter()).isEqualTo(Duration.ofMillis(1));
            }
        }
    }

    @Test
    void retriesAreATenthOfTheReplies() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .retries(1)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel accepted = server.next();
            for (int i = 0; i < Retries.BURST; i++) {
                CompletableFuture<byte[]> request = client.request(new byte[1]);
                answer(accepted, 5, afterMicros(0));
                answer(accepted, 5, afterMicros(0));
                refusal(request);
            }
            for (int round = 0; round < 2; round++) {
                CompletableFuture<byte[]> request = client.request(new byte[1]);
                answer(accepted, 5, afterMicros(0));
                refusal(request); // at once
                for (int i = 0; i < Retries.REPLIES_PER_RETRY; i++) {
                    CompletableFuture<byte[]> other = client.request(new byte[1]);
                    answer(accepted, 2);
                    Patience.await("a reply", other);
                }
                request = client.request(new byte[1]);
                answer(accepted, 5, afterMicros(0));
                answer(accepted, 5, afterMicros(0));
                refusal(request);
            }
        }
    }

    @Test
    void nothingIsSentAgainAfterItsTimeOrTheClientsEnd() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .retries(5)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel accepted = server.next();
            CompletableFuture<byte[]> request = client.request(new byte[1], Duration.ofMinutes(5));
            answer(accepted, 5, afterMicros(400_000_000));
            refusal(request);
            CompletableFuture<byte[]> waiting = client.request(new byte[3000], Duration.ofMinutes(5));
            answer(accepted, 5, afterMicros(100_000_000));
            CompletableFuture<byte[]> cancelled = client.request(new byte[3000], Duration.ofMinutes(5));
            answer(accepted, 5, afterMicros(100_000_000));
            CompletableFuture<byte[]> last = client.request(new byte[1]);
            answer(accepted, 2);
            Patience.await("both refusals have arrived", last);
            assertThat(waiting).isNotDone();
            assertThat(cancelled.cancel(false)).isTrue();
            accepted.close();
            RdmaChannel again = server.next();
            settle(again, again);
            assertThat(waiting).as("another connection does not matter").isNotDone();
            client.closeAsync();
            Patience.until("it ends with the client", waiting::isCompletedExceptionally);
        }
    }

    @Test
    void aTruncatedRefusalEndsTheConnection() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            CompletableFuture<byte[]> request = client.request(new byte[1]);
            RdmaChannel connection = client.channel();
            RdmaChannel accepted = server.next();
            inbox(accepted).next();
            accepted.writeAndFlush(Unpooled.wrappedBuffer(HexFormat.of().parseHex("0500000000000001" + "0000")));
            Patience.until("the request fails", request::isCompletedExceptionally);
            done("the client closing", connection.closeFuture());
        }
    }

    @Test
    void optionsAreChecked() {
        assertThatThrownBy(() -> RdmaClient.builder().retries(-1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> RdmaServer.builder().maxHandlers(0, 1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> RdmaServer.builder().maxHandlers(1, -1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> RdmaServer.builder().shedding(Duration.ofMillis(2), Duration.ofMillis(1)))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> RdmaServer.builder().shedding(Duration.ZERO, Duration.ofMillis(1)))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() ->
                        RdmaServer.builder().group(group).maxHandlers(1, 1).bind(host(), 0, this::handle))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("virtualThreads");
    }

    /** Ends and arrivals meet in every order; none is lost, and never are there too many. */
    @Test
    void noRequestIsForgotten() {
        MessageHandler quick = (exchange, message) -> {
            most.accumulateAndGet(atOnce.incrementAndGet(), Math::max);
            Thread.yield();
            atOnce.decrementAndGet();
            exchange.reply(message.retain());
        };
        try (RdmaServer server = server().maxHandlers(3, 100_000).bind(host(), 0, quick)) {
            List<RdmaClient> clients = List.of(client(server), client(server), client(server));
            for (int round = 0; round < 20; round++) {
                List<CompletableFuture<byte[]>> requests = new ArrayList<>();
                for (int i = 0; i < 60; i++) {
                    requests.add(clients.get(i % 3).request(new byte[1]));
                }
                requests.forEach(request -> Patience.await("a reply", request));
            }
            clients.forEach(RdmaClient::close);
            assertThat(most.get()).isBetween(1, 3);
            assertThat(server.overloadedRequests()).isZero();
        }
    }
}
