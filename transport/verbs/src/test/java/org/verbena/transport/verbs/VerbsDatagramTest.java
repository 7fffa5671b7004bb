package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.DatagramArrival;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.transport.spi.DatagramEndpoint;
import org.verbena.transport.spi.DatagramHandler;
import org.verbena.transport.spi.DatagramOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.verbs.ffm.Errno;

/** Datagram endpoints on devices in memory: every work request and look-up has one outcome, and nothing is left. */
@Timeout(240)
@Families.Suite
@Families.NotIwarp
@Families.OfDatagrams
class VerbsDatagramTest {
    @Parameter
    String family;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
    }

    private static final DatagramOptions OPTIONS = new DatagramOptions(8, 4, 2, 0, 0, false);
    private static final InetSocketAddress PEER = new InetSocketAddress("10.0.0.9", 7471);

    private final VerbsProvider provider = new VerbsProvider();
    private final Events events = new Events();
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;

    @BeforeEach
    void startLoop() throws Exception {
        StubDevice.install();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
    }

    @AfterEach
    void endLoop() {
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
        assertThat(StubDevice.leaks()).doesNotContain("ibv_ah", "stub_qp", "rdma_cm_id", "stub_pd", "ibv_mr");
    }

    /** Keeps what happens, as text. */
    private static final class Events implements DatagramHandler {
        final List<String> told = new CopyOnWriteArrayList<>();
        final List<Throwable> failures = new CopyOnWriteArrayList<>();
        final CompletableFuture<DatagramEndpoint> opened = new CompletableFuture<>();
        final CompletableFuture<String> closed = new CompletableFuture<>();

        @Override
        public void onOpened(DatagramEndpoint endpoint) {
            told.add("opened");
            opened.complete(endpoint);
        }

        @Override
        public void onResolved(DatagramEndpoint endpoint, DatagramDestination destination, @Nullable Throwable cause) {
            if (cause != null) {
                failures.add(cause);
            }
            told.add(cause == null ? "resolved" : "unresolved");
        }

        @Override
        public void onGroupLost(DatagramEndpoint endpoint, DatagramDestination destination, Throwable cause) {
            told.add("lost");
        }

        @Override
        public void onSendCompletion(DatagramEndpoint endpoint, long workId, WorkStatus status) {
            told.add("send " + workId + " " + status);
        }

        @Override
        public void onReceiveCompletion(
                DatagramEndpoint endpoint, long workId, WorkStatus status, DatagramArrival arrival) {
            told.add("receive " + workId + " " + status);
        }

        @Override
        public void onCompletionsHandled(DatagramEndpoint endpoint) {}

        @Override
        public void onClosed(DatagramEndpoint endpoint, @Nullable Throwable cause) {
            told.add("closed");
            closed.complete(cause == null ? "in good order" : String.valueOf(cause.getMessage()));
        }

        void awaitTold(String what) {
            Patience.until(what + " among " + told, () -> told.contains(what));
        }

        String awaitClosed() throws Exception {
            return closed.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
        }
    }

    private DatagramEndpoint open() throws Exception {
        provider.openDatagrams(loop, StubDevice.ROCE, null, OPTIONS, events);
        return events.opened.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
    }

    private <T> T onLoop(Callable<T> action) throws Exception {
        return loop.submit(action).get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
    }

    @Test
    void answersLookUpsWithItsQueuePair() throws Exception {
        DatagramEndpoint endpoint = open();
        assertThat(onLoop(endpoint::capabilities).maxDatagramBytes()).isEqualTo(1024);
        assertThat(onLoop(endpoint::capabilities).receiveBytes()).isEqualTo(40 + 4096);
        StubDevice.call("stub_request", StubDevice.ROCE.getPort());
        int number = onLoop(() -> endpoint.self().queuePairNumber());
        Patience.until("it is answered", () -> StubDevice.call("stub_answered") == number);
        endpoint.close();
        assertThat(events.awaitClosed()).isEqualTo("in good order");
    }

    /** The device has a shorter queue than the endpoint has slots, all of which have their turn. */
    @Test
    void sendsGoOnOnADeviceWithAShortQueue() throws Exception {
        StubDevice.become("small");
        provider.openDatagrams(loop, StubDevice.ROCE, null, DatagramOptions.DEFAULTS, events);
        DatagramEndpoint endpoint = Patience.await("it is open", events.opened);
        RegisteredMemory memory =
                endpoint.memoryDomain().register(Arena.global().allocate(64, 8), Access.LOCAL_WRITE);
        DatagramDestination to = onLoop(() -> endpoint.resolve(PEER, 5_000));
        events.awaitTold("resolved");
        assertThat(onLoop(endpoint::freeSendSlots)).isEqualTo(16);
        for (int i = 0; i < 50; i++) {
            int id = i;
            assertThat(onLoop(() -> {
                        boolean posted = endpoint.post(id, new ScatterGatherList(1).add(memory, 0, 64), to, false, 0);
                        endpoint.flush();
                        return posted;
                    }))
                    .isTrue();
            events.awaitTold("send " + id + " SUCCESS");
        }
        to.close();
        endpoint.close();
        assertThat(events.awaitClosed()).isEqualTo("in good order");
        memory.close();
    }

    @Test
    void whatIsOutIsFlushedOnceAndThenItIsClosed() throws Exception {
        DatagramEndpoint endpoint = open();
        RegisteredMemory memory =
                endpoint.memoryDomain().register(Arena.global().allocate(8192, 8), Access.LOCAL_WRITE);
        DatagramDestination to = onLoop(() -> endpoint.resolve(PEER, 5_000));
        events.awaitTold("resolved");
        StubDevice.call("stub_hold_sends", 1);
        try {
            onLoop(() -> {
                assertThat(Objects.requireNonNull(to.peer()).queuePairNumber()).isEqualTo(17);
                ScatterGatherList sges = new ScatterGatherList(2);
                assertThat(endpoint.postReceive(1, sges.add(memory, 0, 4136))).isTrue();
                assertThat(endpoint.post(2, sges.clear().add(memory, 4200, 100), to, true, 5))
                        .isTrue();
                endpoint.flush();
                assertThat(endpoint.post(3, sges, to, false, 0)).as("staged").isTrue();
                assertThat(endpoint.freeSendSlots()).isEqualTo(6);
                to.close();
                endpoint.resolve(DatagramPeer.of(InetAddress.getByName("10.0.0.9"), 5));
                endpoint.close();
                assertThat(endpoint.post(4, sges, to, false, 0)).as("closed").isFalse();
                return null;
            });
            assertThat(events.awaitClosed()).isEqualTo("in good order");
        } finally {
            StubDevice.call("stub_hold_sends", 0);
        }
        memory.close();
        assertThat(events.told)
                .containsOnlyOnce("receive 1 FLUSHED", "send 2 FLUSHED", "send 3 FLUSHED", "closed", "opened")
                .last()
                .isEqualTo("closed");
        assertThat(events.told.stream().filter(told -> told.endsWith("resolved")))
                .as("one outcome of each look-up")
                .hasSize(2);
        assertThat(events.told.indexOf("send 2 FLUSHED")).isLessThan(events.told.indexOf("send 3 FLUSHED"));
    }

    @Test
    void refusesWhatIsTooLongOrNotReady() throws Exception {
        DatagramEndpoint endpoint = open();
        RegisteredMemory memory =
                endpoint.memoryDomain().register(Arena.global().allocate(8192, 8), Access.LOCAL_WRITE);
        onLoop(() -> {
            DatagramDestination to = endpoint.resolve(PEER, 5_000);
            ScatterGatherList sges = new ScatterGatherList(2).add(memory, 0, 8);
            assertThatThrownBy(() -> endpoint.post(1, sges, to, false, 0))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("not ready");
            return null;
        });
        events.awaitTold("resolved");
        onLoop(() -> {
            DatagramDestination to = endpoint.resolve(DatagramPeer.of(InetAddress.getByName("10.0.0.9"), 5));
            assertThat(to.isReady()).isFalse();
            return null;
        });
        Patience.until(
                "both are resolved",
                () -> events.told.stream().filter("resolved"::equals).count() == 2);
        onLoop(() -> {
            DatagramDestination to = endpoint.resolve(PEER, 5_000);
            to.close(); // given up: nothing is told of it
            ScatterGatherList sges = new ScatterGatherList(2).add(memory, 0, 1025);
            assertThatThrownBy(() -> endpoint.post(1, sges, to, false, 0)).isInstanceOf(IllegalStateException.class);
            return null;
        });
        memory.close();
        endpoint.close();
        assertThat(events.awaitClosed()).isEqualTo("in good order");
        assertThat(events.told).doesNotContain("unresolved");
    }

    @ParameterizedTest
    @ValueSource(strings = {"rdma_create_id", "rdma_bind_addr", "rdma_listen", "ibv_create_qp", "ibv_create_cq"})
    void aCallThatFailsWhileItOpensIsTold(String function) throws Exception {
        // The limits of the device are found first, and one failure says nothing of them.
        StubDevice.fail(function, Errno.ENOMEM, function.equals("ibv_create_qp") ? 2 : 1);
        provider.openDatagrams(loop, StubDevice.ROCE, null, OPTIONS, events);
        assertThat(events.awaitClosed()).contains("10.0.0.1:7471", function);
        assertThat(events.told).containsExactly("closed");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void aPortThatDoesNotTellItsMtuIsTold(int skip) throws Exception {
        StubDevice.failOnce("ibv_query_port", Errno.EIO, skip);
        provider.openDatagrams(loop, StubDevice.ROCE, null, OPTIONS, events);
        assertThat(events.awaitClosed()).contains("10.0.0.1:7471", "ibv_query_port");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"rdma_create_id", "rdma_resolve_addr", "rdma_resolve_route", "rdma_connect", "ibv_create_ah"})
    void aCallThatFailsWhileItLooksUpIsToldAndItStaysOpen(String function) throws Exception {
        DatagramEndpoint endpoint = open();
        StubDevice.fail(function, Errno.ENOMEM, 1);
        onLoop(() -> endpoint.resolve(PEER, 5_000));
        events.awaitTold("unresolved");
        assertThat(events.failures)
                .singleElement()
                .isInstanceOfSatisfying(
                        ConnectionException.class,
                        cause -> assertThat(cause.getMessage())
                                .contains("10.0.0.9:7471")
                                .contains(function));
        onLoop(() -> endpoint.resolve(PEER, 5_000));
        events.awaitTold("resolved");
        endpoint.close();
        assertThat(events.awaitClosed()).isEqualTo("in good order");
    }

    @Test
    void aLookUpThatNobodyAnswersTimesOut() throws Exception {
        DatagramEndpoint endpoint = open();
        StubDevice.call("stub_hold_events", org.verbena.cm.CmEventType.ESTABLISHED.value());
        try {
            onLoop(() -> endpoint.resolve(PEER, 50));
            events.awaitTold("unresolved");
            assertThat(events.failures)
                    .singleElement()
                    .isInstanceOf(ConnectionException.TimedOut.class)
                    .asString()
                    .contains("50 ms");
        } finally {
            StubDevice.call("stub_hold_events", 0);
        }
        endpoint.close();
        events.awaitClosed();
    }

    @Test
    void makesAddressHandlesOnThreadsOfTheirOwn() throws Exception {
        DatagramEndpoint endpoint = open();
        onLoop(() -> endpoint.resolve(DatagramPeer.of(InetAddress.getByName("10.0.0.9"), 5)));
        events.awaitTold("resolved");
        assertThat(StubDevice.threadsOf("ibv_create_ah")).contains("verbena-addr");
        endpoint.close();
        events.awaitClosed();
    }

    @Test
    void iwarpHasNone() throws Exception {
        provider.openDatagrams(loop, StubDevice.IWARP, null, OPTIONS, events);
        assertThat(events.awaitClosed()).contains("stub1 is iWARP", "unreliable-datagram");
    }

    @Test
    void theEndOfTheLoopEndsIt() throws Exception {
        open();
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        assertThat(events.closed).isDone();
    }

    /** As for connections, librdmacm asks ibacm for a route, where that runs, and waits without a limit. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anIbacmThatDoesNotAnswerHoldsUpNobody(boolean closesMeanwhile) throws Exception {
        DatagramEndpoint endpoint = open();
        onLoop(() -> endpoint.resolve(new InetSocketAddress("10.0.0.251", 7471), 60_000));
        Patience.until("the call blocks", () -> StubDevice.call("stub_blocked") == 1);
        onLoop(() -> endpoint.resolve(PEER, 60_000));
        events.awaitTold("resolved");
        if (closesMeanwhile) {
            endpoint.close();
            assertThat(events.awaitClosed()).isEqualTo("in good order");
            assertThat(StubDevice.call("stub_blocked")).isOne();
            StubDevice.call("stub_unblock");
            Patience.until("nothing is left", () -> !StubDevice.leaks().contains("rdma_cm_id"));
            assertThat(events.told).containsOnlyOnce("resolved");
        } else {
            StubDevice.call("stub_unblock");
            Patience.until(
                    "both are resolved",
                    () -> events.told.stream().filter("resolved"::equals).count() == 2);
            endpoint.close();
            assertThat(events.awaitClosed()).isEqualTo("in good order");
        }
    }
}
