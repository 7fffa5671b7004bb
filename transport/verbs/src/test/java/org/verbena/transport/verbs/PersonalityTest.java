package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.InfinibandAddress;
import org.verbena.cm.PortSpace;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.ProviderException;
import org.verbena.transport.QueuePairRoute;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.DatagramCapabilities;
import org.verbena.transport.spi.DatagramEndpoint;
import org.verbena.transport.spi.DatagramOptions;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.SharedReceiveQueue;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.Context;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.device.DriverFamily;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.queue.QueuePairAttribute;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.work.CompletionStatus;

/** The provider on devices with the limits and habits of adapters: the table is in {@code src/test/c/stub_rdma.c}. */
@Timeout(240)
class PersonalityTest {
    private final List<RegisteredMemory> regions = new ArrayList<>();
    private final List<RecordingEndpointHandler> handlers = new ArrayList<>();
    private VerbsProvider provider;
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;

    @BeforeAll
    static void installStub() throws Exception {
        StubDevice.install();
        StubDevice.serveHostAddresses();
    }

    @BeforeEach
    void resetStub() throws Exception {
        StubDevice.install();
    }

    private void become(String family) {
        StubDevice.become(family);
        provider = new VerbsProvider();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
    }

    @AfterEach
    void endLoop() {
        if (group != null) {
            Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
            handlers.forEach(RecordingEndpointHandler::assertNoViolations);
            regions.forEach(RegisteredMemory::close);
            StubDevice.close(provider);
        }
    }

    private RecordingEndpointHandler connect(EndpointOptions options) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler("client " + handlers.size(), loop);
        handlers.add(handler);
        if (options.sharedReceiveQueue()) {
            handler.sharesReceives();
        }
        provider.connect(loop, StubDevice.ROCE, options.with(o -> o.connectTimeoutMillis = 60_000), handler);
        return handler;
    }

    private RecordingEndpointHandler connected(EndpointOptions options) {
        RecordingEndpointHandler handler = connect(options);
        handler.awaitConnected();
        return handler;
    }

    private RegisteredMemory memory(RecordingEndpointHandler client) {
        RegisteredMemory region = client.call(endpoint ->
                endpoint.memoryDomain().register(Arena.global().allocate(4096), Set.of(Access.LOCAL_WRITE)));
        regions.add(region);
        return region;
    }

    private static void send(RecordingEndpointHandler client, RegisteredMemory region, int elements) {
        WorkRequest work = new WorkRequest(elements).asSend(7, 0);
        for (int i = 0; i < elements; i++) {
            work.buffers().add(region, i * 1024L, 1024);
        }
        client.send(work);
        assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
    }

    // ---- limits

    @ParameterizedTest
    @CsvSource({
        "mlx5, 64, 128, 4, 4, 96",
        "mlx4, 64, 128, 4, 4, 96",
        "bnxt_re, 64, 128, 4, 4, 96",
        "irdma-roce, 64, 128, 4, 4, 96",
        "irdma-iwarp, 64, 128, 4, 4, 96",
        "x722, 64, 128, 3, 3, 48",
        "erdma, 64, 128, 4, 1, 96",
        "erdma-roce, 64, 128, 4, 1, 96",
        "hns, 64, 128, 4, 4, 32",
        "cxgb4, 64, 128, 4, 4, 96",
        "ionic, 64, 128, 4, 4, 96",
        "qedr, 64, 128, 4, 4, 96",
        "mana-rc, 64, 128, 4, 4, 0",
    })
    void connectsWithDefaultsAndCarriesMessages(
            String family, int sendDepth, int receiveDepth, int sendSges, int receiveSges, int inlineBytes) {
        become(family);
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        EndpointCapabilities can = client.call(endpoint -> endpoint.capabilities());
        assertThat(can.sendDepth()).isEqualTo(sendDepth);
        assertThat(can.receiveDepth()).isEqualTo(receiveDepth);
        assertThat(can.maxSges()).isEqualTo(sendSges);
        assertThat(can.maxReceiveSges()).isEqualTo(receiveSges);
        assertThat(can.maxInlineBytes()).isEqualTo(inlineBytes);
        RegisteredMemory region = memory(client);
        send(client, region, sendSges);
        client.receive(1, region, 0, 64);
        StubDevice.call("stub_receive", StubDevice.lastNumber(), 10, 0);
        assertThat(client.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
        client.awaitPrepared().disconnect();
        assertThat(client.awaitDisconnected()).isNull();
    }

    /** The device is full for a moment: when its limits are found, or later. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 5})
    void aFailureForAMomentIsNoLimit(int skip) {
        become("mlx5");
        StubDevice.failOnce("ibv_create_qp", Errno.ENOMEM, skip);
        assertThat(inlineBytes(connected(EndpointOptions.DEFAULTS))).isEqualTo(96);
        for (int i = 0; i < 6; i++) {
            StubDevice.fail("ibv_create_qp", Errno.ENOMEM, 1);
            assertThat(connect(EndpointOptions.DEFAULTS).awaitDisconnected()).isInstanceOf(ConnectionException.class);
        }
        assertThat(inlineBytes(connected(EndpointOptions.DEFAULTS))).isEqualTo(96);
    }

    /** The device does not say what it is, but to the query with which it is opened. */
    @Test
    void aQueryThatFailsForAMomentIsNotRemembered() {
        become("mlx5");
        StubDevice.fail("ibv_query_device", Errno.EIO, 1);
        StubDevice.call("stub_fail_later", "ibv_query_device", Errno.EIO, 1, Integer.MAX_VALUE);
        RecordingEndpointHandler first = connect(EndpointOptions.DEFAULTS);
        Patience.until("the first one is made or refused", () -> first.isConnected() || first.isDisconnected());
        assertThat(inlineBytes(connected(EndpointOptions.DEFAULTS))).isEqualTo(96);
        assertThat(StubDevice.allCalls()).contains("stub_alloc_td");
    }

    private static int inlineBytes(RecordingEndpointHandler client) {
        return client.<Integer>call(endpoint -> endpoint.capabilities().maxInlineBytes());
    }

    @ParameterizedTest
    @CsvSource({
        "mlx5, 828",
        "irdma-roce, 101",
        "x722, 48",
        "hns, 32",
        "cxgb4, 272",
        "erdma, 96",
        "ionic, 480",
        "qedr, 256"
    })
    void findsTheInlineBytesOnceADevice(String family, int inlineBytes) {
        become(family);
        EndpointOptions options = EndpointOptions.DEFAULTS.with(o -> o.maxInlineBytes = 2000);
        assertThat(inlineBytes(connected(options))).isEqualTo(inlineBytes);
        int before = count("ibv_create_qp");
        assertThat(inlineBytes(connected(options))).isEqualTo(inlineBytes);
        assertThat(count("ibv_create_qp")).isEqualTo(before + 1);
        StubDevice.fail("ibv_create_qp", Errno.ENOMEM, Integer.MAX_VALUE);
        int full = count("ibv_create_qp");
        assertThat(connect(options).awaitDisconnected()).isInstanceOf(ConnectionException.class);
        assertThat(count("ibv_create_qp")).isEqualTo(full + 1);
    }

    @Test
    void refusesADemandOverTheLimit() {
        become("x722");
        EndpointOptions many = EndpointOptions.DEFAULTS.with(o -> o.maxSges = 5);
        assertThat(connect(many).awaitDisconnected())
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("maxSges 5 is over the limit of stub0, which is 3");
        EndpointOptions deep = EndpointOptions.DEFAULTS.with(o -> o.sendDepth = 5000);
        assertThat(connect(deep).awaitDisconnected()).hasMessageContaining("sendDepth 5000");
    }

    /** At 100 Gb/s; software devices have a measured one. */
    @ParameterizedTest
    @CsvSource({
        "mlx5, 21701",
        "ionic, 398172",
        "irdma-roce, 1353785",
        "bnxt_re, 1353785",
        "irdma-iwarp, 4194304",
        "'', 1048576",
    })
    void calculatesTheRendezvousThresholdOfAdapters(String family, int threshold) {
        become(family);
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        assertThat(client.<Integer>call(endpoint -> endpoint.rendezvousBytes(16384)))
                .isEqualTo(threshold);
    }

    // ---- habits

    @ParameterizedTest
    @CsvSource({"mlx5, true", "irdma-roce, true", "bnxt_re, true", "erdma, false"})
    void readsHaveAsManyElementsAsTheDeviceTakes(String family, boolean several) {
        become(family);
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        int max = client.call(endpoint -> endpoint.capabilities().maxReadSges());
        assertThat(max).isEqualTo(several ? 4 : 1);
        RegisteredMemory region = client.call(endpoint -> endpoint.memoryDomain()
                .register(Arena.global().allocate(4096), Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE)));
        regions.add(region);
        WorkRequest read = new WorkRequest(max).asRead(3, 0, region.address(), region.localKey());
        for (int i = 0; i < max; i++) {
            read.buffers().add(region, i * 64L, 64);
        }
        client.send(read);
        assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
    }

    /** The address that names the port is of the right version, whatever is before it in the table. */
    @ParameterizedTest
    @CsvSource({"ideal, 1", "mlx5, 3", "irdma-roce, 1", "mlx4, 3"})
    void takesTheGidOfVersion2AmongOthers(String family, int index) throws Exception {
        become(family);
        QueuePairRoute route = QueuePairRoute.ofAddress(StubDevice.ROCE.getAddress());
        Context device = LocalPort.deviceOf(route);
        LocalPort port = LocalPort.of(device, route);
        assertThat(port.gidIndex()).isEqualTo(index);
        assertThat(port.gid().toInetAddress()).isEqualTo(StubDevice.ROCE.getAddress());
    }

    @Test
    void theSecondPortHasItsOwnAddress() throws Exception {
        become("mlx4");
        QueuePairRoute route = QueuePairRoute.ofAddress(InetAddress.ofLiteral("10.0.0.129"));
        LocalPort port = LocalPort.of(LocalPort.deviceOf(route), route);
        assertThat(port.port()).isEqualTo(2);
        assertThat(port.gid().toInetAddress()).isEqualTo(route.address());
    }

    /** On iWARP the kernel connects: before that nothing is ready to send, and after it nothing goes back. */
    @ParameterizedTest
    @CsvSource({"irdma-iwarp, 22", "x722, 22", "cxgb4, 0"})
    void anIwarpQueuePairThatIsConnectedDoesNotGoBack(String family, int toReceive) {
        become(family);
        connected(EndpointOptions.DEFAULTS);
        int number = StubDevice.lastNumber();
        assertThat(modify(number, QueuePairState.INIT, 0)).isEqualTo(Errno.EINVAL);
        assertThat(modify(number, QueuePairState.RTR, 0)).isEqualTo(toReceive);
        assertThat(modify(number, QueuePairState.RTS, 0)).isZero();
    }

    /** Chelsio's driver lets nothing that has failed go to the state in which TCP is closed, so disconnecting fails. */
    @Test
    void aFailedConnectionEndsThoughItCannotBeDisconnected() {
        become("cxgb4");
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        loseByRetries(client);
        assertThat(client.awaitDisconnected()).isInstanceOf(RdmaException.class);
        Patience.until("the id is gone", () -> !StubDevice.leaks().contains("rdma_cm_id"));
    }

    private static int modify(int number, QueuePairState state, int mask) {
        return StubDevice.call("stub_modify", number, state.value(), QueuePairAttribute.STATE.value() | mask);
    }

    // ---- which devices serve

    @ParameterizedTest
    @CsvSource({
        "mlx5, true, true", "irdma-iwarp, true, false", "erdma, true, false",
        "erdma-roce, true, false", "qedr, true, false", "mana-rc, true, false",
        "efa, false, false", "mana, false, false", "hfi1, false, false"
    })
    void servesWildcardsOnlyWherePeersCanConnect(String family, boolean serves, boolean hasDatagrams) {
        become(family);
        assertThat(provider.serves(new InetSocketAddress("0.0.0.0", 7471))).isEqualTo(serves);
        assertThat(provider.serves(new InetSocketAddress("::", 7471))).isEqualTo(serves);
        assertThat(provider.hasDatagrams()).isEqualTo(hasDatagrams);
        assertThat(provider.description()).contains("stub0");
    }

    // ---- completion queues

    @ParameterizedTest
    @ValueSource(strings = {"bnxt_re", "mlx5", "erdma"})
    void addsACompletionQueueInsteadOfResizing(String family) {
        become(family);
        List<RecordingEndpointHandler> clients = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            clients.add(connected(EndpointOptions.DEFAULTS));
        }
        for (RecordingEndpointHandler client : clients) {
            send(client, memory(client), 1);
        }
        assertThat(StubDevice.allCalls()).doesNotContain("ibv_resize_cq");
    }

    @Test
    void aBrokenCompletionQueueIsNotUsedAgain() {
        become("mlx5");
        RecordingEndpointHandler first = connected(EndpointOptions.DEFAULTS);
        int before = count("ibv_create_cq");
        StubDevice.call("stub_async_queue", StubDevice.lastNumber(), AsyncEventType.CQ_ERR.value());
        assertThat(first.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
        RecordingEndpointHandler second = connected(EndpointOptions.DEFAULTS);
        assertThat(count("ibv_create_cq")).isEqualTo(before + 1);
        send(second, memory(second), 1);
    }

    @Test
    void aBrokenCompletionChannelIsReplaced() {
        become("mlx5");
        RecordingEndpointHandler first = connected(EndpointOptions.DEFAULTS);
        RegisteredMemory region = memory(first);
        first.receive(1, region, 0, 64);
        Patience.until("the queue is armed", () -> StubDevice.call("stub_is_armed", StubDevice.lastNumber()) != 0);
        StubDevice.fail("ibv_get_cq_event", Errno.EIO, 1);
        StubDevice.call("stub_receive", StubDevice.lastNumber(), 10, 0);
        assertThat(first.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
        RecordingEndpointHandler second = connected(EndpointOptions.DEFAULTS);
        send(second, memory(second), 1);
        Patience.until("the old channel is gone", () -> StubDevice.leaks().contains("stub_channel 1"));
    }

    @Test
    void aQueuePairThatIsBusyIsDestroyedLater() {
        become("mlx5");
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        StubDevice.fail("ibv_destroy_qp", Errno.EBUSY, 3);
        client.awaitPrepared().disconnect();
        assertThat(client.awaitDisconnected()).isNull();
        assertThat(StubDevice.leaks()).doesNotContain("stub_qp");
        Patience.until("the id is gone", () -> !StubDevice.leaks().contains("rdma_cm_id"));
    }

    private static int count(String function) {
        String[] words = StubDevice.allCalls().split(" ");
        for (int i = 0; i + 1 < words.length; i += 2) {
            if (words[i].equals(function)) {
                return Integer.parseInt(words[i + 1]);
            }
        }
        return 0;
    }

    // ---- shared receive queues

    private static void shareReceives(RecordingEndpointHandler client, RegisteredMemory region, int count) {
        client.run(endpoint -> {
            SharedReceiveQueue queue = endpoint.sharedReceiveQueue();
            for (int i = 0; i < count; i++) {
                assertThat(queue.postReceive(100 + i, new ScatterGatherList(1).add(region, i * 64L, 64)))
                        .isTrue();
            }
            queue.flush();
        });
    }

    @Test
    void aBrokenSharedReceiveQueueIsReplaced() {
        become("mlx5");
        EndpointOptions shared = StubDevice.options(true, 20_000);
        RecordingEndpointHandler first = connected(shared);
        shareReceives(first, memory(first), 3);
        RecordingEndpointHandler alone = connected(StubDevice.options(false, 20_000));
        int queues = count("ibv_create_srq");
        StubDevice.call("stub_async_queue", StubDevice.lastNumber() - 1, AsyncEventType.SRQ_ERR.value());
        assertThat(first.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
        RecordingEndpointHandler second = connected(shared);
        assertThat(count("ibv_create_srq")).isEqualTo(queues + 1);
        shareReceives(second, memory(second), 3);
        StubDevice.call("stub_receive", StubDevice.lastNumber(), 10, 0);
        assertThat(second.awaitReceive().workId()).isEqualTo(100);
        send(alone, memory(alone), 1);
        Patience.until("the old queue is gone", () -> StubDevice.leaks().contains("stub_srq 1"));
    }

    @Test
    void aRefusedSharedReceiveLosesNobodysCompletions() {
        become("mlx5");
        RecordingEndpointHandler sharing = connected(StubDevice.options(true, 20_000));
        int number = StubDevice.lastNumber();
        shareReceives(sharing, memory(sharing), 3);
        RecordingEndpointHandler other = connected(StubDevice.options(false, 20_000));
        int otherNumber = StubDevice.lastNumber();
        RegisteredMemory region = memory(other);
        StubDevice.call("stub_hold_sends", 1);
        WorkRequest work = new WorkRequest(1).asSend(9, 0);
        work.buffers().add(region, 0, 64);
        other.send(work);
        StubDevice.fail("post_srq_recv", Errno.ENOMEM, 1);
        loop.submit(() -> {
            // Both are in one batch: the first is of a connection that is gone, whose receive cannot be posted again.
            StubDevice.call("stub_receive", number, 10, number + 100);
            StubDevice.call("stub_complete", otherNumber, 0, 0);
        });
        assertThat(other.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        assertThat(sharing.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
        assertThat(other.isDisconnected()).isFalse();
        connected(StubDevice.options(true, 20_000));
    }

    // ---- memory windows

    /** bnxt_re makes no window; others, played by a failure, make one and do not bind it. */
    @ParameterizedTest
    @CsvSource({"bnxt_re, 0", "irdma-roce, 0", "mlx5, 22", "ionic, 95"})
    void usesPlainRegionsWhereWindowsAreRefused(String family, int bindErrno) {
        become(family);
        if (bindErrno != 0) {
            StubDevice.fail("bind_mw", bindErrno, Integer.MAX_VALUE);
        }
        for (int i = 0; i < 2; i++) {
            RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
            assertThat(client.<Boolean>call(endpoint -> endpoint.capabilities().connectionMemory()))
                    .isFalse();
            RegisteredMemory region = client.call(endpoint ->
                    endpoint.connectionMemory().register(Arena.global().allocate(4096), Set.of(Access.REMOTE_READ)));
            regions.add(region);
            send(client, memory(client), 1);
            assertThat(client.isDisconnected()).isFalse();
        }
        assertThat(StubDevice.call("stub_binds")).isEqualTo(bindErrno == 0 ? 0 : 1);
    }

    /** The first connection does without, the next one has them. */
    @ParameterizedTest
    @ValueSource(strings = {"stub_alloc_mw", "bind_mw"})
    void aWindowThatIsRefusedForAMomentIsTriedAgain(String function) {
        become("mlx5");
        int announced = function.equals("stub_alloc_mw") ? 1 : 0; // is tried when the device is opened as well
        StubDevice.failOnce(function, Errno.ENOMEM, announced);
        for (boolean hasWindows : new boolean[] {false, true}) {
            RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
            assertThat(client.<Boolean>call(endpoint -> endpoint.capabilities().connectionMemory()))
                    .isEqualTo(hasWindows);
        }
        assertThat(StubDevice.call("stub_failed")).isOne();
    }

    @Test
    void windowsThatAreRefusedForAMomentWhenTheDeviceIsOpenedAreTriedAgain() {
        become("mlx5");
        StubDevice.fail("stub_alloc_mw", Errno.ENOMEM, 2);
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        assertThat(StubDevice.call("stub_failed")).isEqualTo(2);
        assertThat(client.<Boolean>call(endpoint -> endpoint.capabilities().connectionMemory()))
                .isTrue();
    }

    /** The program has registered memory with a window before the connection shows that there are none. */
    @Test
    void whatWasRegisteredBeforeWindowsWereRefusedIsGivenBack() {
        become("mlx5");
        StubDevice.fail("bind_mw", Errno.EINVAL, 1);
        RecordingEndpointHandler client = new RecordingEndpointHandler("early", loop)
                .whenPrepared(endpoint -> regions.add(endpoint.connectionMemory()
                        .register(Arena.global().allocate(4096), Set.of(Access.REMOTE_READ))));
        handlers.add(client);
        provider.connect(loop, StubDevice.ROCE, EndpointOptions.DEFAULTS, client);
        assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.class);
        regions.removeFirst().close();
        Patience.until("its window is gone", () -> !StubDevice.leaks().contains("ibv_mw"));
        connected(EndpointOptions.DEFAULTS);
    }

    @Test
    void triesWindowsOnceADevice() {
        become("mlx5");
        for (int i = 0; i < 3; i++) {
            RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
            assertThat(client.<Boolean>call(endpoint -> endpoint.capabilities().connectionMemory()))
                    .isTrue();
            send(client, memory(client), 1);
        }
        assertThat(StubDevice.call("stub_binds")).isOne();
    }

    /** A binding behind a send that is out: elsewhere it waits for an empty queue, and so do other sends. */
    @ParameterizedTest
    @CsvSource({"mlx5, true", "mlx4, true", "ionic, false"})
    void bindsBehindOtherWorkWhereTheDeviceCan(String family, boolean isBehind) {
        become(family);
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        int number = StubDevice.lastNumber();
        RegisteredMemory region = memory(client);
        send(client, region, 1);
        int before = StubDevice.call("stub_binds");
        StubDevice.call("stub_hold_sends", 1);
        client.run(endpoint -> {
            WorkRequest work = new WorkRequest(1).asSend(7, 0);
            work.buffers().add(region, 0, 64);
            client.post(endpoint, work);
            regions.add(
                    endpoint.connectionMemory().register(Arena.global().allocate(4096), Set.of(Access.REMOTE_READ)));
            assertThat(StubDevice.call("stub_binds") - before).isEqualTo(isBehind ? 1 : 0);
            assertThat(endpoint.freeSendSlots() > 0).isEqualTo(isBehind);
            endpoint.flush();
        });
        StubDevice.call("stub_complete", number, 0, 0);
        assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        Patience.until("it is bound", () -> StubDevice.call("stub_binds") - before == 1);
        StubDevice.call("stub_hold_sends", 0);
        StubDevice.call("stub_complete", number, 0, 0);
        send(client, region, 1);
        client.awaitPrepared().disconnect();
        assertThat(client.awaitDisconnected()).isNull();
    }

    // ---- what blocks

    /** An ibacm that does not answer. */
    @Test
    void aRouteThatIsNotResolvedHoldsUpNobody() {
        become("mlx5-ib");
        RecordingEndpointHandler silent = new RecordingEndpointHandler("to a silent host", loop);
        handlers.add(silent);
        Endpoint attempt =
                provider.connect(loop, new InetSocketAddress("10.0.0.251", 7471), EndpointOptions.DEFAULTS, silent);
        Patience.until("the call blocks", () -> StubDevice.call("stub_blocked") == 1);
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        send(client, memory(client), 1);
        attempt.disconnect();
        assertThat(silent.awaitDisconnected()).isInstanceOf(ConnectionException.class);
        assertThat(StubDevice.call("stub_blocked")).isOne();
        StubDevice.call("stub_unblock");
        client.awaitPrepared().disconnect();
        assertThat(client.awaitDisconnected()).isNull();
        Patience.until("the ids are closed", () -> !StubDevice.leaks().contains("rdma_cm_id"));
    }

    @Test
    void aRouteThatIsRefusedEndsTheAttempt() {
        become("mlx5-ib");
        StubDevice.fail("rdma_resolve_route", Errno.ENODATA, 1);
        assertThat(connect(EndpointOptions.DEFAULTS).awaitDisconnected()).isInstanceOf(ConnectionException.class);
        connected(EndpointOptions.DEFAULTS);
    }

    // ---- InfiniBand

    /** Its own addresses need no IPoIB interface: hfi1 has none here. */
    @Test
    void anAddressOfInfinibandLeadsToADeviceWithoutIpAddress() {
        become("hfi1");
        try (EventChannel channel = EventChannel.open();
                CmId id = CmId.create(channel, PortSpace.IB)) {
            id.resolveAddress(null, new InfinibandAddress(new Gid(1, 2), 0x8001, 0x1_2345, -1), 1000);
            CmEvent event = channel.get(Patience.LIMIT.toMillis());
            assertThat(event).isNotNull();
            assertThat(event.type()).isEqualTo(CmEventType.ADDR_RESOLVED);
            assertThat(id.device().device().name()).isEqualTo("stub0");
            assertThat(StubDevice.call("stub_resolved_pkey")).isEqualTo(0x8001);
            assertThat(StubDevice.call("stub_resolved_service")).isEqualTo(0x1_2345);
        }
    }

    /** The subnet manager maps it to a service level. */
    @Test
    void theTypeOfServiceIsPartOfTheRoute() {
        become("mlx5-ib");
        connected(EndpointOptions.DEFAULTS.with(o -> o.trafficClass = 0x68));
        assertThat(StubDevice.call("stub_type_of_service")).isEqualTo(0x68);
    }

    // ---- processors, interrupts and locks

    /** With the errnos of drivers whose firmware refuses a command or does not answer, at each step that modifies. */
    @ParameterizedTest
    @CsvSource({
        "mlx5, modify_reply",
        "irdma-roce, modify_reply",
        "irdma-iwarp, rdma_connect",
        "x722, rdma_connect",
        "erdma, rdma_connect",
        "erdma-roce, modify_reply",
        "hns, modify_reply",
        "cxgb4, rdma_connect",
        "mlx4, modify_reply",
        "bnxt_re, modify_reply",
        "mana-rc, modify_reply",
        "ionic, modify_reply",
        "qedr, modify_reply"
    })
    void aQueuePairThatCannotBeModifiedEndsItsAttemptAtOnce(String family, String connecting) {
        become(family);
        int errno = StubDevice.call("stub_fact", family, "modify_errno");
        assertThat(errno).isPositive();
        EndpointOptions patient = EndpointOptions.DEFAULTS.with(o -> o.connectTimeoutMillis = 600_000);
        RecordingListenerHandler listening = new RecordingListenerHandler(loop);
        Listener listener = provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, listening);
        listening.awaitListening();
        for (String step : List.of("modify_init", connecting, "modify_accept", "rdma_accept")) {
            StubDevice.fail(step, errno, 1);
            RecordingEndpointHandler handler = new RecordingEndpointHandler(step, loop);
            handlers.add(handler);
            if (step.endsWith("accept")) {
                StubDevice.call("stub_request", StubDevice.ROCE.getPort());
                listening.awaitRequest().accept(loop, patient, handler);
            } else {
                provider.connect(loop, StubDevice.ROCE, patient, handler);
            }
            assertThat(handler.awaitDisconnected()).as(step).isInstanceOf(ConnectionException.class);
        }
        listener.close();
        listening.awaitClosed();
        connected(EndpointOptions.DEFAULTS);
    }

    @Test
    void noLoopLocksADoorbell() {
        become("mlx5");
        int domains = StubDevice.call("stub_thread_domains");
        for (int i = 0; i < 6; i++) {
            RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
            send(client, memory(client), 1);
        }
        assertThat(StubDevice.call("stub_send_posts")).isGreaterThanOrEqualTo(6);
        assertThat(StubDevice.call("stub_locked_doorbells")).isZero();
        assertThat(StubDevice.call("stub_thread_domains")).isEqualTo(domains + 1);
    }

    @ParameterizedTest
    @CsvSource({"stub_alloc_td, 1, false", "stub_alloc_td, 2, true", "stub_alloc_parent_domain, 1, false"})
    void aDeviceWithoutThreadDomainsLeftIsUsedWithLocks(String function, int times, boolean locks) {
        become("mlx5");
        StubDevice.fail(function, Errno.ENOMEM, times);
        for (int i = 0; i < 6; i++) {
            RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
            send(client, memory(client), 1);
        }
        assertThat(StubDevice.call("stub_locked_doorbells") > 0).isEqualTo(locks);
    }

    @Test
    void loopsOfTwoGroupsHaveDifferentVectors() {
        become("mlx5");
        connected(EndpointOptions.DEFAULTS);
        int first = StubDevice.call("stub_last_vector");
        MultiThreadIoEventLoopGroup another =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        try {
            RecordingEndpointHandler client = new RecordingEndpointHandler("on another", another.next());
            provider.connect(another.next(), StubDevice.ROCE, EndpointOptions.DEFAULTS, client);
            client.awaitConnected();
            assertThat(StubDevice.call("stub_last_vector")).isEqualTo(first + 1);
        } finally {
            Patience.await("it ended", another.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        }
    }

    @ParameterizedTest
    @CsvSource({"mlx5, on, 0, true", "mlx5, on, 22, false", "mlx5, off, 0, false", "ideal, on, 0, false"})
    void registersForRelaxedOrderingWhereItIsWantedAndTaken(
            String family, String setting, int refusal, boolean isRelaxed) {
        System.setProperty(RelaxedOrdering.SETTING, setting);
        try {
            become(family);
            if (refusal != 0) {
                StubDevice.fail("relaxed", refusal, Integer.MAX_VALUE);
            }
            RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
            int before = StubDevice.call("stub_relaxed");
            memory(client);
            assertThat(StubDevice.call("stub_relaxed") - before).isEqualTo(isRelaxed ? 1 : 0);
            regions.add(client.call(endpoint -> endpoint.memoryDomain()
                    .register(Arena.global().allocate(64), Set.of(Access.LOCAL_WRITE, Access.REMOTE_ATOMIC))));
            assertThat(StubDevice.call("stub_relaxed") - before).isEqualTo(isRelaxed ? 1 : 0);
        } finally {
            System.clearProperty(RelaxedOrdering.SETTING);
        }
    }

    // ---- settings, ports and causes

    @Test
    void refusesASettingThatEndsTheProcess() {
        Map<String, String> single = Map.of("MLX5_SINGLE_THREADED", "1");
        assertThatThrownBy(() -> VerbsDevice.checkEnvironment(DriverFamily.MLX5, single))
                .isInstanceOf(ProviderException.class)
                .hasMessageContaining("MLX5_SINGLE_THREADED");
        VerbsDevice.checkEnvironment(DriverFamily.IRDMA, single);
        VerbsDevice.checkEnvironment(DriverFamily.MLX5, Map.of("MLX5_SINGLE_THREADED", "0"));
    }

    @Test
    void peersRepeatSoonWhatFoundNoReceive() {
        become("mlx5");
        connected(EndpointOptions.DEFAULTS);
        assertThat(StubDevice.call("stub_min_rnr_timer")).isEqualTo(RnrTimer.code(640));
    }

    /** The default is for adapters of RoCE; InfiniBand asks its subnet manager, and iWARP has TCP. */
    @ParameterizedTest
    @CsvSource({"mlx5, 16", "bnxt_re, 16", "irdma-iwarp, -1", "erdma, -1", "ideal, -1"})
    void waitsForAcknowledgementsAsLongAsSuitsTheNetwork(String family, int exponent) {
        become(family);
        StubDevice.call("stub_ack_timeout");
        connected(EndpointOptions.DEFAULTS);
        assertThat(StubDevice.call("stub_ack_timeout")).isEqualTo(exponent);
    }

    @Test
    void aKernelWithoutAckTimeoutsRefusesADemandAndIsLeftAloneOtherwise() {
        become("mlx5");
        EndpointOptions quick = EndpointOptions.DEFAULTS.with(o -> o.ackTimeoutMicros = 5000);
        connected(quick);
        assertThat(StubDevice.call("stub_ack_timeout")).isEqualTo(11);
        StubDevice.fail("ack_timeout", Errno.ENOSYS, 2);
        connected(EndpointOptions.DEFAULTS);
        assertThat(connect(quick).awaitDisconnected())
                .isInstanceOfSatisfying(
                        ConnectionException.class,
                        refused -> assertThat(refused).hasCauseInstanceOf(CmException.class));
        assertThat(StubDevice.call("stub_ack_timeout")).isEqualTo(-1);
    }

    @Test
    void iwarpRefusesAnAckTimeout() {
        become("erdma");
        EndpointOptions quick = EndpointOptions.DEFAULTS.with(o -> o.ackTimeoutMicros = 5000);
        assertThat(connect(quick).awaitDisconnected())
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("ackTimeoutMicros 5000");
    }

    @Test
    void aPortThatIsUpSaysNothingOfAnother() {
        become("mlx5");
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        int taken = StubDevice.call("stub_asyncs_taken");
        StubDevice.call("stub_async_port", 0, AsyncEventType.PORT_ERR.value(), 1);
        StubDevice.call("stub_async_port", 0, AsyncEventType.PORT_ACTIVE.value(), 2);
        Patience.until("both events", () -> StubDevice.call("stub_asyncs_taken") == taken + 2);
        provider.awaitConnectionLoops();
        loseByRetries(client);
        assertThat(client.awaitDisconnected()).hasMessageEndingWith("port 1 of stub0 is down");
    }

    @Test
    void theOtherPortIsNotBlamed() {
        become("mlx5");
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        int taken = StubDevice.call("stub_asyncs_taken");
        StubDevice.call("stub_async_port", 0, AsyncEventType.PORT_ERR.value(), 2);
        Patience.until("the event", () -> StubDevice.call("stub_asyncs_taken") == taken + 1);
        provider.awaitConnectionLoops();
        loseByRetries(client);
        assertThat(client.awaitDisconnected()).isInstanceOf(WorkCompletionException.class);
    }

    private void loseByRetries(RecordingEndpointHandler client) {
        StubDevice.call("stub_hold_sends", 1);
        WorkRequest work = new WorkRequest(1).asSend(9, 0);
        work.buffers().add(memory(client), 0, 64);
        client.send(work);
        StubDevice.call("stub_complete", StubDevice.lastNumber(), CompletionStatus.RETRY_EXC_ERR.value(), 0);
    }

    /** Only over iWARP do receives come back when the peer ends the connection in good order. */
    @ParameterizedTest
    @CsvSource({"mlx5, false", "irdma-iwarp, true"})
    void receivesThatComeBackAreALossButOverIwarp(String family, boolean isGoodOrder) {
        become(family);
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        client.receive(1, memory(client), 0, 64);
        StubDevice.call("stub_flush_receive", StubDevice.lastNumber());
        Throwable cause = client.awaitDisconnected();
        if (isGoodOrder) {
            assertThat(cause).isNull();
        } else {
            assertThat(cause).isInstanceOf(ConnectionException.Lost.class);
        }
    }

    /** A TERMINATE of the peer gives work back as well, and on some adapters the receives first. */
    @ParameterizedTest
    @ValueSource(strings = {"irdma-iwarp", "erdma", "cxgb4"})
    void receivesThatComeBackBeforeASendIsDoneAreALossOverIwarpToo(String family) {
        become(family);
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        client.receive(1, memory(client), 0, 64);
        StubDevice.call("stub_hold_sends", 1);
        client.send(new WorkRequest(1).asSend(2, 0));
        StubDevice.call("stub_flush_receive", StubDevice.lastNumber());
        assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
        assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.FLUSHED);
    }

    /** A peer that closes in good order has taken what was sent, whatever comes back first. */
    @ParameterizedTest
    @ValueSource(strings = {"irdma-iwarp", "erdma", "cxgb4"})
    void receivesThatComeBackBeforeASendIsDoneAreNoLossIfThePeerHasTakenIt(String family) {
        become(family);
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        client.receive(1, memory(client), 0, 64);
        StubDevice.call("stub_hold_sends", 1);
        StubDevice.call("stub_hold_flushes", 1);
        client.send(new WorkRequest(1).asSend(2, 0));
        StubDevice.call("stub_flush_receive", StubDevice.lastNumber());
        assertThat(client.awaitReceive().status()).isEqualTo(WorkStatus.FLUSHED);
        StubDevice.call("stub_complete", StubDevice.lastNumber(), 0, 0);
        assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        StubDevice.call("stub_hold_flushes", 0);
        assertThat(client.awaitDisconnected()).isNull();
    }

    @Test
    void gidsOfOtherNamespacesAreNotOurs() throws Exception {
        assertThat(LocalPort.ownership(Integer.MAX_VALUE, InetAddress.getLoopbackAddress()))
                .isZero();
        NetworkInterface loopback = NetworkInterface.getByInetAddress(InetAddress.getLoopbackAddress());
        assertThat(LocalPort.ownership(loopback.getIndex(), InetAddress.getLoopbackAddress()))
                .isEqualTo(2);
        assertThat(LocalPort.ownership(loopback.getIndex(), InetAddress.ofLiteral("192.0.2.1")))
                .isOne();
    }

    // ---- polling

    /** While a poll is in the kernel, this thread must be able to collect garbage. */
    @Test
    void aPollThatEntersTheKernelDoesNotStopTheJvm() {
        become("hns");
        RecordingEndpointHandler client = connected(EndpointOptions.DEFAULTS);
        StubDevice.call("stub_hold_sends", 1);
        WorkRequest work = new WorkRequest(1).asSend(9, 0);
        work.buffers().add(memory(client), 0, 64);
        client.send(work);
        int polls = StubDevice.call("stub_kernel_polls");
        int stillHeld;
        StubDevice.call("stub_hold_kernel_polls", 1);
        try {
            StubDevice.call("stub_complete", StubDevice.lastNumber(), CompletionStatus.RETRY_EXC_ERR.value(), 0);
            Patience.until("the poll is in the kernel", () -> StubDevice.call("stub_kernel_polls") > polls);
            System.gc(); // waits for critical calls
        } finally {
            stillHeld = StubDevice.call("stub_hold_kernel_polls", 0);
        }
        assertThat(stillHeld).isOne();
        assertThat(client.awaitDisconnected()).isNotNull();
    }

    // ---- datagrams

    @Test
    void datagramsShrinkToTheDevice() {
        become("small");
        Datagrams handler = new Datagrams();
        provider.openDatagrams(loop, StubDevice.ROCE, null, DatagramOptions.DEFAULTS, handler);
        DatagramEndpoint endpoint = Patience.await("they are open", handler.opened);
        DatagramCapabilities its = Patience.await("they are told", loop.submit(endpoint::capabilities));
        assertThat(its.sendDepth()).isEqualTo(16);
        assertThat(its.receiveDepth()).isEqualTo(16);
        assertThat(its.maxSges()).as("a send has more than the device reports").isEqualTo(3);
        assertThat(its.maxInlineBytes()).isEqualTo(48);
        endpoint.close();
        assertThat(Patience.await("they are closed", handler.closed)).isEmpty();
    }

    /** Where packets go by LID, the address that a peer answers to must contain the LID as well. */
    @Test
    void datagramsOverInfinibandTellTheirLid() {
        become("mlx5-ib");
        Datagrams handler = new Datagrams();
        provider.openDatagrams(loop, StubDevice.ROCE, null, DatagramOptions.DEFAULTS, handler);
        DatagramEndpoint endpoint = Patience.await("they are open", handler.opened);
        assertThat(Patience.await(
                        "it is told", loop.submit(() -> endpoint.self().lid())))
                .isEqualTo(7);
        endpoint.close();
        assertThat(Patience.await("they are closed", handler.closed)).isEmpty();
    }

    /** On InfiniBand a GID names a port, and an IP address is that of an IPoIB interface. */
    @ParameterizedTest
    @ValueSource(strings = {"mlx5", "mlx5-ib"})
    void aWildcardForDatagramsTakesTheAddressOfTheOnlyDevice(String family) throws Exception {
        Set<InetAddress> ofThisHost = StubDevice.serveHostAddresses();
        assumeFalse(ofThisHost.isEmpty(), "this host has an address on loopback only");
        become(family);
        Datagrams handler = new Datagrams();
        provider.openDatagrams(loop, new InetSocketAddress("0.0.0.0", 0), null, DatagramOptions.DEFAULTS, handler);
        DatagramEndpoint endpoint = Patience.await("they are open", handler.opened);
        assertThat(endpoint.localAddress().getAddress()).isIn(ofThisHost);
        endpoint.close();
        assertThat(Patience.await("they are closed", handler.closed)).isEmpty();
    }

    /** A port that is up is not enough: peers look this one up by an IP address. */
    @ParameterizedTest
    @ValueSource(strings = {"hfi1", "erdma"})
    void aWildcardForDatagramsIsRefusedWhereNoDeviceHasThemAndAnAddress(String family) {
        become(family);
        Datagrams handler = new Datagrams();
        provider.openDatagrams(loop, new InetSocketAddress("0.0.0.0", 0), null, DatagramOptions.DEFAULTS, handler);
        assertThat(Patience.await("they are refused", handler.closed))
                .containsInstanceOf(ConnectionException.Unreachable.class);
    }

    @ParameterizedTest
    @CsvSource({"300, 16, 2", "16, 200, 2", "16, 16, 5"})
    void datagramsThatAskForMoreThanTheDefaultsAreRefusedWithTheLimit(int sends, int receives, int sges) {
        become("small");
        Datagrams handler = new Datagrams();
        provider.openDatagrams(
                loop, StubDevice.ROCE, null, new DatagramOptions(sends, receives, sges, 0, 0, false), handler);
        assertThat(Patience.await("they are refused", handler.closed)).containsInstanceOf(ConnectionException.class);
    }
}
