package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.cm.AddressInfo;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.PortSpace;
import org.verbena.cm.sync.CmEndpoint;
import org.verbena.cm.sync.SynchronousId;
import org.verbena.verbs.queue.QueuePairType;

/** Ids whose calls wait, on a device that answers at once. */
@Timeout(240)
class SynchronousIdTest {
    @BeforeEach
    void installStub() throws Exception {
        StubDevice.install();
    }

    @AfterEach
    void nothingLeaks() {
        assertThat(StubDevice.leaks()).doesNotContain("rdma_cm", "stub_events", "stub_qp", "stub_cq", "stub_pd");
    }

    private static AddressInfo info(boolean passive, byte[] route) {
        return new AddressInfo(
                passive ? Set.of(AddressInfo.Flag.PASSIVE) : Set.of(),
                QueuePairType.RC,
                PortSpace.TCP,
                passive ? StubDevice.ROCE : null,
                passive ? null : StubDevice.ROCE,
                null,
                null,
                route,
                new byte[0]);
    }

    @Test
    void connectsAndEnds() {
        try (SynchronousId id = SynchronousId.of(info(false, new byte[0]))) {
            assertThat(Objects.requireNonNull(id.lastEvent()).type()).isEqualTo(CmEventType.ROUTE_RESOLVED);
            try (CmEndpoint endpoint = CmEndpoint.create(id.id(), 2, 2)) {
                assertThat(endpoint.id()).isSameAs(id.id());
                id.connect(ConnectionParameters.DEFAULT);
                assertThat(Objects.requireNonNull(id.lastEvent()).type()).isEqualTo(CmEventType.ESTABLISHED);
                id.disconnect();
                assertThat(Objects.requireNonNull(id.lastEvent()).type()).isEqualTo(CmEventType.DISCONNECTED);
                assertThatIllegalStateException().isThrownBy(id::close);
            }
        }
    }

    @Test
    void bindsAndHasNoRequestInTime() {
        try (SynchronousId listener = SynchronousId.of(info(true, new byte[0]))) {
            listener.id().listen(1);
            assertThat(listener.request(1)).isNull();
            assertThat(listener.lastEvent()).isNull();
        }
    }

    @Test
    void takesAndAcceptsARequest() {
        try (SynchronousId listener = SynchronousId.of(info(true, new byte[0]))) {
            listener.id().listen(1);
            StubDevice.call("stub_request", StubDevice.ROCE.getPort());
            try (SynchronousId request = Objects.requireNonNull(listener.request(10_000));
                    CmEndpoint endpoint = CmEndpoint.create(request.id(), 2, 2)) {
                assertThat(Objects.requireNonNull(request.lastEvent()).listener())
                        .isSameAs(listener.id());
                assertThat(request.id().channel()).isNotSameAs(listener.id().channel());
                request.accept(ConnectionParameters.DEFAULT);
                assertThat(endpoint.queuePair()).isSameAs(request.id().queuePair());
                assertThat(Objects.requireNonNull(request.lastEvent()).type()).isEqualTo(CmEventType.ESTABLISHED);
            }
        }
    }

    @Test
    void throwsWhatAnEventTells() {
        try (SynchronousId id = SynchronousId.create(PortSpace.TCP)) {
            assertThatExceptionOfType(CmException.class)
                    .isThrownBy(() -> id.resolveAddress(null, new InetSocketAddress("192.0.2.1", 1), 500))
                    .satisfies(refused -> {
                        assertThat(refused.errno()).isPositive();
                        assertThat(refused.eventType()).isNull();
                    });
            id.resolveAddress(null, StubDevice.ROCE, 500);
            StubDevice.call("stub_cm_device", 0, CmEventType.DEVICE_REMOVAL.value());
            assertThatExceptionOfType(CmException.class)
                    .isThrownBy(() -> id.resolveRoute(500))
                    .satisfies(gone -> assertThat(gone.eventType()).isEqualTo(CmEventType.DEVICE_REMOVAL));
            assertThat(Objects.requireNonNull(id.lastEvent()).type()).isEqualTo(CmEventType.DEVICE_REMOVAL);
        }
    }

    @Test
    void givesEverythingBackIfAnAddressIsOfNoUse() {
        AddressInfo nothing = new AddressInfo(
                Set.of(), QueuePairType.RC, PortSpace.TCP, null, null, null, null, new byte[0], new byte[0]);
        assertThatIllegalArgumentException().isThrownBy(() -> SynchronousId.of(nothing));
    }

    @Test
    void failsAfterItsEnd() {
        SynchronousId id = SynchronousId.create(PortSpace.TCP);
        id.close();
        id.close();
        assertThatIllegalStateException().isThrownBy(() -> id.resolveRoute(1));
        assertThatIllegalStateException().isThrownBy(() -> id.request(1));
    }
}
