package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.ffm.Errno;

/** Ids that go to other event channels, and what fails meanwhile. */
@Timeout(240)
class MovedEventsTest {
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
}
