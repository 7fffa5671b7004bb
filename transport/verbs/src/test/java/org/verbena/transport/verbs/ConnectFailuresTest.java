package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.RejectReason;
import org.verbena.transport.ConnectionException;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.ffm.Errno;

@Tag("no-stub")
class ConnectFailuresTest {
    private static final String WHAT = "connecting to 192.0.2.1:7471 failed while resolving the address";

    private static Throwable of(int errno) {
        CmException refused = new CmException("rdma_resolve_addr(...)", errno);
        Throwable failure = ConnectFailures.of(WHAT, refused);
        assertThat(failure)
                .hasMessageStartingWith(WHAT)
                .hasMessageContaining(Errno.name(errno))
                .hasCause(refused);
        return failure;
    }

    @ParameterizedTest
    @ValueSource(ints = {Errno.ENETUNREACH, Errno.EHOSTUNREACH, Errno.ENODEV, Errno.EADDRNOTAVAIL})
    void reportsUnreachableWithoutARoute(int errno) {
        assertThat(of(errno)).isExactlyInstanceOf(ConnectionException.Unreachable.class);
    }

    @Test
    void reportsRejectedAndTimedOutAsTheSystemDoes() {
        assertThat(of(Errno.ECONNREFUSED)).isExactlyInstanceOf(ConnectionException.Rejected.class);
        assertThat(of(Errno.ETIMEDOUT)).isExactlyInstanceOf(ConnectionException.TimedOut.class);
        assertThat(of(Errno.EINVAL)).isExactlyInstanceOf(ConnectionException.class);
    }

    @Test
    void keepsAFailureThatIsExplained() {
        ConnectionException known = new ConnectionException("sendDepth 65536 is over the limit");
        assertThat(ConnectFailures.of(WHAT, known)).isSameAs(known);
    }

    @Test
    void wrapsTheRest() {
        VerbsException refused = new VerbsException("ibv_create_cq(cqe=8)", Errno.ENOMEM, "");
        assertThat(ConnectFailures.of(WHAT, refused))
                .isExactlyInstanceOf(ConnectionException.class)
                .hasMessageStartingWith(WHAT)
                .hasCause(refused);
    }

    /** No id: none is asked for. */
    @SuppressWarnings("NullAway")
    private static Throwable of(CmEventType type, int status) {
        CmEvent event = new CmEvent(type, status, null, null, null, null, null, null);
        Throwable failure = ConnectFailures.of(WHAT, event);
        assertThat(failure)
                .isInstanceOf(ConnectionException.class)
                .hasMessageStartingWith(WHAT + ": ")
                .hasMessageContaining(type.name())
                .hasMessageContaining(event.describe())
                .hasCauseInstanceOf(CmException.class);
        return failure;
    }

    static Stream<CmEventType> eventTypes() {
        return Stream.of(CmEventType.values());
    }

    @ParameterizedTest
    @MethodSource("eventTypes")
    void everyEventIsAFailureWithAddressStepAndReason(CmEventType type) {
        for (int status :
                new int[] {0, 8, 28, -Errno.ETIMEDOUT, -Errno.ECONNREFUSED, -Errno.ENODEV, -Errno.EINVAL, 12345, -12345
                }) {
            assertThat(of(type, status)).as("status %d", status).isNotNull();
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"ADDR_ERROR", "ROUTE_ERROR", "UNREACHABLE", "DEVICE_REMOVAL"})
    void eventsWithoutARouteAreUnreachable(CmEventType type) {
        assertThat(of(type, -Errno.ENODEV)).isExactlyInstanceOf(ConnectionException.Unreachable.class);
    }

    @Test
    void eventsOfConnectingDistinguishRefusalFromSilence() {
        assertThat(of(CmEventType.REJECTED, RejectReason.TIMEOUT.value()))
                .isExactlyInstanceOf(ConnectionException.TimedOut.class);
        assertThat(of(CmEventType.REJECTED, 28)).isExactlyInstanceOf(ConnectionException.Rejected.class);
        assertThat(of(CmEventType.CONNECT_ERROR, -Errno.ECONNREFUSED))
                .isExactlyInstanceOf(ConnectionException.Rejected.class);
        assertThat(of(CmEventType.CONNECT_ERROR, -Errno.ETIMEDOUT))
                .isExactlyInstanceOf(ConnectionException.TimedOut.class);
        assertThat(of(CmEventType.CONNECT_ERROR, -Errno.EINVAL)).isExactlyInstanceOf(ConnectionException.class);
    }

    @Test
    void aRefusalNamesTheProviderThatTheServerMustUse() {
        assertThat(of(CmEventType.REJECTED, RejectReason.INVALID_SERVICE_ID.value()))
                .hasMessageContaining("nobody listens on that port")
                .hasMessageEndingWith("start it with provider verbs");
        assertThat(of(CmEventType.REJECTED, RejectReason.CONSUMER_DEFINED.value())
                        .getMessage())
                .doesNotContain("provider");
    }
}
