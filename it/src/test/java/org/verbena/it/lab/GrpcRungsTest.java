package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.netty.InternalNettyChannelBuilder;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.testing.integration.AbstractInteropTest;
import io.netty.channel.ChannelOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.RunWith;
import org.junit.runner.manipulation.Filter;
import org.junit.runners.JUnit4;
import org.verbena.api.Carrier;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderStatistics;
import org.verbena.grpc.VerbenaGrpc;
import org.verbena.transport.spi.Patience;

/**
 * gRPC's interoperability suite on each rung, against one process that serves all: clients that climb on rxe, on siw,
 * by soft and by plain TCP, and gRPC's usual client. A part of the suite runs on all at once, and C's {@code rping} is
 * rejected meanwhile; all of it runs on one after another, since the suite has time limits that a slow guest keeps only
 * so.
 */
@Tag("lab")
@Tag("lab-long")
@Tag("lab-full")
@Timeout(1200)
class GrpcRungsTest {
    private static final int PORT = 7945;
    private static final int MIN_TESTS = 30;
    private static final int OPERATION_MILLIS = 60_000;
    private static final int CONNECT_MILLIS = 120_000;
    /** What runs on several at once. */
    static final Set<String> AT_ONCE =
            Set.of("emptyUnary", "largeUnary", "serverStreaming", "clientStreaming", "pingPong", "customMetadata");

    private static RdmaEventLoopGroup group;

    private static synchronized RdmaEventLoopGroup group() {
        if (group == null) {
            group = new RdmaEventLoopGroup("ladder", 2);
        }
        return group;
    }

    @AfterAll
    static void endGroup() {
        group().close();
    }

    private static long used(String rung) {
        return LadderStatistics.of(rung).used();
    }

    @Test
    void passesOnAllAtOnce() throws Exception {
        String rxe = LabDevice.RXE.address();
        List<Class<? extends Suite>> suites =
                List.of(OnRxe.class, OnSiw.class, OnSoft.class, OnPlainTcp.class, Usual.class);
        Map<String, Long> before = new LinkedHashMap<>();
        for (String rung : List.of("verbs", "soft", Carrier.TCP)) {
            before.put(rung, used(rung));
        }
        try (PeerProgram server = PeerProgram.startJava(
                        GrpcInteropServer.class.getName(), String.valueOf(PORT), rxe, LabDevice.SIW.address());
                ExecutorService threads = Executors.newFixedThreadPool(suites.size())) {
            server.awaitLine("listening", Patience.LIMIT);
            List<Future<Result>> running = new ArrayList<>();
            for (Class<?> suite : suites) {
                running.add(threads.submit(
                        () -> new JUnitCore().run(Request.aClass(suite).filterWith(new Named(AT_ONCE)))));
            }
            OnePortTest.assertRefusesC(rxe, PORT);
            for (int i = 0; i < suites.size(); i++) {
                assertPassed(suites.get(i), running.get(i).get(), AT_ONCE.size());
            }
            for (Class<?> suite : suites) {
                assertPassed(suite, new JUnitCore().run(suite), MIN_TESTS);
            }
        }
        assertThat(used("verbs") - before.get("verbs")).isGreaterThanOrEqualTo(2 * MIN_TESTS);
        assertThat(used("soft") - before.get("soft")).isGreaterThanOrEqualTo(MIN_TESTS);
        assertThat(used(Carrier.TCP) - before.get(Carrier.TCP)).isGreaterThanOrEqualTo(MIN_TESTS);
    }

    static void assertPassed(Class<?> suite, Result result, int minTests) {
        System.out.printf(
                "%s: %d tests in %d ms, %d failed%n",
                suite.getSimpleName(), result.getRunCount(), result.getRunTime(), result.getFailureCount());
        result.getFailures().forEach(failure -> System.out.println(failure.getTrace()));
        assertThat(result.getFailures()).as(suite.getSimpleName()).isEmpty();
        assertThat(result.getRunCount()).isGreaterThanOrEqualTo(minTests);
    }

    /** Tests of these names. */
    static final class Named extends Filter {
        private final Set<String> names;

        Named(Set<String> names) {
            this.names = names;
        }

        @Override
        public boolean shouldRun(Description test) {
            return test.isSuite() || names.contains(test.getMethodName());
        }

        @Override
        public String describe() {
            return "tests " + names;
        }
    }

    /** A client of the server, which is in another process: what looks into the server is left out. */
    public abstract static class Suite extends AbstractInteropTest {
        /** Makes channels. */
        protected abstract NettyChannelBuilder newBuilder();

        /**
         * By a ladder that has all the time that a slow guest needs, and does not remember when that was not enough.
         */
        static NettyChannelBuilder climb(String host, String... rungs) {
            return VerbenaGrpc.channel(
                            host,
                            PORT,
                            LadderOptions.DEFAULTS
                                    .withRungs(rungs)
                                    .withHedgeDelay(Duration.ofMinutes(1))
                                    .withForgetAfter(Duration.ZERO),
                            group())
                    .withOption(ChannelOption.CONNECT_TIMEOUT_MILLIS, CONNECT_MILLIS);
        }

        @Override
        protected NettyChannelBuilder createChannelBuilder() {
            NettyChannelBuilder builder = newBuilder()
                    .flowControlWindow(AbstractInteropTest.TEST_FLOW_CONTROL_WINDOW)
                    .maxInboundMessageSize(AbstractInteropTest.MAX_MESSAGE_SIZE)
                    .usePlaintext();
            InternalNettyChannelBuilder.setStatsEnabled(builder, false);
            return builder;
        }

        @Override
        protected boolean metricsExpected() {
            return false;
        }

        @Override
        protected int operationTimeoutMillis() {
            return OPERATION_MILLIS;
        }

        /** Left out. */
        @Override
        public void sendsTimeoutHeader() {}

        /** Left out. */
        @Override
        public void getServerAddressAndLocalAddressFromClient() {}
    }

    /** Verbs, soft RoCE. */
    @RunWith(JUnit4.class)
    public static class OnRxe extends Suite {
        @Override
        protected NettyChannelBuilder newBuilder() {
            return climb(LabDevice.RXE.address(), "verbs", "soft", Carrier.TCP);
        }
    }

    /** Verbs, soft iWARP. */
    @RunWith(JUnit4.class)
    public static class OnSiw extends Suite {
        @Override
        protected NettyChannelBuilder newBuilder() {
            return climb(LabDevice.SIW.address(), "verbs", "soft", Carrier.TCP);
        }
    }

    /** The software provider. */
    @RunWith(JUnit4.class)
    public static class OnSoft extends Suite {
        @Override
        protected NettyChannelBuilder newBuilder() {
            return climb(LabDevice.RXE.address(), "soft", Carrier.TCP);
        }
    }

    /** The last rung. */
    @RunWith(JUnit4.class)
    public static class OnPlainTcp extends Suite {
        @Override
        protected NettyChannelBuilder newBuilder() {
            return climb(LabDevice.RXE.address(), Carrier.TCP);
        }
    }

    /** gRPC's own client, without Verbena. */
    @RunWith(JUnit4.class)
    public static class Usual extends Suite {
        @Override
        protected NettyChannelBuilder newBuilder() {
            return NettyChannelBuilder.forAddress(LabDevice.RXE.address(), PORT);
        }
    }
}
