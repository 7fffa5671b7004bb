package org.verbena.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.testing.Faults.Direction;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RdmaProvider;

/** A ladder of two rungs: the better one reaches another server than it should, which may be silent. */
@Timeout(240)
class LaddersInTestTimeTest extends InTestTime {
    private static final String BETTER = "better";
    private static final Duration HEDGE = Duration.ofSeconds(2);
    private static final Duration REMEMBERED = Duration.ofMinutes(10);
    private static final LadderOptions LADDER =
            new LadderOptions(List.of(BETTER, InProcessProvider.NAME), HEDGE, REMEMBERED, null, Set.of(), null);

    private final RdmaServer behind = bind(0);
    private final Faults better = Faults.at(behind.port());
    private final RdmaEventLoopGroup climbing = new RdmaEventLoopGroup(
            new ProviderSet(
                    List.of(
                            new ProviderChoice(better(), "for a test"),
                            new ProviderChoice(time.provider(), "for a test")),
                    Set.of()),
            1,
            null,
            CompletionLoopOptions.DEFAULTS);

    @AfterEach
    void closeAll() {
        better.close();
        climbing.close();
        behind.close();
    }

    /** The provider of the test's time with another name, which connects to the server behind. */
    private RdmaProvider better() {
        RdmaProvider inner = time.provider();
        return (RdmaProvider) Proxy.newProxyInstance(
                RdmaProvider.class.getClassLoader(), new Class<?>[] {RdmaProvider.class}, (self, method, given) -> {
                    Object[] arguments = given == null ? new Object[0] : given.clone();
                    return switch (method.getName()) {
                        case "name", "toString" -> BETTER;
                        case "equals" -> self == arguments[0];
                        case "hashCode" -> System.identityHashCode(self);
                        case "connect" -> {
                            arguments[1] = new InetSocketAddress("127.0.0.1", behind.port());
                            yield method.invoke(inner, arguments);
                        }
                        default -> method.invoke(inner, arguments);
                    };
                });
    }

    private CompletableFuture<RdmaClient> climb(Duration timeout) {
        return RdmaClient.builder()
                .group(climbing)
                .ladder(LADDER)
                .connectTimeout(timeout)
                .connectAsync("127.0.0.1", server.port());
    }

    private static LadderResult ladder(RdmaClient client) {
        return Objects.requireNonNull(client.ladder());
    }

    @Test
    void aSilentRungHasTheHedgeDelayAndIsTriedLastUntilItIsForgotten() {
        better.silence(Direction.TO_CLIENT);
        CompletableFuture<RdmaClient> connecting = climb(Duration.ofMinutes(1));
        time.advance(HEDGE.minusNanos(1));
        assertThat(connecting).isNotDone();
        time.advance(Duration.ofNanos(1));
        try (RdmaClient client = Patience.await("the client", connecting)) {
            LadderResult result = ladder(client);
            assertThat(result.rung()).isEqualTo(InProcessProvider.NAME);
            assertThat(result.attempts())
                    .satisfiesExactly(
                            first -> {
                                assertThat(first.began()).isZero();
                                assertThat(first.took()).isEqualTo(HEDGE);
                            },
                            second -> {
                                assertThat(second.began()).isEqualTo(HEDGE);
                                assertThat(second.took()).isZero();
                            });
        }
        better.resume(Direction.TO_CLIENT);
        try (RdmaClient client = climbAtOnce()) {
            assertThat(ladder(client).rung()).isEqualTo(InProcessProvider.NAME);
        }
        Duration forgotten = HEDGE.plus(REMEMBERED);
        time.advance(forgotten.minusSeconds(1).minus(time.elapsed())); // closing a client may take some
        try (RdmaClient client = climbAtOnce()) {
            assertThat(ladder(client).rung()).isEqualTo(InProcessProvider.NAME);
        }
        time.advance(Duration.ofSeconds(1));
        try (RdmaClient client = climbAtOnce()) {
            assertThat(ladder(client).rung()).isEqualTo(BETTER);
        }
    }

    private RdmaClient climbAtOnce() {
        CompletableFuture<RdmaClient> connecting = climb(Duration.ofMinutes(1));
        time.settle();
        return Patience.await("the client", connecting);
    }

    /** What the first rung has used up is gone. */
    @Test
    void allRungsTogetherHaveTheConnectTimeout() {
        better.silence(Direction.TO_CLIENT);
        faults.silence(Direction.TO_CLIENT);
        CompletableFuture<RdmaClient> connecting = climb(Duration.ofSeconds(10));
        time.advance(Duration.ofSeconds(10).minusNanos(1));
        assertThat(connecting).isNotDone();
        time.advance(Duration.ofNanos(1));
        assertThat(connecting.exceptionNow()).isInstanceOf(ConnectionException.TimedOut.class);
    }

    /** A process has many tests, which do not meet what others remember. */
    @Test
    void whatOtherLoopsRememberIsNotRemembered() {
        better.silence(Direction.TO_CLIENT);
        CompletableFuture<RdmaClient> connecting = climb(Duration.ofMinutes(1));
        time.advance(HEDGE);
        Patience.await("the client", connecting).close();
        better.resume(Direction.TO_CLIENT);
        try (RdmaEventLoopGroup others = new RdmaEventLoopGroup(
                        new ProviderSet(
                                List.of(
                                        new ProviderChoice(better(), "for a test"),
                                        new ProviderChoice(time.provider(), "for a test")),
                                Set.of()),
                        1,
                        null,
                        CompletionLoopOptions.DEFAULTS);
                RdmaClient client =
                        RdmaClient.builder().group(others).ladder(LADDER).connect("127.0.0.1", server.port())) {
            assertThat(ladder(client).rung()).isEqualTo(BETTER);
        }
    }
}
