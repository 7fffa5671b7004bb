package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.ProviderException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
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
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.work.CompletionStatus;

/**
 * Failures and removals of devices, on devices in memory: each of their connections learns why, the others do not
 * notice, and nothing is lost.
 */
@Timeout(240)
@Families.Suite
class DeviceFailureTest {
    @Parameter
    String family;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
    }

    private static final int ALWAYS = Integer.MAX_VALUE;

    private final VerbsProvider provider = new VerbsProvider();
    private final List<RegisteredMemory> regions = new ArrayList<>();
    private final List<Client> clients = new ArrayList<>();
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
        StubDevice.call("stub_unblock");
        StubDevice.call("stub_hold_flushes", 0);
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        clients.forEach(client -> client.handler.assertNoViolations());
        regions.forEach(RegisteredMemory::close);
        StubDevice.close(provider);
    }

    /** One side of a connection, and its queue pair. */
    private record Client(RecordingEndpointHandler handler, int number) {}

    private RecordingEndpointHandler connect(InetSocketAddress address, EndpointOptions options) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler("client " + clients.size(), loop);
        clients.add(new Client(handler, 0));
        provider.connect(loop, address, options, handler);
        return handler;
    }

    @Test
    void tellsThePeerWhenToRepeatASendOrRefuses() {
        Families.assumeNotIwarp();
        EndpointOptions quick = StubDevice.options(false, 20_000).with(o -> o.minRnrTimerMicros = 600);
        connect(StubDevice.ROCE, quick).awaitConnected();
        assertThat(StubDevice.call("stub_min_rnr_timer")).isEqualTo(RnrTimer.code(640));
        assertThat(connect(StubDevice.IWARP, quick).awaitDisconnected())
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("minRnrTimerMicros 600")
                .hasMessageContaining("iWARP");
        StubDevice.fail("ibv_modify_qp", Errno.EINVAL, 1);
        assertThat(connect(StubDevice.ROCE, quick).awaitDisconnected())
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("ibv_modify_qp");
    }

    private Client connected(InetSocketAddress address, boolean shared) {
        Families.assumeReceives(shared);
        RecordingEndpointHandler handler = connect(address, StubDevice.options(shared, 20_000));
        if (shared) {
            handler.sharesReceives();
        }
        handler.awaitConnected();
        return new Client(handler, StubDevice.lastNumber());
    }

    private RegisteredMemory memory(Client client) {
        RegisteredMemory region = client.handler.call(endpoint ->
                endpoint.memoryDomain().register(Arena.global().allocate(4096), Set.of(Access.LOCAL_WRITE)));
        regions.add(region);
        return region;
    }

    private static void send(Client client, RegisteredMemory region, long id) {
        WorkRequest work = new WorkRequest(1).asSend(id, 0);
        work.buffers().add(region, 0, 64);
        client.handler.send(work);
    }

    private static void shareReceives(Client client, RegisteredMemory region, int count) {
        client.handler.run(endpoint -> {
            SharedReceiveQueue queue = endpoint.sharedReceiveQueue();
            for (int i = 0; i < count; i++) {
                assertThat(queue.postReceive(100 + i, new ScatterGatherList(1).add(region, i * 64L, 64)))
                        .isTrue();
            }
            queue.flush();
        });
    }

    /** Waits until the connection loop has handled so many asynchronous events. */
    private void awaitAsyncs(int count) {
        Patience.until("asynchronous events", () -> StubDevice.call("stub_asyncs_taken") >= count);
        provider.awaitConnectionLoops();
    }

    @Test
    void aDeviceThatCannotArmLosesOnlyItsConnections() {
        Client failing = connected(StubDevice.ROCE, false);
        Client healthy = connected(StubDevice.IWARP, false);
        RegisteredMemory region = memory(healthy);
        failing.handler.receive(1, memory(failing), 0, 64);
        StubDevice.fail("req_notify_cq:stub0", Errno.EIO, ALWAYS);
        // What comes disarms the queue, so that the loop arms again.
        StubDevice.call("stub_receive", failing.number, 10, 0);
        assertThat(failing.handler.awaitDisconnected())
                .isInstanceOf(ConnectionException.Lost.class)
                .hasMessageContaining("completion queue")
                .hasMessageContaining("ibv_req_notify_cq")
                .hasMessageContaining("EIO");
        assertThat(failing.handler.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
        send(healthy, region, 7);
        assertThat(healthy.handler.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        assertThat(healthy.handler.isDisconnected()).isFalse();
    }

    @Test
    void aDeviceWhoseEventsCannotBeReadLosesOnlyItsConnections() {
        Client failing = connected(StubDevice.ROCE, false);
        Client healthy = connected(StubDevice.IWARP, false);
        failing.handler.receive(1, memory(failing), 0, 64);
        StubDevice.fail("ibv_get_cq_event:stub0", Errno.EIO, ALWAYS);
        // A loop that polls meanwhile would find the message without an event.
        Patience.until("the loop waits", () -> StubDevice.call("stub_is_armed", failing.number) == 1);
        StubDevice.call("stub_receive", failing.number, 10, 0);
        assertThat(failing.handler.awaitDisconnected())
                .isInstanceOf(ConnectionException.Lost.class)
                .hasMessageContaining("ibv_get_cq_event");
        send(healthy, memory(healthy), 7);
        assertThat(healthy.handler.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        StubDevice.call("stub_reset");
        Client late = connected(StubDevice.ROCE, false); // on another channel
        send(late, memory(late), 8);
        assertThat(late.handler.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
    }

    @Test
    void aDeviceThatCannotBePolledLosesOnlyItsConnections() {
        Client failing = connected(StubDevice.ROCE, false);
        Client healthy = connected(StubDevice.IWARP, false);
        StubDevice.fail("poll_cq:stub0", Errno.EIO, ALWAYS);
        assertThat(loop.submit(() -> {}).awaitUninterruptibly(20_000)).isTrue();
        assertThat(failing.handler.awaitDisconnected()).hasMessageContaining("ibv_poll_cq");
        send(healthy, memory(healthy), 7);
        assertThat(healthy.handler.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
    }

    @Test
    void aFailureInABatchDoesNotLoseTheRest() {
        Client failing = connected(StubDevice.ROCE, true);
        Client healthy = connected(StubDevice.ROCE, false);
        RegisteredMemory region = memory(healthy);
        StubDevice.call("stub_hold_sends", 1);
        send(healthy, region, 7);
        loop.submit(() -> {
            // No such receive is out: a driver that says so is wrong.
            long stray = WorkRequestId.of(0, 0, WorkRequestId.SHARED_RECEIVE, WorkRequestId.MAX_SLOTS - 1);
            StubDevice.call("stub_stray", failing.number, stray);
            StubDevice.call("stub_complete", healthy.number, 0, 0);
        });
        assertThat(healthy.handler.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        assertThat(failing.handler.awaitDisconnected())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("report the driver");
        assertThat(healthy.handler.isDisconnected()).isFalse();
    }

    @Test
    void sharedReceivesThatCompletedComeBackBeforeTheirQueuePairGoes() {
        Client client = connected(StubDevice.ROCE, true);
        shareReceives(client, memory(client), 4);
        int before = StubDevice.call("stub_asyncs_taken");
        client.handler.loop().submit(() -> {
            client.handler.awaitPrepared().disconnect();
            // Both that it is in its error state and that the last receive was taken wait for the loop; so does this:
            awaitAsyncs(before + 1);
            StubDevice.call("stub_receive", client.number, 10, 0);
            // Their consequences come before the loop polls.
            loop.execute(provider::awaitConnectionLoops);
        });
        assertThat(client.handler.awaitDisconnected()).isNull();
        assertThat(StubDevice.call("stub_cleaned")).isZero();
        assertThat(client.handler.awaitReceive())
                .isEqualTo(new RecordingEndpointHandler.Completion(100, WorkStatus.SUCCESS, 10, 0, 0));
    }

    @Test
    void aSharedReceiveOfAClosedConnectionIsPostedAgain() {
        Client client = connected(StubDevice.ROCE, true);
        RegisteredMemory region = memory(client);
        shareReceives(client, region, 3);
        int gone = client.number + 100;
        StubDevice.call("stub_receive", client.number, 10, gone);
        Patience.until("it is posted again", () -> StubDevice.call("stub_receives", client.number) == 3);
        for (long id : new long[] {101, 102, 100}) {
            StubDevice.call("stub_receive", client.number, 10, 0);
            assertThat(client.handler.awaitReceive().workId()).isEqualTo(id);
        }
    }

    @Test
    void refusesMemoryOfAnotherDevice() {
        Client client = connected(StubDevice.ROCE, false);
        Client other = connected(StubDevice.IWARP, false);
        RegisteredMemory foreign = memory(other);
        WorkRequest work = new WorkRequest(1).asSend(1, 0);
        work.buffers().add(foreign, 0, 8);
        client.handler.run(endpoint -> {
            assertThatThrownBy(() -> endpoint.post(work))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("another device");
            assertThatThrownBy(() -> endpoint.postReceive(2, work.buffers()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("another device");
            assertThat(endpoint.freeSendSlots())
                    .isEqualTo(endpoint.capabilities().sendDepth());
        });
        send(client, memory(client), 3);
        assertThat(client.handler.awaitSend().workId()).isEqualTo(3);
    }

    /** Linux 6.12's rxe flushes where earlier ones say that the queue pair failed. */
    @ParameterizedTest
    @EnumSource(names = {"LOC_QP_OP_ERR", "WR_FLUSH_ERR"})
    void aPortThatIsDownIsTheReasonThoughTheCompletionComesFirst(CompletionStatus status) {
        Client client = connected(StubDevice.ROCE, false);
        StubDevice.call("stub_hold_sends", 1);
        send(client, memory(client), 7);
        StubDevice.call("stub_port_down", 1);
        StubDevice.call("stub_complete", client.number, status.value(), 0);
        assertThat(client.handler.awaitSend().status())
                .isIn(WorkStatus.LOCAL_QUEUE_PAIR_OPERATION_ERROR, WorkStatus.FLUSHED);
        assertThat(client.handler.awaitDisconnected())
                .isInstanceOf(ConnectionException.Lost.class)
                .hasMessageEndingWith("was lost: port 1 of stub0 is down")
                .hasCauseInstanceOf(WorkCompletionException.class);
    }

    @Test
    void aPortIsNotBlamedForOtherFailures() {
        Client client = connected(StubDevice.ROCE, false);
        StubDevice.call("stub_hold_sends", 1);
        send(client, memory(client), 7);
        StubDevice.call("stub_complete", client.number, CompletionStatus.REM_ACCESS_ERR.value(), 0);
        StubDevice.call("stub_port_down", 1);
        assertThat(client.handler.awaitDisconnected()).isInstanceOf(WorkCompletionException.class);
    }

    @Test
    void hostsThatDoNotAnswerDoNotHoldUpConnectsToOthers() {
        List<RecordingEndpointHandler> first = new ArrayList<>();
        for (int i = 0; i < BlockingConnects.MAX_PER_ADDRESS; i++) {
            first.add(connect(StubDevice.SILENT, StubDevice.options(false, 60_000)));
        }
        Patience.until("the calls block", () -> StubDevice.call("stub_blocked") == first.size());
        List<RecordingEndpointHandler> abandoned = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            abandoned.add(connect(StubDevice.SILENT, StubDevice.options(false, 200)));
        }
        for (RecordingEndpointHandler handler : abandoned) {
            assertThat(handler.awaitDisconnected())
                    .isInstanceOf(ConnectionException.TimedOut.class)
                    .hasMessageContaining("10.0.1.250:7471 took longer than 200 ms");
        }
        assertThat(StubDevice.call("stub_blocked")).isEqualTo(first.size());
        RecordingEndpointHandler healthy = connect(StubDevice.IWARP, StubDevice.options(false, 20_000));
        healthy.awaitConnected();
        assertThat(connect(StubDevice.SILENT, StubDevice.options(false, 2_000)).awaitDisconnected())
                .hasMessageContaining("while waiting for 4 earlier connects to 10.0.1.250:7471");
        // When the kernel gives up, the address is free again.
        StubDevice.call("stub_unblock");
        first.add(connect(StubDevice.SILENT, StubDevice.options(false, 60_000)));
        for (RecordingEndpointHandler handler : first) {
            assertThat(handler.awaitDisconnected())
                    .isInstanceOf(ConnectionException.TimedOut.class)
                    .hasMessageContaining("while the kernel opens the TCP connection")
                    .hasMessageContaining("ETIMEDOUT");
        }
    }

    @Test
    void aListenerIsMadeOnTheCommonLoopAndLivesOnThatOfItsDevice() {
        connected(StubDevice.ROCE, false);
        RecordingListenerHandler handler = new RecordingListenerHandler(loop);
        Listener listener = provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, handler);
        handler.awaitListening();
        assertThat(listener.localAddress()).isEqualTo(StubDevice.ROCE);
        listener.close();
        assertThat(handler.awaitClosed()).isNull();
        String common = StubDevice.threadsOf("rdma_resolve_addr");
        String ofDevice = StubDevice.threadsOf("rdma_listen");
        assertThat(List.of(common, ofDevice))
                .doesNotHaveDuplicates()
                .allSatisfy(thread -> assertThat(thread).isNotEmpty().doesNotContain(" "));
        assertThat(StubDevice.threadsOf("rdma_create_id")).isEqualTo(common);
        assertThat(StubDevice.threadsOf("rdma_bind_addr")).isEqualTo(common);
        assertThat(StubDevice.threadsOf("rdma_destroy_id")).isEqualTo(ofDevice);
        handler.assertNoViolations();
    }

    /** It is on every device. */
    @Test
    void aListenerOnAWildcardStaysOnTheCommonLoop() {
        RecordingListenerHandler handler = new RecordingListenerHandler(loop);
        Listener listener =
                provider.listen(loop, new InetSocketAddress("0.0.0.0", 7471), ListenOptions.DEFAULTS, handler);
        handler.awaitListening();
        listener.close();
        assertThat(handler.awaitClosed()).isNull();
        String common = StubDevice.threadsOf("rdma_bind_addr");
        assertThat(common).isNotEmpty().doesNotContain(" ");
        assertThat(StubDevice.threadsOf("rdma_listen")).isEqualTo(common);
        assertThat(StubDevice.threadsOf("rdma_destroy_id")).isEqualTo(common);
        handler.assertNoViolations();
    }

    @Test
    void aListenerSaysWhyItCannotListen() {
        StubDevice.fail("rdma_listen", Errno.EADDRINUSE, 1);
        RecordingListenerHandler refused = new RecordingListenerHandler(loop);
        provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, refused);
        assertThat(refused.awaitClosed())
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("cannot listen on 10.0.0.1:7471")
                .hasMessageContaining("EADDRINUSE");
        refused.assertNoViolations();
    }

    @Test
    void theLogSaysWhatAnAcceptingSideLacks() {
        RecordingEndpointHandler server = new RecordingEndpointHandler("server", loop).whenPrepared(endpoint -> {
            throw new ProviderException("ibv_reg_mr: the locked-memory limit");
        });
        RecordingListenerHandler listener = new RecordingListenerHandler(loop)
                .whenRequested(request -> request.accept(loop, StubDevice.options(false, 20_000), server));
        provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, listener);
        listener.awaitListening();
        int before = StubDevice.call("stub_rejected");
        StubDevice.call("stub_request", StubDevice.ROCE.getPort());
        assertThat(server.awaitDisconnected()).hasMessageContaining("the locked-memory limit");
        assertThat(StubDevice.call("stub_rejected")).isEqualTo(before + 1);
        assertThat(provider.refusals().count()).isOne();
        server.assertNoViolations();
        listener.assertNoViolations();
    }

    /** What a peer is told that was refused by an endpoint with such a handler. */
    private String told(RecordingEndpointHandler server, EndpointOptions options) {
        RecordingListenerHandler listener =
                new RecordingListenerHandler(loop).whenRequested(request -> request.accept(loop, options, server));
        Listener listening = provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, listener);
        listener.awaitListening();
        int before = StubDevice.call("stub_rejected");
        StubDevice.call("stub_request", StubDevice.ROCE.getPort());
        assertThat(server.awaitDisconnected()).isNotNull();
        assertThat(StubDevice.call("stub_rejected")).isEqualTo(before + 1);
        listening.close();
        assertThat(listener.awaitClosed()).isNull();
        server.assertNoViolations();
        listener.assertNoViolations();
        StringBuilder text = new StringBuilder();
        for (int next, i = 0; (next = StubDevice.call("stub_rejection_byte", i)) >= 0; i++) {
            text.append((char) next);
        }
        return text.toString();
    }

    @Test
    void thePeerIsToldWhyItIsRefused() {
        EndpointOptions options = StubDevice.options(false, 20_000);
        RecordingEndpointHandler withoutMemory = new RecordingEndpointHandler("without memory", loop)
                .whenRejecting(() -> "not now".getBytes(StandardCharsets.US_ASCII))
                .whenPrepared(endpoint -> {
                    throw new ProviderException("ibv_reg_mr: the locked-memory limit");
                });
        assertThat(told(withoutMemory, options)).isEqualTo("not now");
        RecordingEndpointHandler closing = new RecordingEndpointHandler("closing", loop)
                .whenRejecting(() -> "gone".getBytes(StandardCharsets.US_ASCII))
                .whenPrepared(Endpoint::disconnect);
        assertThat(told(closing, options)).isEqualTo("gone");
        StubDevice.fail("ibv_create_qp:stub0", Errno.ENOMEM, ALWAYS);
        RecordingEndpointHandler withoutQueuePair = new RecordingEndpointHandler("without a queue pair", loop)
                .whenRejecting(() -> "full".getBytes(StandardCharsets.US_ASCII));
        assertThat(told(withoutQueuePair, options)).isEqualTo("full");
        RecordingEndpointHandler throwing = new RecordingEndpointHandler("throwing", loop).whenRejecting(() -> {
            throw new IllegalStateException("on purpose");
        });
        assertThat(told(throwing, options)).isEmpty();
        RecordingEndpointHandler verbose = new RecordingEndpointHandler("verbose", loop)
                .whenRejecting(() -> new byte[EndpointOptions.MAX_PRIVATE_DATA_BYTES + 1]);
        assertThat(told(verbose, options)).isEmpty();
    }

    @Test
    void aListenerMayBeClosedAtOnce() {
        for (int i = 0; i < 20; i++) {
            RecordingListenerHandler handler = new RecordingListenerHandler(loop);
            provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, handler)
                    .close();
            assertThat(handler.awaitClosed()).isNull();
            handler.assertNoViolations();
        }
        assertThat(StubDevice.threadsOf("rdma_destroy_id"))
                .as("the loop of the device")
                .doesNotContain(" ")
                .isNotEqualTo(StubDevice.threadsOf("rdma_create_id"));
    }
}
