package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.util.concurrent.SingleThreadEventExecutor;
import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.cm.Cm;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.QueuePairRoute;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.DatagramOptions;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.spi.WorkRequest;

/** A device whose firmware does not answer holds up its own connections and nobody else's. */
@Timeout(240)
class DeviceLoopsTest {
    private final VerbsProvider provider = new VerbsProvider();
    private final List<RecordingEndpointHandler> handlers = new ArrayList<>();

    /** A loop for each device, since a completion loop makes its queues itself. */
    private MultiThreadIoEventLoopGroup group;

    private IoEventLoop roceLoop;
    private IoEventLoop iwarpLoop;

    @BeforeEach
    void startLoops() throws Exception {
        StubDevice.install();
        group = new MultiThreadIoEventLoopGroup(2, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        roceLoop = group.next();
        iwarpLoop = group.next();
    }

    @AfterEach
    void endLoops() {
        StubDevice.call("stub_unblock");
        Patience.await("the loops ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        handlers.forEach(RecordingEndpointHandler::assertNoViolations);
        StubDevice.close(provider);
    }

    private RecordingEndpointHandler handler(IoEventLoop loop) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler("client " + handlers.size(), loop);
        handlers.add(handler);
        return handler;
    }

    private RecordingEndpointHandler connect(IoEventLoop loop, InetSocketAddress address) {
        RecordingEndpointHandler handler = handler(loop);
        provider.connect(loop, address, StubDevice.options(false, 60_000), handler);
        return handler;
    }

    /** Begins another connection over the device that does not answer, and has come as far as the common loop goes. */
    private RecordingEndpointHandler connectAsWell() {
        RecordingEndpointHandler another = connect(roceLoop, StubDevice.ROCE);
        RecordingEndpointHandler behind = connect(iwarpLoop, StubDevice.IWARP);
        behind.awaitConnected();
        behind.awaitPrepared().disconnect();
        assertThat(behind.awaitDisconnected()).isNull();
        return another;
    }

    private static void awaitBlocked() {
        Patience.until("a call blocks", () -> StubDevice.call("stub_blocked") >= 1);
    }

    private static void assertSends(RecordingEndpointHandler handler) {
        RegisteredMemory region = handler.call(endpoint ->
                endpoint.memoryDomain().register(Arena.global().allocate(4096), Set.of(Access.LOCAL_WRITE)));
        WorkRequest work = new WorkRequest(1).asSend(7, 0);
        work.buffers().add(region, 0, 64);
        handler.send(work);
        assertThat(handler.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        region.close();
    }

    /** Everything that a connection does on the healthy device while a call on the other one does not return. */
    private void assertIwarpWorks() {
        assertThat(StubDevice.call("stub_blocked")).isOne();
        RecordingEndpointHandler client = connect(iwarpLoop, StubDevice.IWARP);
        client.awaitConnected();
        assertSends(client);
        RecordingListenerHandler listener = new RecordingListenerHandler(iwarpLoop);
        provider.listen(iwarpLoop, StubDevice.IWARP, ListenOptions.DEFAULTS, listener);
        listener.awaitListening();
        StubDevice.call("stub_request", StubDevice.IWARP.getPort());
        RecordingEndpointHandler server = handler(iwarpLoop);
        listener.awaitRequest().accept(iwarpLoop, StubDevice.options(false, 60_000), server);
        server.awaitConnected();
        assertSends(server);
        for (RecordingEndpointHandler each : List.of(client, server)) {
            each.awaitPrepared().disconnect();
            assertThat(each.awaitDisconnected()).isNull();
        }
        assertThat(StubDevice.call("stub_blocked")).isOne();
    }

    @ParameterizedTest
    @ValueSource(strings = {"ibv_alloc_pd:stub0", "ibv_create_qp:stub0", "ibv_query_port:stub0"})
    void aDeviceThatDoesNotAnswerAConnectHoldsUpNoOther(String call) {
        StubDevice.call("stub_block", call);
        RecordingEndpointHandler held = connect(roceLoop, StubDevice.ROCE);
        awaitBlocked();
        RecordingEndpointHandler another = connectAsWell();
        assertIwarpWorks();
        StubDevice.call("stub_unblock");
        held.awaitConnected();
        another.awaitConnected();
        assertSends(held);
    }

    @ParameterizedTest
    @ValueSource(strings = {"ibv_modify_qp:stub0", "ibv_destroy_qp:stub0"})
    void aDeviceThatDoesNotAnswerAtTheEndHoldsUpNoOther(String call) {
        RecordingEndpointHandler held = connect(roceLoop, StubDevice.ROCE);
        held.awaitConnected();
        StubDevice.call("stub_block", call);
        held.awaitPrepared().disconnect();
        awaitBlocked();
        RecordingEndpointHandler another = connectAsWell();
        assertIwarpWorks();
        StubDevice.call("stub_unblock");
        assertThat(held.awaitDisconnected()).isNull();
        another.awaitConnected();
    }

    @Test
    void aRequestToADeviceThatDoesNotAnswerHoldsUpNoOther() {
        RecordingListenerHandler listener = new RecordingListenerHandler(roceLoop);
        provider.listen(roceLoop, new InetSocketAddress("10.0.0.1", 7472), ListenOptions.DEFAULTS, listener);
        listener.awaitListening();
        StubDevice.call("stub_request", 7472);
        StubDevice.call("stub_block", "ibv_create_qp:stub0");
        RecordingEndpointHandler server = handler(roceLoop);
        listener.awaitRequest().accept(roceLoop, StubDevice.options(false, 60_000), server);
        awaitBlocked();
        assertIwarpWorks();
        StubDevice.call("stub_unblock");
        server.awaitConnected();
    }

    /** On iWARP a listener is the driver's, which asks its firmware for one. */
    @Test
    void aListenerOnADeviceThatDoesNotAnswerHoldsUpNoOther() {
        StubDevice.call("stub_block", "rdma_listen:stub0");
        RecordingListenerHandler held = new RecordingListenerHandler(roceLoop);
        provider.listen(roceLoop, new InetSocketAddress("10.0.0.1", 7473), ListenOptions.DEFAULTS, held);
        awaitBlocked();
        RecordingEndpointHandler another = connectAsWell();
        assertIwarpWorks();
        StubDevice.call("stub_unblock");
        held.awaitListening();
        another.awaitConnected();
    }

    /** What wants no particular address asks no device which one it has. */
    @Test
    void aWildcardForDatagramsWaitsForItsDeviceOnly() throws Exception {
        assumeFalse(StubDevice.serveHostAddresses().isEmpty(), "this host has an address on loopback only");
        StubDevice.call("stub_block", "ibv_query_port:stub0");
        Datagrams held = new Datagrams();
        provider.openDatagrams(roceLoop, new InetSocketAddress("0.0.0.0", 0), null, DatagramOptions.DEFAULTS, held);
        awaitBlocked();
        assertIwarpWorks();
        StubDevice.call("stub_unblock");
        Patience.await("they are open", held.opened).close();
        assertThat(Patience.await("they are closed", held.closed)).isEmpty();
    }

    @Test
    void aQueuePairByHandOnADeviceThatDoesNotAnswerHoldsUpNoOther() {
        StubDevice.call("stub_block", "ibv_query_port:stub0");
        RecordingEndpointHandler held = handler(roceLoop);
        Endpoint attempt = provider.connectByHand(
                roceLoop,
                QueuePairRoute.ofDevice("stub0"),
                (own, memory) -> new CompletableFuture<>(),
                StubDevice.options(false, 60_000),
                held);
        awaitBlocked();
        assertIwarpWorks();
        StubDevice.call("stub_unblock");
        attempt.disconnect();
        assertThat(held.awaitDisconnected()).isInstanceOf(ConnectionException.class);
    }

    /** On RoCE as well librdmacm asks ibacm for a route, where that runs, and waits for its answer without a limit. */
    @Test
    void anIbacmThatDoesNotAnswerHoldsUpNobody() {
        RecordingEndpointHandler silent = connect(roceLoop, new InetSocketAddress("10.0.0.251", 7471));
        awaitBlocked();
        RecordingEndpointHandler client = connect(roceLoop, StubDevice.ROCE);
        client.awaitConnected();
        assertSends(client);
        assertIwarpWorks();
        StubDevice.call("stub_unblock");
        silent.awaitConnected();
    }

    /** The kernel wakes nobody who waits for the channel that an id's events are moved to. */
    @Test
    void whatALoopRefusedIsNotDoneLater() {
        SetupLoop loop = new SetupLoop(provider);
        Patience.await("the loop ended", loop.loop().loop().shutdownGracefully(0, 5, TimeUnit.SECONDS));
        List<String> done = new CopyOnWriteArrayList<>();
        assertThatThrownBy(() -> loop.execute(() -> done.add("refused")))
                .isInstanceOf(RejectedExecutionException.class);
        provider.close(); // the next loop is another one
        loop.execute(() -> done.add("after it"));
        Patience.until("a step was done", () -> !done.isEmpty());
        assertThat(done).containsExactly("after it");
    }

    @Test
    void anOutcomeThatMovesAlongWithItsIdIsNoticed() throws Exception {
        RecordingEndpointHandler held = connect(roceLoop, new InetSocketAddress("10.0.0.251", 7471));
        awaitBlocked();
        IoEventLoop setup = provider.connectionLoopOf(Cm.devices().getFirst()).loop();
        CountDownLatch busy = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        setup.execute(() -> {
            busy.countDown();
            Patience.until("the call has returned", () -> goOn.getCount() == 0);
        });
        assertThat(busy.await(1, TimeUnit.MINUTES)).isTrue();
        int tasks = ((SingleThreadEventExecutor) setup).pendingTasks();
        StubDevice.call("stub_unblock");
        // The route is resolved, and the id returns to this loop's channel before the loop looks at any channel.
        Patience.until("the call returned", () -> ((SingleThreadEventExecutor) setup).pendingTasks() > tasks);
        goOn.countDown();
        held.awaitConnected();
        assertSends(held);
    }
}
