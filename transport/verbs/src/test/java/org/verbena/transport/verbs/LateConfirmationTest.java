package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.verbena.cm.CmEventType;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.verbs.device.AsyncEventType;

/**
 * The accepting side where a peer's confirmation is late, on devices in memory. No device of the lab has such events.
 */
@Timeout(240)
@Families.Suite
class LateConfirmationTest {
    @Parameter
    String family;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
    }

    private final VerbsProvider provider = new VerbsProvider();
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;

    @BeforeEach
    void startLoop() {
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
    }

    @AfterEach
    void endLoop() {
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
    }

    /** On InfiniBand the peer's last handshake message may be lost, or come later than its first message. */
    @Test
    void aMessageConfirmsAConnectionWhoseConfirmationIsLost() {
        RecordingEndpointHandler server = new RecordingEndpointHandler("server", loop);
        RecordingListenerHandler listener = new RecordingListenerHandler(loop)
                .whenRequested(request -> request.accept(loop, StubDevice.options(false, 20_000), server));
        Listener listening = provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, listener);
        listener.awaitListening();
        StubDevice.call("stub_hold_events", CmEventType.ESTABLISHED.value());
        try {
            StubDevice.call("stub_request", StubDevice.ROCE.getPort());
            Patience.until("it is accepted", () -> calls("rdma_accept") > 0);
            int number = StubDevice.lastNumber();
            assertThat(calls("rdma_notify")).isZero();
            StubDevice.call("stub_async_qp", number, AsyncEventType.COMM_EST.value());
            server.awaitConnected();
            assertThat(calls("rdma_notify")).isOne();
            // One that comes when it is no longer needed.
            StubDevice.call("stub_async_qp", number, AsyncEventType.COMM_EST.value());
        } finally {
            StubDevice.call("stub_hold_events", 0);
        }
        listening.close();
        server.run(Endpoint::disconnect);
        server.awaitDisconnected();
        assertThat(calls("rdma_notify")).isOne();
        server.assertNoViolations();
        listener.assertNoViolations();
    }

    private static int calls(String function) {
        return Arrays.stream(StubDevice.allCalls().split(" (?=[a-z])"))
                .filter(entry -> entry.startsWith(function + " "))
                .mapToInt(entry -> Integer.parseInt(entry.substring(function.length() + 1)))
                .sum();
    }
}
