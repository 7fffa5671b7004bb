package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.verbs.ffm.Errno;

/** Ids that go to other event channels, and what fails meanwhile. */
@Timeout(240)
class MovedEventsTest {
    /** Those of an id before its route is known: to its device's loop, to a channel of its own, and back. */
    private static final int MOVES = 3;

    @BeforeEach
    void installStub() throws Exception {
        StubDevice.install();
    }

    @AfterEach
    void nothingLeaks() {
        StubDevice.call("stub_reset");
        assertThat(StubDevice.leaks()).isEmpty();
    }

    /** Nobody is woken for an event that comes to a connection loop with its id. */
    @Test
    void anEventThatCannotBeTakenIsTakenLater() {
        BlockingQueue<CmEventType> taken = new LinkedBlockingQueue<>();
        ConnectionLoop loop = new ConnectionLoop("connections", null);
        try (EventChannel own = EventChannel.open();
                CmId id = CmId.create(own, PortSpace.TCP)) {
            id.attach((CmEventSink) event -> taken.add(event.type()));
            id.resolveAddress(null, StubDevice.ROCE, 1000);
            StubDevice.fail("rdma_get_cm_event", Errno.EIO, 1);
            Patience.await("it has moved", loop.loop().submit(() -> loop.adopt(id)));
            assertThat(Patience.take("its event", taken)).isEqualTo(CmEventType.ADDR_RESOLVED);
        } finally {
            loop.close();
        }
    }

    @Test
    void theChannelOfAnIdThatDoesNotComeBackEndsWithIt() {
        VerbsProvider provider = new VerbsProvider();
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        IoEventLoop loop = group.next();
        StubDevice.failOnce("rdma_migrate_id", Errno.EIO, MOVES - 1);
        StubDevice.call("stub_hold_events", CmEventType.ESTABLISHED.value());
        RecordingEndpointHandler client = new RecordingEndpointHandler("client", loop);
        provider.connect(loop, StubDevice.ROCE, StubDevice.options(false, 60_000), client);
        Patience.until("it connects", () -> StubDevice.allCalls().contains("rdma_connect"));
        assertThat(StubDevice.call("stub_failed")).isOne();
        client.awaitPrepared().disconnect();
        client.awaitDisconnected();
        Patience.until("the id is closed", () -> !StubDevice.leaks().contains("rdma_cm_id"));
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
    }
}
