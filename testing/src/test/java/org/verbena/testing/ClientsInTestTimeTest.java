package org.verbena.testing;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.ClientGroup;
import org.verbena.api.ConnectedServer;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.client.Target;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestFailure;

/** How soon a client connects again, and what it says meanwhile. */
class ClientsInTestTimeTest extends InTestTime {
    private static final Duration OUTAGE = Duration.ofMinutes(10);

    /** The first bound of the waits, and what an attempt takes. */
    private static final Duration AT_ONCE = Duration.ofMillis(51);

    private static final int MANY = 200;

    private static final Duration HEDGE = Duration.ofMillis(20);

    private static final RequestOptions HEDGED =
            RequestOptions.DEFAULTS.withIdempotent(true).withHedgeAfter(HEDGE);

    private void awaitOutage(RdmaClient client) {
        faults.refuse(true);
        faults.drop();
        time.advance(OUTAGE);
        assertThat(client.state()).isNotEqualTo(ClientState.READY);
        faults.refuse(false);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whenTheLastConnectionEndsAllAddressesAreTriedAtOnce(boolean isAsked) {
        try (RdmaServer other = bind(0);
                Faults away = Faults.at(other.port())) {
            away.refuse(true);
            try (RdmaClient client = client().target(both(other)).connect()) {
                time.advance(OUTAGE);
                away.refuse(false);
                faults.refuse(true);
                if (isAsked) {
                    server.shutdown(Duration.ofSeconds(1));
                } else {
                    faults.drop();
                }
                time.advance(AT_ONCE);
                assertThat(client.state()).isEqualTo(ClientState.READY);
            }
        }
    }

    @Test
    void aClientTriesSoonerWhileARequestWaits() {
        try (RdmaClient client = connect()) {
            awaitOutage(client);
            CompletableFuture<byte[]> reply = client.request(ASKED, Duration.ofSeconds(10));
            time.advance(Duration.ofSeconds(3));
            assertThat(reply.resultNow()).isEqualTo(ASKED);
        }
    }

    @Test
    void aClientTriesSoonerWhileSomebodyWaitsForIt() {
        try (RdmaClient client = connect()) {
            awaitOutage(client);
            CompletableFuture<Void> ready = client.whenReady();
            time.advance(Duration.ofSeconds(3));
            assertThat(ready).isCompleted();
        }
    }

    @Test
    void aProgramMayHaveItTryAtOnce() {
        try (RdmaClient client = connect()) {
            awaitOutage(client);
            client.resetBackoff();
            time.settle();
            assertThat(client.state()).isEqualTo(ClientState.READY);
        }
    }

    @Test
    void aServerThatAsksToLeaveIsNoFailure() {
        try (RdmaClient client = client().failFast().connect("127.0.0.1", server.port())) {
            server.shutdown(Duration.ofSeconds(1));
            time.settle();
            CompletableFuture<byte[]> waits = client.request(ASKED);
            time.settle();
            assertThat(waits).isNotDone();
            time.advance(AT_ONCE); // nobody listens there
            assertThat(waits.exceptionNow()).isInstanceOf(ConnectionException.Unavailable.class);
        }
    }

    @Test
    void aClientThatConnectsForTheFirstTimeDoesNotFailFast() {
        Target target = Target.of("127.0.0.1", server.port());
        try (RdmaClient client = client().failFast().target(target).start()) {
            CompletableFuture<byte[]> reply = client.request(ASKED);
            time.settle();
            assertThat(reply.resultNow()).isEqualTo(ASKED);
        }
    }

    @Test
    void aTargetThatIsNotFoundIsAStateWithAReason() {
        Queue<ClientState> states = new ConcurrentLinkedQueue<>();
        IllegalStateException why = new IllegalStateException("no registry");
        Target target = Target.resolver(found -> {
            throw why;
        });
        try (RdmaClient client = client().target(target).onState(states::add).start()) {
            time.settle();
            assertThat(states).containsExactly(ClientState.CONNECTING, ClientState.BACKING_OFF);
            assertThat(client.lastFailure()).hasCause(why);
        }
    }

    @Test
    void addressesOfWhichNoneIsResolvedAreAFailureAtOnce() {
        Target target = Target.resolver(found -> {
            found.accept(List.of(InetSocketAddress.createUnresolved("nowhere.invalid", 1)));
            return () -> {};
        });
        CompletableFuture<RdmaClient> connecting = client().target(target).connectAsync();
        time.settle();
        assertThat(connecting.exceptionNow()).isInstanceOf(ConnectionException.Unreachable.class);
    }

    /** Sends requests one after another, and returns how many have failed or were given up after this time. */
    private int failures(RdmaClient client, int count, Duration patience) {
        int failed = 0;
        for (int i = 0; i < count; i++) {
            CompletableFuture<byte[]> reply = client.request(ASKED);
            time.settle();
            if (!reply.isDone()) {
                time.advance(patience);
            }
            failed += reply.isDone() && !reply.isCompletedExceptionally() ? 0 : 1;
            reply.cancel(false);
            time.settle();
        }
        return failed;
    }

    @Test
    void aServerThatFailsFastDrawsNoLoad() {
        MessageHandler broken = (exchange, message) -> {
            throw new RequestFailure(503, "broken");
        };
        try (RdmaServer other = RdmaServer.builder().group(loops).bind("127.0.0.1", 0, broken);
                RdmaClient client = client().target(both(other)).connect()) {
            time.settle();
            assertThat(failures(client, MANY, Duration.ZERO)).isBetween(1, 2);
            time.advance(Duration.ofSeconds(10));
            assertThat(failures(client, MANY, Duration.ZERO))
                    .as("it is tried again")
                    .isBetween(1, 2);
        }
    }

    /** Requests at a time, of which each is given up later than the others are answered: the server is ejected. */
    @Test
    void aServerWhoseRequestsAreGivenUpInsteadOfTimingOutIsEjected() {
        try (RdmaServer other = RdmaServer.builder().group(loops).bind("127.0.0.1", 0, (exchange, message) -> {});
                RdmaClient client = client().target(both(other)).connect()) {
            time.settle();
            // Five in a row, and those before the first reply of the other: until then nothing is usual.
            assertThat(failures(client, MANY, Duration.ofMillis(50))).isBetween(5, 25);
        }
    }

    /** A server that answers nothing while it hangs, and counts what it is asked. */
    private RdmaServer hanging(AtomicBoolean hangs, AtomicInteger asked) {
        MessageHandler handler = MessageHandler.ofBytes((exchange, message) -> {
            asked.incrementAndGet();
            if (!hangs.get()) {
                exchange.reply(message);
            }
        });
        return RdmaServer.builder().group(loops).bind("127.0.0.1", 0, handler);
    }

    /** Sends requests until a server gets none of them. */
    private void awaitEjection(RdmaClient client, AtomicInteger asked) {
        time.settle();
        failures(client, MANY, Duration.ofMillis(50));
        asked.set(0);
        failures(client, MANY, Duration.ZERO);
        assertThat(asked).as("requests of a server that is ejected").hasValue(0);
    }

    @Test
    void whereNoOtherServerIsLeftOneThatIsEjectedIsUsed() {
        AtomicBoolean hangs = new AtomicBoolean(true);
        AtomicInteger asked = new AtomicInteger();
        try (RdmaServer other = hanging(hangs, asked);
                RdmaClient client = client().target(both(other)).connect()) {
            awaitEjection(client, asked);
            hangs.set(false);
            faults.refuse(true);
            faults.drop();
            time.settle();
            assertThat(failures(client, 20, Duration.ZERO)).isZero();
            assertThat(asked).hasValue(20);
            faults.refuse(false);
            time.advance(AT_ONCE);
            assertThat(failures(client, 20, Duration.ZERO)).isZero();
            assertThat(asked).as("its ejection is not over").hasValue(20);
        }
    }

    /** That one keeps its connection, and is no reason to let the others wait. */
    @Test
    void whenAllButAnEjectedServerAreLostTheOthersAreTriedAtOnce() {
        AtomicInteger asked = new AtomicInteger();
        try (RdmaServer other = hanging(new AtomicBoolean(true), asked);
                RdmaServer third = bind(0);
                Faults away = Faults.at(third.port())) {
            away.refuse(true);
            List<InetSocketAddress> all = Stream.of(server, other, third)
                    .map(each -> new InetSocketAddress("127.0.0.1", each.port()))
                    .toList();
            try (RdmaClient client = client().target(Target.of(all)).connect()) {
                time.advance(OUTAGE);
                awaitEjection(client, asked);
                away.refuse(false);
                faults.refuse(true);
                faults.drop();
                time.advance(AT_ONCE);
                assertThat(failures(client, 20, Duration.ZERO)).isZero();
            }
        }
    }

    @Test
    void aServerForWhichHedgesAnswerIsEjected() {
        AtomicInteger asked = new AtomicInteger();
        try (RdmaServer other = hanging(new AtomicBoolean(true), asked);
                RdmaClient client = client().target(both(other)).connect()) {
            time.settle();
            for (int i = 0; i < MANY; i++) {
                CompletableFuture<byte[]> reply = client.request(ASKED, HEDGED);
                time.settle();
                if (!reply.isDone()) {
                    time.advance(HEDGE);
                }
                assertThat(reply).isCompleted();
            }
            assertThat(asked).hasValue(5); // in a row, which is what ejects it
        }
    }

    /** The first attempt is answered after all: that says nothing against the server of the second one. */
    @Test
    void aHedgeThatWasNotNeededCostsItsServerNothing() {
        AtomicInteger asked = new AtomicInteger();
        MessageHandler counting = MessageHandler.ofBytes((exchange, message) -> {
            asked.incrementAndGet();
            if (message.length > ASKED.length) {
                held.add(exchange);
            } else {
                exchange.reply(message);
            }
        });
        try (RdmaServer other = RdmaServer.builder().group(loops).bind("127.0.0.1", 0, counting);
                RdmaClient client = client().target(both(other)).connect()) {
            time.settle();
            for (int i = 0; i < 10; i++) { // as many hedges as a client has at first; one key: all at one server
                CompletableFuture<byte[]> reply = client.request("hold".getBytes(UTF_8), HEDGED.withKey("key"));
                time.settle();
                time.advance(HEDGE);
                assertThat(held).as("attempts").hasSize(2);
                held.remove().reply(ASKED);
                held.clear();
                time.settle();
                assertThat(reply).isCompleted();
            }
            asked.set(0);
            assertThat(failures(client, MANY, Duration.ZERO)).isZero();
            assertThat(asked.get()).as("half of them").isBetween(MANY / 5, MANY * 4 / 5);
        }
    }

    /** Whatever a program gives up at once, or its hedges do, says nothing of the servers. */
    @Test
    void whatAProgramGivesUpForReasonsOfItsOwnCostsAServerNothing() {
        AtomicInteger asked = new AtomicInteger();
        MessageHandler counting = MessageHandler.ofBytes((exchange, message) -> {
            asked.incrementAndGet();
            if (new String(message, UTF_8).equals("hold")) {
                held.add(exchange);
            } else {
                exchange.reply(message);
            }
        });
        try (RdmaServer other = RdmaServer.builder().group(loops).bind("127.0.0.1", 0, counting);
                RdmaClient client = client().target(both(other)).connect()) {
            time.settle();
            failures(client, MANY, Duration.ZERO); // both have answered by then
            for (int i = 0; i < MANY; i++) {
                CompletableFuture<byte[]> given = hold(client, OUTAGE);
                time.settle();
                given.cancel(false);
                time.settle();
            }
            asked.set(0);
            assertThat(failures(client, MANY, Duration.ZERO)).isZero();
            assertThat(asked.get()).as("half of them").isBetween(MANY / 5, MANY * 4 / 5);
        }
    }

    @Test
    void whatAClientSaysOfItselfItSaysOnEachConnection() {
        ClientGroup room = new ClientGroup();
        MessageHandler joins = (exchange, message) -> {
            room.add(exchange.client());
            exchange.reply(message.retain());
        };
        AtomicInteger received = new AtomicInteger();
        try (RdmaServer rooms = RdmaServer.builder().group(loops).bind("127.0.0.1", 0, joins);
                Faults weather = Faults.at(rooms.port());
                RdmaClient client = client().onMessage((exchange, message) -> received.incrementAndGet())
                        .onConnection(connection ->
                                connection.request("join".getBytes(UTF_8)).join())
                        .connect("127.0.0.1", rooms.port())) {
            for (int connection = 1; connection <= 3; connection++) {
                room.broadcast(ASKED);
                time.settle();
                assertThat(received).hasValue(connection);
                time.advance(Duration.ofSeconds(1)); // a connection that has lasted so long was a good one
                weather.drop();
                time.advance(AT_ONCE);
                assertThat(client.state()).isEqualTo(ClientState.READY);
            }
        }
    }

    @Test
    void aConnectionThatIsNotGreetedIsNotUp() {
        AtomicInteger greetings = new AtomicInteger();
        RuntimeException refusal = new IllegalStateException("not this server");
        Queue<ConnectedServer> refused = new ConcurrentLinkedQueue<>();
        CompletableFuture<RdmaClient> connecting = client().onConnection(connection -> {
                    greetings.incrementAndGet();
                    refused.add(connection);
                    throw refusal;
                })
                .connectAsync("127.0.0.1", server.port());
        time.settle();
        assertThat(connecting.exceptionNow()).isSameAs(refusal);
        assertThat(greetings).hasValue(1);
        assertThat(refused.remove().channel().isOpen()).isFalse();
    }
}
