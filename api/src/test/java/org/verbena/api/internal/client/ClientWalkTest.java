package org.verbena.api.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.LoggerFactory;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.Target;
import org.verbena.api.internal.request.NameLookup;
import org.verbena.api.internal.request.Operation;
import org.verbena.api.internal.request.SendLimit;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.spi.LoopClock;

/**
 * Random histories of a client whose connections, servers, threads and clock are the test's: servers come and go, ask
 * to leave, refuse, do not answer; calls of all kinds wait, move, are hedged and cancelled; addresses change. In each
 * of them every call has one outcome, what says that a request was not begun is right, the client is ready again once
 * its servers are, and nothing is left when it is closed.
 */
@Timeout(600)
class ClientWalkTest {
    /** How many histories; the seeds are 0 and up, so that one that has failed can be repeated. */
    private static final int HISTORIES = Integer.getInteger("tests.walks", 2_000);

    private static final long FIRST_SEED = Long.getLong("tests.walks.from", 0);

    private static final long MILLI = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    /** A request whose reply is its number. */
    private static final Operation<Long> REQUEST = (messenger, message, timeoutNanos, whole, goesOn) -> {
        throw new AssertionError("the transport handles it");
    };

    private final List<Logger> loggers = new ArrayList<>();

    @BeforeEach
    void logNothing() {
        for (Class<?> each : List.of(Links.class, Link.class, Resolution.class, Call.class)) {
            Logger logger = (Logger) LoggerFactory.getLogger(each);
            logger.setLevel(Level.OFF);
            loggers.add(logger);
        }
    }

    @AfterEach
    void logAgain() {
        loggers.forEach(logger -> logger.setLevel(null));
    }

    @Test
    void eachCallHasOneOutcomeAndTheClientIsReadyAgain() {
        Map<String, Integer> outcomes = new HashMap<>();
        for (long seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed++) {
            try {
                new History(seed).run(outcomes);
            } catch (Throwable failed) {
                throw new AssertionError("seed " + seed + ": " + failed.getMessage(), failed);
            }
        }
        // It goes where it is to go.
        assertThat(outcomes.keySet())
                .contains(
                        "reply",
                        "sent",
                        "LeanCancellationException",
                        "Lost begun",
                        "TimedOut",
                        "Overloaded",
                        "Unavailable",
                        "moved");
    }

    /** What is known of a call. */
    private static final class Asked {
        final boolean isRequest;
        final boolean idempotent;
        final ByteBuf message;
        int outcomes;

        @Nullable Throwable failure;

        Asked(boolean isRequest, boolean idempotent, ByteBuf message) {
            this.isRequest = isRequest;
            this.idempotent = idempotent;
            this.message = message;
        }
    }

    private static final class History implements Dialer {
        private final Random random;
        private final StepClock clock;
        private final List<WalkServer> servers;
        private final List<Asked> asked = new ArrayList<>();
        private final List<Future<?>> cancellable = new ArrayList<>();
        private final List<CompletableFuture<Void>> readers = new ArrayList<>();
        private final Set<WalkTransport> open = new LinkedHashSet<>();
        private final CallPlan plan;
        /** Has one connection, which is not made again. */
        private final boolean once;

        private final boolean idles;

        private final boolean failsFast;
        private final @Nullable LadderOptions ladder;
        private final Links links;
        private final Operations operations;
        private @Nullable Consumer<List<InetSocketAddress>> resolver;
        private boolean dialerClosed;

        History(long seed) {
            random = new Random(seed);
            clock = new StepClock(seed, 1 + random.nextInt(2) * 300 * MILLI);
            servers = IntStream.range(0, 1 + random.nextInt(4))
                    .mapToObj(i -> new WalkServer(new InetSocketAddress("127.0.0.1", 1 + i), clock, random))
                    .toList();
            boolean idempotent = random.nextBoolean();
            plan = new CallPlan(
                    idempotent,
                    random.nextBoolean() ? CallPlan.NO_HEDGE : random.nextInt(3) * 20 * MILLI,
                    random.nextInt(3),
                    random.nextInt(4) == 0,
                    random.nextLong());
            once = random.nextInt(8) == 0;
            idles = !once && random.nextInt(4) == 0;
            failsFast = random.nextInt(4) == 0;
            ladder = !once && random.nextInt(3) == 0
                    ? LadderOptions.DEFAULTS.withRungs("good", "poor").withMoveUp(Duration.ofSeconds(1))
                    : null;
            links = new Links(
                    "walk " + seed,
                    this,
                    new Links.Options(
                            once ? 1 : 1 + random.nextInt(2),
                            !once,
                            failsFast,
                            5 * SECOND,
                            random.nextInt(2) * 1000,
                            10 * SECOND,
                            new Backoff(10 * MILLI, SECOND),
                            !once && random.nextInt(3) == 0 ? 3 * SECOND : 0,
                            idles ? 2 * SECOND : 0,
                            new SendLimit.Bounds(5 + random.nextInt(20), 1 << 20),
                            plan,
                            List.of(),
                            List.of()));
            operations = new Operations(links);
        }

        void run(Map<String, Integer> outcomes) {
            servers.forEach(server -> server.isUp = random.nextInt(4) > 0);
            begin();
            for (int steps = 20 + random.nextInt(60); steps > 0; steps--) {
                act();
                if (random.nextInt(3) == 0) {
                    clock.pass(random.nextInt(4) == 0 ? random.nextLong(2 * SECOND) : random.nextLong(50 * MILLI));
                } else {
                    clock.take(random.nextInt(6));
                }
            }
            heal();
            if (random.nextInt(3) > 0) {
                isReadyAgain();
            }
            end();
            for (int i = 0; i < asked.size(); i++) {
                check(i, outcomes);
            }
            outcomes.merge(
                    "moved", servers.stream().mapToInt(server -> server.moved).sum(), Integer::sum);
        }

        private void begin() {
            List<InetSocketAddress> addresses =
                    servers.stream().map(server -> server.address).toList();
            if (once) {
                links.begin(addresses.getFirst());
            } else if (random.nextBoolean()) {
                links.begin(Target.of(addresses), NameLookup.SYSTEM);
            } else {
                links.begin(
                        Target.resolver(updates -> {
                            resolver = updates;
                            updates.accept(addresses);
                            return () -> resolver = null;
                        }),
                        NameLookup.SYSTEM);
            }
        }

        private void act() {
            WalkServer server = servers.get(random.nextInt(servers.size()));
            List<WalkTransport> up = List.copyOf(open);
            WalkTransport one = up.isEmpty() ? null : up.get(random.nextInt(up.size()));
            switch (random.nextInt(16)) {
                case 0 -> server.isUp = !server.isUp;
                case 1 -> server.mood = random.nextInt(WalkServer.MOODS);
                case 2 -> servers.forEach(each -> each.isUp = random.nextBoolean());
                case 3 -> {
                    if (one != null) {
                        one.lose();
                    }
                }
                case 4 -> {
                    if (one != null) {
                        one.serverLeaves(random.nextInt(2) * random.nextLong(SECOND));
                    }
                }
                case 5 -> {
                    if (one != null) {
                        links.unanswered(one);
                    }
                }
                case 6 -> {
                    if (!cancellable.isEmpty()) {
                        cancellable.get(random.nextInt(cancellable.size())).cancel(false);
                    }
                }
                case 7 -> links.resetBackoff();
                case 8 -> readers.add(random.nextBoolean() ? links.whenReady() : links.whenWritable());
                case 9 -> {
                    Consumer<List<InetSocketAddress>> follows = resolver;
                    if (follows != null) {
                        follows.accept(servers.stream()
                                .map(each -> each.address)
                                .filter(address -> random.nextInt(3) > 0)
                                .toList());
                    }
                }
                default ->
                    ask(
                            1 + (random.nextInt(5) == 0 ? random.nextInt(30) : 0),
                            random.nextBoolean() ? MILLI : 5 * SECOND);
            }
        }

        private void ask(int count, long leastNanos) {
            for (int i = 0; i < count; i++) {
                ByteBuf message = Unpooled.buffer(Long.BYTES).writeLong(asked.size());
                boolean isRequest = random.nextInt(4) > 0;
                Asked call = new Asked(isRequest, plan.idempotent(), message);
                asked.add(call);
                long timeoutNanos = leastNanos + random.nextLong(5 * SECOND);
                if (isRequest) {
                    follow(call, operations.start(REQUEST, message, timeoutNanos));
                } else {
                    follow(call, operations.start(Operation.SEND, message, timeoutNanos));
                }
            }
        }

        private void follow(Asked call, Future<?> outcome) {
            cancellable.add(outcome);
            outcome.addListener(done -> {
                call.outcomes++;
                call.failure = done.cause();
            });
        }

        /** All servers are well from now on, and those that have kept silent are lost. */
        private void heal() {
            for (WalkServer server : servers) {
                server.isUp = true;
                server.mood = WalkServer.WELL;
            }
            Consumer<List<InetSocketAddress>> follows = resolver;
            if (follows != null) {
                follows.accept(servers.stream().map(server -> server.address).toList());
            }
            List.copyOf(open).forEach(WalkTransport::loseIfSilent);
        }

        private void isReadyAgain() {
            int waiting = asked.size();
            ask(3, 10 * SECOND);
            clock.pass(60 * SECOND);
            assertThat(asked).as("calls without an outcome").noneMatch(call -> call.outcomes == 0);
            if (links.state() == ClientState.CLOSED) {
                assertThat(once).as("closed for the loss of a connection").isTrue();
                return;
            }
            if (!failsFast) {
                assertThat(asked.subList(waiting, waiting + 3))
                        .as("calls that may wait until all is well")
                        .allMatch(call -> call.failure == null || call.failure instanceof SendLimitException);
            }
            assertThat(open).as("connections").hasSizeLessThanOrEqualTo(4 * servers.size());
            CompletableFuture<Void> ready = links.whenReady(); // which wakes an idle client
            clock.pass(5 * SECOND / 2);
            assertThat(ready).as("ready").isCompleted();
            assertThat(links.state())
                    .isIn(idles ? List.of(ClientState.READY, ClientState.IDLE) : List.of(ClientState.READY));
            int before = asked.size();
            ask(5, 5 * SECOND);
            clock.pass(30 * SECOND);
            for (Asked call : asked.subList(before, asked.size())) {
                assertThat(call.outcomes).as("an outcome when all is well").isOne();
                assertThat(call.failure).as("of a call when all is well").isNull();
            }
        }

        private void end() {
            CompletableFuture<Void> end = links.close();
            clock.pass(120 * SECOND);
            assertThat(end).as("closing").isCompleted();
            assertThat(open).as("connections that are left").isEmpty();
            assertThat(dialerClosed).isTrue();
            assertThat(readers).allMatch(CompletableFuture::isDone);
            assertThat(links.first()).isDone();
            assertThat(links.statistics().waitingRequests()).isZero();
            clock.pass(TimeUnit.DAYS.toNanos(2));
            assertThat(clock.pending()).as("timers that are left").isZero();
        }

        private void check(int number, Map<String, Integer> outcomes) {
            Asked call = asked.get(number);
            int begun =
                    servers.stream().mapToInt(server -> server.begun(number)).sum();
            Throwable failure = call.failure;
            assertThat(call.outcomes).as("outcomes of call " + number).isOne();
            assertThat(call.message.refCnt())
                    .as("references to message " + number)
                    .isZero();
            if (!call.isRequest || !call.idempotent) {
                assertThat(begun).as("begun: call " + number).isLessThanOrEqualTo(1);
            }
            if (failure == null) {
                assertThat(begun).as("begun: call " + number).isPositive();
            } else if (call.isRequest && saysNotBegun(failure)) {
                assertThat(begun)
                        .as("begun: call " + number + ", which says " + failure)
                        .isZero();
            }
            String kind = failure == null
                    ? call.isRequest ? "reply" : "sent"
                    : failure.getClass().getSimpleName();
            boolean mayHaveBegun = failure instanceof ConnectionException loss && loss.mayHaveBegun();
            outcomes.merge(mayHaveBegun ? kind + " begun" : kind, 1, Integer::sum);
        }

        private static boolean saysNotBegun(Throwable failure) {
            return failure instanceof ConnectionException loss
                    ? !loss.mayHaveBegun()
                    : failure instanceof RequestException.Overloaded || failure instanceof RequestException.Refused;
        }

        // ---- the dialer

        @Override
        public Connected connect(SocketAddress address, @Nullable List<String> rungs, long beganNanos) {
            WalkServer server = servers.stream()
                    .filter(each -> each.address.equals(address))
                    .findFirst()
                    .orElseThrow();
            if (!server.isUp || (clock.isInterrupted() && random.nextBoolean())) {
                throw new ConnectionException.Unreachable("connect to " + address + ": refused");
            }
            WalkTransport transport = new WalkTransport(server, links, clock, random);
            open.add(transport);
            transport.whenClosed(() -> open.remove(transport));
            String rung = rungs != null || random.nextBoolean() ? "good" : "poor";
            return new Connected(
                    transport, ladder == null ? null : new LadderResult(server.address, rung, List.of(), List.of()));
        }

        @Override
        public LoopClock clock() {
            return clock;
        }

        @Override
        public @Nullable LadderOptions ladder() {
            return ladder;
        }

        @Override
        public boolean isEnding() {
            return false;
        }

        @Override
        public CompletableFuture<Void> close() {
            dialerClosed = true;
            return CompletableFuture.completedFuture(null);
        }
    }
}
