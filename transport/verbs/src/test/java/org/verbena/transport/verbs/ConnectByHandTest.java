package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.QueuePairRoute;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.device.AsyncEventType;

/** Queue pairs that are connected by hand, on devices in memory: each step may fail, and gives everything back. */
@Timeout(240)
@Families.Suite
@Families.NotIwarp
class ConnectByHandTest {
    @Parameter
    String family;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
    }

    private static final QueuePairRoute ROCE = QueuePairRoute.ofDevice("stub0");

    private static final QueuePairEnd PEER =
            new QueuePairEnd(5, 6, 0, 0, 0x0000_ffff_0a00_0002L, 4096, 1, new byte[] {7});

    /** The exchange of a test, which answers when the test says. */
    private static final class Exchange implements QueuePairExchange {
        final CompletableFuture<QueuePairEnd> told = new CompletableFuture<>();
        final CompletableFuture<QueuePairEnd> its = new CompletableFuture<>();
        final CompletableFuture<Void> ready = new CompletableFuture<>();
        final CompletableFuture<Void> readyAsked = new CompletableFuture<>();
        final AtomicInteger givenUp = new AtomicInteger();

        @Override
        public CompletionStage<QueuePairEnd> exchange(QueuePairEnd own, MemoryDomain memory) {
            told.complete(own);
            return its;
        }

        @Override
        public CompletionStage<Void> ready() {
            readyAsked.complete(null);
            return ready;
        }

        @Override
        public void giveUp() {
            givenUp.incrementAndGet();
        }
    }

    private final VerbsProvider provider = new VerbsProvider();
    private final Exchange exchange = new Exchange();
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;
    private RecordingEndpointHandler handler;

    @BeforeEach
    void startLoop() throws Exception {
        StubDevice.install();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
        handler = new RecordingEndpointHandler("by hand", loop);
    }

    @AfterEach
    void nothingIsLeft() {
        handler.assertNoViolations();
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
        assertThat(StubDevice.leaks()).doesNotContain("stub_qp", "stub_cq");
    }

    private void begin(QueuePairRoute route, int timeoutMillis) {
        provider.connectByHand(loop, route, exchange, StubDevice.options(false, timeoutMillis), handler);
    }

    private @Nullable Throwable ended() {
        return handler.awaitDisconnected();
    }

    @Test
    void connectsWhenThePeerIsReady() {
        begin(ROCE, 20_000);
        QueuePairEnd own = Patience.await("this end is told", exchange.told);
        assertThat(own.queuePairNumber()).isEqualTo(StubDevice.lastNumber());
        assertThat(own.gidInterface()).isEqualTo(0x0000_ffff_0a00_0001L);
        assertThat(own.mtuBytes()).isEqualTo(1024);
        exchange.its.complete(PEER);
        Patience.await("the queue pair is connected", exchange.readyAsked);
        assertThat(handler.isConnected()).isFalse();
        exchange.ready.complete(null);
        assertThat(handler.awaitConnected()).containsExactly(7);
        handler.run(endpoint -> {
            assertThat(endpoint.capabilities().reportsPeerEnd()).isFalse();
            assertThat(endpoint.capabilities().readDepth()).isEqualTo(1);
            assertThat(endpoint.remoteAddress().getAddress().getHostAddress()).isEqualTo("10.0.0.2");
            assertThat(endpoint.localAddress().getAddress().getHostAddress()).isEqualTo("10.0.0.1");
        });
        assertThat(StubDevice.call("stub_min_rnr_timer")).isEqualTo(12);
        handler.run(Endpoint::disconnect);
        assertThat(ended()).isNull();
        assertThat(exchange.givenUp).hasValue(0);
        assertThat(StubDevice.allCalls()).doesNotContain("rdma_connect");
    }

    /** Programs such as ibv_rc_pingpong let nobody write, and a write of no bytes would end the connection. */
    @Test
    void postsNothingButWhatTheProgramSends() {
        begin(ROCE, 20_000);
        exchange.its.complete(PEER);
        exchange.ready.complete(null);
        handler.awaitConnected();
        RegisteredMemory region = handler.call(
                endpoint -> endpoint.memoryDomain().register(Arena.global().allocate(64), Set.of(Access.LOCAL_WRITE)));
        StubDevice.call("stub_reset");
        handler.run(endpoint -> {
            for (int i = 0; i < 12; i++) {
                WorkRequest work = new WorkRequest(1).asSend(i, i % 2 == 0 ? WorkRequest.UNSIGNALLED : 0);
                assertThat(handler.post(endpoint, work)).isTrue();
                endpoint.flush();
            }
        });
        handler.awaitSends(12);
        handler.run(Endpoint::disconnect);
        assertThat(ended()).isNull();
        assertThat(StubDevice.call("stub_send_posts")).isEqualTo(12);
        assertThat(StubDevice.call("stub_send_completions")).isEqualTo(12);
        region.close();
    }

    @Test
    void usesPartitionServiceLevelAndTimeoutOfTheProgram() {
        EndpointOptions options = StubDevice.options(false, 20_000).with(o -> o.ackTimeoutMicros = 5000);
        provider.connectByHand(
                loop, ROCE.withPkeyIndex(3).withServiceLevel(5).withMtuBytes(1024), exchange, options, handler);
        exchange.its.complete(PEER);
        exchange.ready.complete(null);
        handler.awaitConnected();
        assertThat(StubDevice.call("stub_pkey_index")).isEqualTo(3);
        assertThat(StubDevice.call("stub_service_level")).isEqualTo(5);
        assertThat(StubDevice.call("stub_ack_timeout")).isEqualTo(11);
        handler.run(Endpoint::disconnect);
        assertThat(ended()).isNull();
    }

    /** Routes of InfiniBand go by LID, so a device without an IPoIB interface will do. */
    @Test
    void infinibandNeedsNoAddress() {
        StubDevice.become("hfi1");
        begin(ROCE, 20_000);
        assertThat(Patience.await("this end is told", exchange.told).lid()).isEqualTo(7);
        exchange.its.complete(new QueuePairEnd(5, 6, 9, 0, 0, 4096, 1, new byte[0]));
        exchange.ready.complete(null);
        handler.awaitConnected();
        handler.run(Endpoint::disconnect);
        assertThat(ended()).isNull();
    }

    @Test
    void anExchangeThatFailsEndsTheAttempt() {
        begin(ROCE, 20_000);
        exchange.its.completeExceptionally(new IllegalStateException("the pigeon is lost"));
        assertThat(ended()).isInstanceOf(ConnectionException.class).hasMessageContaining("the pigeon is lost");
        assertThat(exchange.givenUp).hasValue(1);
    }

    @Test
    void anExchangeWithoutEndTimesOut() {
        int attempts = 0;
        Throwable cause;
        do { // a busy machine may not come that far in so short a time
            handler = new RecordingEndpointHandler("by hand", loop);
            begin(ROCE, 300 << attempts++);
            cause = ended();
            handler.assertNoViolations();
        } while (!exchange.told.isDone() && attempts < 8);
        assertThat(cause)
                .isInstanceOf(ConnectionException.TimedOut.class)
                .hasMessageContaining("the peer's end is exchanged");
        assertThat(exchange.givenUp).hasValue(attempts);
        exchange.its.complete(PEER); // too late, and of no effect
    }

    @Test
    void disconnectingGivesUp() {
        begin(ROCE, 20_000);
        Patience.await("this end is told", exchange.told);
        handler.run(Endpoint::disconnect);
        assertThat(ended()).isInstanceOf(ConnectionException.class).hasMessageContaining("closed by this side");
        assertThat(exchange.givenUp).hasValue(1);
    }

    @Test
    void aPeerWithoutGidIsRefusedOnEthernet() {
        begin(ROCE, 20_000);
        exchange.its.complete(new QueuePairEnd(5, 6, 9, 0, 0, 1024, 1, new byte[0]));
        assertThat(ended()).isInstanceOf(ConnectionException.class).hasMessageContaining("the peer gave no GID");
    }

    @Test
    void aDeviceThatFailsMeanwhileEndsTheAttempt() {
        begin(ROCE, 20_000);
        Patience.await("this end is told", exchange.told);
        StubDevice.call("stub_async_qp", StubDevice.lastNumber(), AsyncEventType.QP_FATAL.value());
        assertThat(ended()).isInstanceOf(ConnectionException.Lost.class);
        assertThat(exchange.givenUp).hasValue(1);
    }

    @Test
    void eachRefusedStepGivesEverythingBack() {
        int modifies = 3; // INIT, RTR, RTS
        exchange.its.complete(PEER);
        for (int skip = 0; skip < modifies; skip++) {
            StubDevice.failOnce("ibv_modify_qp", 22, skip);
            handler = new RecordingEndpointHandler("by hand", loop);
            begin(ROCE, 20_000);
            assertThat(ended()).as("after %d", skip).isInstanceOf(ConnectionException.class);
            handler.assertNoViolations();
        }
        StubDevice.failOnce("ibv_create_qp", 12, 0);
        handler = new RecordingEndpointHandler("by hand", loop);
        begin(ROCE, 20_000);
        assertThat(ended()).isInstanceOf(ConnectionException.class);
        assertThat(exchange.givenUp).hasValue(modifies + 1);
    }

    @Test
    void iwarpIsRefused() {
        begin(QueuePairRoute.ofDevice("stub1"), 20_000);
        assertThat(ended()).isInstanceOf(ConnectionException.class).hasMessageContaining("stub1 is iWARP");
        assertThat(exchange.told).isNotDone();
        assertThat(exchange.givenUp).hasValue(1);
    }
}
