package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.cm.Cm;
import org.verbena.cm.CmEventType;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.verbs.Context;

/**
 * A loop ends while connections of it are being made, on devices in memory: each reports its end once and releases
 * everything.
 */
@Timeout(240)
@Families.Suite
class LoopEndTest {
    @Parameter
    String family;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
    }

    private final VerbsProvider provider = new VerbsProvider();
    private final CompletableFuture<Void> goOn = new CompletableFuture<>();
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;

    @BeforeEach
    void startLoop() throws Exception {
        StubDevice.install();
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
        // The first connection creates what all share.
        for (InetSocketAddress address : new InetSocketAddress[] {StubDevice.ROCE, StubDevice.IWARP}) {
            RecordingEndpointHandler first = connect(address);
            first.awaitConnected();
            first.awaitPrepared().disconnect();
            assertThat(first.awaitDisconnected()).isNull();
        }
        Patience.until("the first are gone", () -> !StubDevice.leaks().contains("stub_qp"));
    }

    @AfterEach
    void closeProvider() {
        goOn.complete(null);
        StubDevice.call("stub_unblock");
        group.shutdownGracefully(0, 5, TimeUnit.SECONDS);
        provider.close();
    }

    private RecordingEndpointHandler connect(InetSocketAddress address) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler("client of " + address, loop);
        EndpointOptions options = EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = 60_000;
            o.sendDepth = 16;
            o.receiveDepth = 4;
        });
        provider.connect(loop, address, options, handler);
        return handler;
    }

    private void endLoop() {
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
    }

    /** The common one, and that of the device. */
    private void holdConnectionLoops() {
        hold(provider.connectionLoop());
        for (Context each : Cm.devices()) {
            if (each.device().name().equals("stub0")) {
                hold(provider.connectionLoopOf(each));
            }
        }
    }

    private void hold(ConnectionLoop connectionLoop) {
        CompletableFuture<Void> held = new CompletableFuture<>();
        connectionLoop.loop().execute(() -> {
            held.complete(null);
            Patience.await("go on", goOn);
        });
        Patience.await("it is held", held);
    }

    private static void assertTold(RecordingEndpointHandler handler) {
        assertThat(handler.isDisconnected()).as("told when the loop has ended").isTrue();
        assertThat(handler.awaitDisconnected())
                .isInstanceOf(ConnectionException.class)
                .hasMessageContaining("was closed by this side");
        handler.assertNoViolations();
    }

    private static void awaitNothingLeft(String... kinds) {
        for (String kind : kinds) {
            Patience.until("no " + kind, () -> !StubDevice.leaks().contains(kind));
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"ADDR_RESOLVED", "ROUTE_RESOLVED", "ESTABLISHED"})
    void aConnectEndsWhateverItWaitsFor(CmEventType missing) {
        if (missing == CmEventType.ESTABLISHED) {
            Families.assumeNotIwarp(); // the kernel ends such a connect after ten seconds, and says so
        }
        StubDevice.call("stub_hold_events", missing.value());
        RecordingEndpointHandler handler = connect(StubDevice.ROCE);
        for (int i = 0; i < 50; i++) {
            provider.awaitConnectionLoops();
            Patience.await("a turn of the loop", loop.submit(() -> {}));
        }
        endLoop();
        assertTold(handler);
        awaitNothingLeft("stub_qp", "stub_cq", "stub_channel");
    }

    @Test
    void aConnectThroughTheKernelEndsAtOnceAndItsQueuesWhenTheKernelGivesUp() {
        RecordingEndpointHandler handler = connect(StubDevice.SILENT);
        Patience.until("the call blocks", () -> StubDevice.call("stub_blocked") == 1);
        endLoop();
        assertTold(handler);
        assertThat(StubDevice.leaks()).contains("stub_qp").contains("stub_cq");
        StubDevice.call("stub_unblock");
        awaitNothingLeft("stub_qp", "stub_cq", "stub_channel");
    }

    @Test
    void connectsAndListenersEndThoughTheConnectionLoopsAreHeldUp() {
        Families.assumeNotIwarp(); // as above
        RecordingListenerHandler listener = new RecordingListenerHandler(loop);
        provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, listener);
        listener.awaitListening();
        StubDevice.call("stub_hold_events", CmEventType.ESTABLISHED.value());
        RecordingEndpointHandler connecting = connect(StubDevice.ROCE);
        Patience.until("its queue pair is there", () -> StubDevice.leaks().contains("stub_qp"));
        holdConnectionLoops();
        RecordingEndpointHandler waiting = connect(StubDevice.ROCE);
        endLoop();
        assertTold(connecting);
        assertTold(waiting);
        assertThat(listener.awaitClosed()).isNull();
        listener.assertNoViolations();
        goOn.complete(null);
        awaitNothingLeft("stub_qp", "stub_cq", "stub_channel");
    }
}
