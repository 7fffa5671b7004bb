package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingEndpointHandler.Completion;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.work.CompletionStatus;

/** How many completions an endpoint has the adapter write, and that nobody waits in vain for one that it does not. */
@Timeout(240)
class SignallingTest {
    private static final EndpointOptions OPTIONS = EndpointOptions.DEFAULTS.with(o -> {
        o.sendDepth = 128;
        o.maxInlineBytes = 64;
    });

    private static final int QUIET = WorkRequest.INLINE | WorkRequest.UNSIGNALLED;

    private final List<RegisteredMemory> regions = new ArrayList<>();
    private VerbsProvider provider;
    private MultiThreadIoEventLoopGroup group;
    private RecordingEndpointHandler client;
    private RegisteredMemory region;

    @BeforeAll
    static void installStub() throws Exception {
        StubDevice.install();
    }

    @BeforeEach
    void resetStub() throws Exception {
        StubDevice.install();
    }

    private void connect(String family, EndpointOptions options) {
        StubDevice.become(family);
        provider = new VerbsProvider();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        IoEventLoop loop = group.next();
        client = new RecordingEndpointHandler("client", loop);
        provider.connect(loop, StubDevice.ROCE, options, client);
        client.awaitConnected();
        region = client.call(
                endpoint -> endpoint.memoryDomain().register(Arena.global().allocate(64), Set.of(Access.LOCAL_WRITE)));
        regions.add(region);
        StubDevice.call("stub_reset");
    }

    @AfterEach
    void endLoop() {
        client.awaitPrepared().disconnect();
        client.awaitDisconnected();
        client.assertNoViolations();
        regions.forEach(RegisteredMemory::close);
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
    }

    private void post(Endpoint endpoint, int id, int flags) {
        WorkRequest work = new WorkRequest(1).asSend(id, flags);
        work.buffers().add(region, 0, 8);
        assertThat(client.post(endpoint, work)).isTrue();
    }

    /** Sends, each with a flush of its own, all within one turn of the loop. */
    private void send(int count, int flags) {
        client.run(endpoint -> {
            for (int i = 0; i < count; i++) {
                post(endpoint, i, flags);
                endpoint.flush();
            }
        });
    }

    private static int completions() {
        return StubDevice.call("stub_send_completions");
    }

    @ParameterizedTest
    @ValueSource(strings = {"ideal", "mlx5", "mlx4"})
    void aBurstOfFlushesHasFewCompletions(String family) {
        connect(family, OPTIONS);
        send(128, 0);
        assertThat(client.awaitSends(128)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
        assertThat(completions()).isLessThanOrEqualTo(4 + 128 / 32 + 1);
    }

    @Test
    void theLastOfEachBurstCompletesWithoutMoreTraffic() {
        connect("mlx5", OPTIONS);
        for (int burst = 1; burst <= 70; burst++) {
            send(burst, 0);
            assertThat(client.awaitSends(burst)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
        }
        assertThat(client.unclaimedCompletions()).isZero();
    }

    /** More is staged, and not flushed, when the last of a burst is asked for. */
    @Test
    void whatIsStagedMeanwhileIsFlushedInPlaceOfAsking() {
        connect("mlx5", OPTIONS);
        for (int staged = 1; staged <= 64; staged += 63) {
            int more = staged;
            StubDevice.call("stub_hold_sends", 1);
            send(20, 0);
            client.run(endpoint -> {
                for (int i = 0; i < more; i++) {
                    post(endpoint, 20 + i, 0);
                }
            });
            StubDevice.call("stub_hold_sends", 0);
            for (int i = 0; i < 20; i++) {
                StubDevice.call("stub_complete", StubDevice.lastNumber(), 0, 0);
            }
            assertThat(client.awaitSends(20)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
            client.run(Endpoint::flush);
            assertThat(client.awaitSends(more)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"mlx5", "irdma-roce", "irdma-iwarp", "erdma", "bnxt_re"})
    void whatNobodyWaitsForHasOneCompletionInManyAndTheQueueNeverFills(String family) {
        connect(family, OPTIONS);
        for (int i = 0; i < 100; i++) {
            send(10, QUIET);
            Patience.until("slots came back", () -> client.call(Endpoint::freeSendSlots) > 128 - 32);
        }
        assertThat(completions()).isBetween(1000 / 32 - 1, 1000 / 32 + 1);
        StubDevice.call("stub_reset");
        send(1, 0); // behind it everything is done
        Patience.until("all have completed", () -> client.unclaimedCompletions() == 1001);
        assertThat(completions()).isOne();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4, 7})
    void aShallowQueueSignalsAll(int depth) {
        connect("mlx5", OPTIONS.with(o -> o.sendDepth = depth));
        for (int i = 0; i < 20; i++) {
            send(1, QUIET);
            assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        }
        assertThat(completions()).isEqualTo(20);
    }

    // ---- the end

    @ParameterizedTest
    @ValueSource(strings = {"ideal", "mlx5", "hns"})
    void whatWasDoneWithoutACompletionIsDoneWhenThisSideCloses(String family) {
        connect(family, OPTIONS);
        send(7, QUIET);
        client.awaitPrepared().disconnect();
        assertThat(client.awaitDisconnected()).isNull();
        assertThat(client.awaitSends(7)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
    }

    @Test
    void whatWasNotDoneIsFlushedWhenThisSideCloses() {
        connect("mlx5", OPTIONS);
        send(3, QUIET);
        StubDevice.call("stub_hold_sends", 1);
        send(4, QUIET);
        client.awaitPrepared().disconnect();
        assertThat(client.awaitDisconnected()).isNull();
        List<Completion> all = client.awaitSends(7);
        assertThat(all.subList(0, 3)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
        assertThat(all.subList(3, 7)).extracting(Completion::status).containsOnly(WorkStatus.FLUSHED);
    }

    /** The peer has everything, and leaves: that no completion said so yet is no loss. */
    @Test
    void aPeerThatLeavesWhenItHasEverythingLeavesInGoodOrder() {
        connect("mlx5", OPTIONS);
        send(7, QUIET);
        leave();
        assertThat(client.awaitDisconnected()).isNull();
        assertThat(client.awaitSends(7)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, QUIET})
    void aPeerThatLeavesWithoutSomeIsALoss(int flags) {
        connect("mlx5", OPTIONS);
        send(3, QUIET);
        StubDevice.call("stub_hold_sends", 1);
        send(2, flags);
        leave();
        assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
        List<Completion> all = client.awaitSends(5);
        assertThat(all.subList(0, 3)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
        assertThat(all.subList(3, 5)).extracting(Completion::status).containsOnly(WorkStatus.FLUSHED);
    }

    /**
     * irdma, bnxt_re and cxgb4 say so of what the peer has; then each flush has a completion, and what nobody waits for
     * is no loss.
     */
    @ParameterizedTest
    @ValueSource(strings = {"irdma-roce", "irdma-iwarp", "bnxt_re", "cxgb4"})
    void aDriverThatFlushesWhatWasDoneFailsNothing(String family) {
        connect(family, OPTIONS);
        send(20, 0);
        leave();
        assertThat(client.awaitDisconnected()).isNull();
        assertThat(client.awaitSends(20)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
    }

    private static void leave() {
        int disconnected = 10; // RDMA_CM_EVENT_DISCONNECTED
        StubDevice.call("stub_cm_device", 0, disconnected);
    }

    @Test
    void aFailureThatNobodyWaitsForEndsTheConnection() {
        connect("mlx5", OPTIONS);
        StubDevice.call("stub_hold_sends", 1);
        send(5, QUIET);
        int number = StubDevice.lastNumber();
        StubDevice.call("stub_complete", number, 0, 0);
        StubDevice.call("stub_complete", number, 0, 0);
        StubDevice.call("stub_complete", number, CompletionStatus.RETRY_EXC_ERR.value(), 0);
        assertThat(client.awaitDisconnected()).isInstanceOf(WorkCompletionException.class);
        assertThat(client.awaitSends(5))
                .extracting(Completion::status)
                .containsExactly(
                        WorkStatus.SUCCESS,
                        WorkStatus.SUCCESS,
                        WorkStatus.TRANSPORT_RETRY_EXCEEDED,
                        WorkStatus.FLUSHED,
                        WorkStatus.FLUSHED);
    }

    /** A failure in a burst, the rest of which has no completion of its own. */
    @Test
    void aFailureWithinABurstHasItsPlace() {
        connect("mlx5", OPTIONS);
        StubDevice.call("stub_hold_sends", 1);
        send(20, 0);
        int number = StubDevice.lastNumber();
        for (int i = 0; i < 10; i++) {
            StubDevice.call("stub_complete", number, 0, 0);
        }
        StubDevice.call("stub_complete", number, CompletionStatus.REM_ACCESS_ERR.value(), 0);
        assertThat(client.awaitDisconnected()).isInstanceOf(WorkCompletionException.class);
        List<Completion> all = client.awaitSends(20);
        assertThat(all.subList(0, 10)).extracting(Completion::status).containsOnly(WorkStatus.SUCCESS);
        assertThat(all.get(10).status()).isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR);
        assertThat(all.subList(11, 20)).extracting(Completion::status).containsOnly(WorkStatus.FLUSHED);
    }

    // ---- what waits for an empty queue

    /** Where a window is bound only on an empty send queue, nothing else would empty it. */
    @ParameterizedTest
    @ValueSource(strings = {"mlx5", "ionic"})
    void aBindingDoesNotWaitForTraffic(String family) {
        connect(family, OPTIONS);
        send(1, 0);
        client.awaitSend();
        send(5, QUIET);
        int binds = StubDevice.call("stub_binds");
        regions.add(client.call(endpoint ->
                endpoint.connectionMemory().register(Arena.global().allocate(64), Set.of(Access.REMOTE_READ))));
        Patience.until("the window is bound", () -> StubDevice.call("stub_binds") > binds);
        Patience.until("work goes on", () -> client.call(Endpoint::freeSendSlots) > 0);
        boolean hasWindows = client.call(endpoint -> endpoint.connectionMemory() != endpoint.memoryDomain());
        assertThat(hasWindows).isTrue();
    }
}
