package org.verbena.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.verbena.api.Exchange;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.Target;
import org.verbena.testing.Faults.Direction;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;

/** The time of one client and its server, or two. */
class TestTimeTest extends InTestTime {
    @Test
    void aRequestEndsAtItsDeadlineAndNoSooner() {
        try (RdmaClient client = connect()) {
            CompletableFuture<byte[]> reply = hold(client, Duration.ofHours(1));
            time.advance(Duration.ofHours(1).minusNanos(1));
            assertThat(reply).isNotDone();
            assertThat(held).hasSize(1);
            assertThat(held.element().isCancelled()).isFalse();
            time.advance(Duration.ofNanos(1));
            assertThat(reply.exceptionNow()).isInstanceOf(RequestException.TimedOut.class);
            assertThat(held.element().isCancelled()).isTrue();
            assertThat(time.elapsed()).isEqualTo(Duration.ofHours(1));
        }
    }

    @Test
    void noTimePassesForWhatIsAnswered() {
        try (RdmaClient client = connect()) {
            CompletableFuture<byte[]> reply = client.request(ASKED, Duration.ofMillis(1));
            time.settle();
            assertThat(reply.join()).isEqualTo(ASKED);
            assertThat(time.elapsed()).isZero();
        }
    }

    @Test
    void aHandlerSeesItsTimePass() {
        try (RdmaClient client = connect()) {
            CompletableFuture<byte[]> reply = hold(client, Duration.ofMinutes(10));
            time.advance(Duration.ofMinutes(9));
            Exchange exchange = held.element();
            assertThat(exchange.remaining(Duration.ofDays(1))).isEqualTo(Duration.ofMinutes(1));
            exchange.reply(ASKED);
            time.settle();
            assertThat(reply.join()).isEqualTo(ASKED);
        }
    }

    @Test
    void aRequestWithoutAConnectionWaitsForItUntilItsDeadline() {
        faults.refuse(true);
        try (RdmaClient client =
                client().target(Target.of("127.0.0.1", server.port())).start()) {
            CompletableFuture<byte[]> late = hold(client, Duration.ofMinutes(5));
            CompletableFuture<byte[]> early = client.request(ASKED, Duration.ofMinutes(10));
            time.advance(Duration.ofMinutes(5));
            assertThat(late.exceptionNow()).isInstanceOf(ConnectionException.Unavailable.class);
            assertThat(early).isNotDone();
            faults.refuse(false);
            time.advance(Duration.ofSeconds(30)); // the longest wait between attempts
            assertThat(early.join()).isEqualTo(ASKED);
        }
    }

    /** When a client has tried to connect again. */
    private static List<Duration> attempts() {
        TestTime time = new TestTime();
        List<Duration> attempts = new ArrayList<>();
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(time.provider(), 1);
                RdmaServer server = RdmaServer.builder()
                        .group(loops)
                        .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message));
                Faults faults = Faults.at(server.port());
                RdmaClient client = RdmaClient.builder()
                        .group(loops)
                        .backOff(Duration.ofSeconds(1), Duration.ofSeconds(10))
                        .onState(state -> {
                            if (state == ClientState.CONNECTING) {
                                attempts.add(time.elapsed());
                            }
                        })
                        .connect("127.0.0.1", server.port())) {
            time.advance(Duration.ofMinutes(1));
            attempts.clear();
            faults.refuse(true);
            faults.drop();
            time.settle();
            assertThat(client.state()).isEqualTo(ClientState.BACKING_OFF);
            time.advance(Duration.ofMinutes(2));
            assertThat(client.state()).isEqualTo(ClientState.BACKING_OFF);
            faults.refuse(false);
            time.advance(Duration.ofSeconds(10));
            assertThat(client.state()).isEqualTo(ClientState.READY);
            assertThat(faults.connections()).isEqualTo(1);
        }
        return attempts;
    }

    @Test
    void aLostServerIsTriedAgainAfterLongerWaits() {
        List<Duration> attempts = attempts();
        Duration bound = Duration.ofSeconds(1);
        Duration last = Duration.ofMinutes(1);
        for (Duration attempt : attempts) {
            assertThat(attempt.minus(last)).isBetween(Duration.ZERO, bound);
            last = attempt;
            Duration longer = bound.multipliedBy(16).dividedBy(10);
            bound = longer.compareTo(Duration.ofSeconds(10)) < 0 ? longer : Duration.ofSeconds(10);
        }
        assertThat(attempts).hasSizeGreaterThan(12); // 2 minutes by waits of 10 s
        assertThat(attempts()).as("it is the same each time").isEqualTo(attempts);
    }

    @Test
    void aSilentPeerIsGivenUpByKeepalive() {
        try (RdmaClient client = connect()) {
            CompletableFuture<byte[]> reply = hold(client, Duration.ofDays(1));
            time.advance(Duration.ofMinutes(10)); // in which pings are answered
            assertThat(reply).isNotDone();
            assertThat(client.state()).isEqualTo(ClientState.READY);
            faults.silence(Direction.TO_CLIENT);
            time.advance(Duration.ofSeconds(40)); // twice KEEP_ALIVE_MILLIS
            assertThat(reply.exceptionNow())
                    .isInstanceOfSatisfying(
                            ConnectionException.class,
                            lost -> assertThat(lost.mayHaveBegun()).isTrue());
            assertThat(client.state()).isNotEqualTo(ClientState.READY);
        }
    }

    /** What the guide's section on tests shows. */
    @Test
    void aClientOutlivesASilence() {
        try (RdmaClient client = connect()) {
            faults.silence(Direction.TO_CLIENT);
            CompletableFuture<byte[]> reply = client.request(ASKED, Duration.ofSeconds(30));
            time.advance(Duration.ofSeconds(29));
            assertThat(reply).isNotDone();
            time.advance(Duration.ofSeconds(1));
            assertThat(reply.exceptionNow()).isInstanceOf(RequestException.TimedOut.class);
            time.advance(Duration.ofMinutes(1));
            assertThat(client.state()).isNotEqualTo(ClientState.READY);
            faults.resume(Direction.TO_CLIENT);
            time.advance(Duration.ofSeconds(30));
            assertThat(client.state()).isEqualTo(ClientState.READY);
        }
    }

    @Test
    void connectingToASilentServerTakesTheConnectTimeout() {
        faults.silence(Direction.TO_SERVER);
        CompletableFuture<RdmaClient> connecting =
                client().connectTimeout(Duration.ofMinutes(3)).connectAsync("127.0.0.1", server.port());
        time.advance(Duration.ofMinutes(3).minusMillis(1));
        assertThat(connecting).isNotDone();
        time.advance(Duration.ofMillis(1));
        assertThat(connecting.exceptionNow()).isInstanceOf(ConnectionException.TimedOut.class);
    }

    @Test
    void aHandshakeThatIsNotAnsweredTakesTheConnectTimeout() {
        faults.holdBack(Direction.TO_SERVER, 100);
        CompletableFuture<RdmaClient> connecting =
                client().connectTimeout(Duration.ofSeconds(20)).connectAsync("127.0.0.1", server.port());
        time.settle();
        assertThat(connecting).isNotDone();
        time.advance(Duration.ofSeconds(20));
        assertThat(connecting.exceptionNow()).isInstanceOf(ConnectionException.class);
    }

    @Test
    void aShutdownWaitsForItsHandlersUntilItsTimeIsOver() {
        try (RdmaClient client = connect()) {
            CompletableFuture<byte[]> reply = hold(client, Duration.ofDays(1));
            time.settle();
            CompletableFuture<Boolean> stopped = server.shutdown(Duration.ofMinutes(10));
            time.advance(Duration.ofMinutes(10).minusMillis(1));
            assertThat(stopped).isNotDone();
            assertThat(reply).isNotDone();
            time.advance(Duration.ofMillis(1));
            assertThat(reply).isDone();
            time.advance(Duration.ofSeconds(5));
            assertThat(stopped.join()).isFalse();
        }
    }

    @Test
    void aShutdownEndsWhenTheLastHandlerAnswers() {
        try (RdmaClient client = connect()) {
            CompletableFuture<byte[]> reply = hold(client, Duration.ofDays(1));
            time.settle();
            CompletableFuture<Boolean> stopped = server.shutdown(Duration.ofMinutes(10));
            time.advance(Duration.ofMinutes(9));
            held.element().reply(ASKED);
            time.settle();
            assertThat(reply.join()).isEqualTo(ASKED);
            assertThat(stopped.join()).isTrue();
            assertThat(time.elapsed()).isEqualTo(Duration.ofMinutes(9));
        }
    }

    @Test
    void aHedgeGoesToTheOtherServerAfterItsDelay() {
        try (RdmaServer other = bind(0);
                RdmaClient client = client().target(both(other))
                        .idempotent(true)
                        .hedgeAfter(Duration.ofSeconds(30))
                        .start()) {
            time.settle();
            CompletableFuture<byte[]> reply = hold(client, Duration.ofHours(1));
            time.advance(Duration.ofSeconds(30).minusNanos(1));
            assertThat(held).hasSize(1);
            time.advance(Duration.ofNanos(1));
            assertThat(held).hasSize(2);
            assertThat(reply).isNotDone();
            held.stream().skip(1).forEach(second -> second.reply(ASKED));
            time.settle();
            assertThat(reply.join()).isEqualTo(ASKED);
            assertThat(held.element().isCancelled()).isTrue();
        }
    }

    @Test
    void aHedgeOfTheSlowestGoesAfterTheTimeOfMost() {
        try (RdmaServer other = bind(0);
                RdmaClient client = client().target(both(other))
                        .idempotent(true)
                        .hedgeSlowest()
                        .start()) {
            time.settle();
            for (int i = 0; i < 200; i++) { // so many it needs, to know the time of most
                CompletableFuture<byte[]> reply = hold(client, Duration.ofHours(1));
                time.advance(Duration.ofSeconds(1));
                held.remove().reply(ASKED);
                time.settle();
                assertThat(reply.join()).isEqualTo(ASKED);
            }
            hold(client, Duration.ofHours(1));
            time.advance(Duration.ofMillis(900));
            assertThat(held).hasSize(1);
            time.advance(Duration.ofMillis(200));
            assertThat(held).hasSize(2);
        }
    }

    /** What a handler on a virtual thread sends has no more time than its own request. */
    @Test
    void virtualThreadsAndWhatTheySendGoByTheSameTime() {
        List<Duration> remaining = new ArrayList<>();
        try (RdmaClient behind = connect();
                RdmaServer front = RdmaServer.builder()
                        .group(loops)
                        .virtualThreads(true)
                        .bind("127.0.0.1", 0, MessageHandler.ofBytes((exchange, message) -> {
                            behind.request(message).exceptionally(late -> ASKED).join();
                            remaining.add(exchange.remaining(Duration.ofDays(1)));
                        }));
                RdmaClient client = client().connect("127.0.0.1", front.port())) {
            CompletableFuture<byte[]> reply = hold(client, Duration.ofSeconds(20));
            time.advance(Duration.ofSeconds(15));
            assertThat(held.element().remaining(Duration.ofDays(1))).isEqualTo(Duration.ofSeconds(5));
            time.advance(Duration.ofSeconds(5).plusMillis(1));
            assertThat(reply).isCompletedExceptionally();
            assertThat(remaining).hasSize(1).allMatch(left -> left.compareTo(Duration.ofMillis(1)) < 0);
        }
    }

    @Test
    void closingDoesNotWaitForASilentPeer() {
        RdmaClient client = connect();
        faults.silence(Direction.TO_SERVER);
        faults.silence(Direction.TO_CLIENT);
        CompletableFuture<byte[]> reply = hold(client, Duration.ofDays(1));
        client.close(); // for which time passes by itself
        assertThat(time.elapsed()).isPositive();
        time.advance(Duration.ofMinutes(1)); // the connection itself waits as long as CLOSE_TIMEOUT_MILLIS says
        assertThat(reply).isCompletedExceptionally();
    }

    @Test
    void whatIsScheduledOnALoopRunsInOrder() {
        List<String> order = new ArrayList<>();
        var loop = loops.next();
        loop.schedule(() -> order.add("2 s at " + time.elapsed().toSeconds()), 2, TimeUnit.SECONDS);
        loop.schedule(
                () -> {
                    order.add("1 s at " + time.elapsed().toSeconds());
                    loop.schedule(() -> order.add("3 s at " + time.elapsed().toSeconds()), 2, TimeUnit.SECONDS);
                },
                1,
                TimeUnit.SECONDS);
        time.advance(Duration.ofSeconds(10));
        assertThat(order).containsExactly("1 s at 1", "2 s at 2", "3 s at 3");
    }

    @Test
    void timeDoesNotGoBackNorPassOnWhatGoesByIt() {
        assertThatThrownBy(() -> time.advance(Duration.ofNanos(-1))).isInstanceOf(IllegalArgumentException.class);
        assertThat(loops.submit(time::settle).awaitUninterruptibly().cause()).isInstanceOf(IllegalStateException.class);
    }
}
