package org.verbena.cm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.File;
import java.lang.foreign.Arena;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.cm.ffm.CmLibrary;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.verbs.ffm.Errno;

/** What holds on any machine, with RDMA devices or without. */
@Timeout(240)
class CmTest {
    private static void assumeNoDevice() {
        String[] devices = new File("/sys/class/infiniband").list();
        Assumptions.assumeTrue(
                CmLibrary.LIBRARY.unavailabilityCause() == null && (devices == null || devices.length == 0),
                "there is an RDMA device here, or no librdmacm");
    }

    @Test
    void saysWhatToDoWithoutADevice() {
        assumeNoDevice();
        assertThat(Cm.unavailabilityCause())
                .isInstanceOf(CmException.class)
                .message()
                .contains("ENODEV", "rdma link add");
        assertThat(Cm.devices()).isEmpty();
        assertThatExceptionOfType(CmException.class)
                .isThrownBy(EventChannel::open)
                .satisfies(e -> assertThat(e.errno()).isEqualTo(Errno.ENODEV));
    }

    @ParameterizedTest
    @EnumSource
    void everyEventTypeHasAMeaning(CmEventType type) {
        assertThat(type.meaning()).isNotBlank();
        assertThat(CmEventType.of(type.value())).isEqualTo(type);
        for (int status : new int[] {0, 1, 8, 28, -1, -Errno.ETIMEDOUT, -Errno.ENODEV, -Errno.ECONNREFUSED}) {
            assertThat(CmStatus.describe(type, status)).isNotBlank().doesNotContain("null");
        }
    }

    @Test
    void treatsEventTypesOfNewerLibrariesAsUnknown() {
        assertThat(CmEventType.of(16)).isEqualTo(CmEventType.UNKNOWN);
        assertThat(CmEventType.of(-1)).isEqualTo(CmEventType.UNKNOWN);
    }

    @Test
    void decodesStatuses() {
        assertThat(CmStatus.describe(CmEventType.REJECTED, 8)).contains("INVALID_SERVICE_ID", "nobody listens");
        assertThat(CmStatus.describe(CmEventType.REJECTED, 28)).contains("CONSUMER_DEFINED");
        assertThat(CmStatus.describe(CmEventType.REJECTED, -111)).contains("ECONNREFUSED");
        assertThat(CmStatus.describe(CmEventType.ADDR_ERROR, -110)).contains("ETIMEDOUT");
        assertThat(CmStatus.describe(CmEventType.UNREACHABLE, -110)).contains("ETIMEDOUT", "4791");
    }

    @ParameterizedTest
    @ValueSource(strings = {"192.0.2.7", "0.0.0.0", "::", "2001:db8::7", "fe80::1"})
    void addressesSurviveTheRoundTrip(String host) throws Exception {
        InetSocketAddress address = new InetSocketAddress(InetAddress.getByName(host), 54321);
        try (Arena arena = Arena.ofConfined()) {
            assertThat(Sockaddr.read(Sockaddr.write(arena, address))).isEqualTo(address);
        }
    }

    @Test
    void keepsTheScopeOfLinkLocalAddresses() throws Exception {
        InetAddress scoped =
                Inet6Address.getByAddress(null, InetAddress.getByName("fe80::1").getAddress(), 7);
        try (Arena arena = Arena.ofConfined()) {
            InetSocketAddress read =
                    Objects.requireNonNull(Sockaddr.read(Sockaddr.write(arena, new InetSocketAddress(scoped, 1))));
            assertThat(((Inet6Address) read.getAddress()).getScopeId()).isEqualTo(7);
        }
    }

    @Test
    void refusesUnresolvedAddresses() {
        try (Arena arena = Arena.ofConfined()) {
            assertThatExceptionOfType(IllegalArgumentException.class)
                    .isThrownBy(() -> Sockaddr.write(arena, InetSocketAddress.createUnresolved("host", 1)))
                    .withMessageContaining("not resolved");
        }
    }

    @Test
    void namesTheNameServicesError() {
        Assumptions.assumeTrue(CmLibrary.LIBRARY.unavailabilityCause() == null, "librdmacm is missing");
        AddressInfo.Hints digits = new AddressInfo.Hints(
                Set.of(AddressInfo.Flag.NUMERIC_HOST), AddressInfo.Family.ANY, null, PortSpace.TCP, null);
        assertThatExceptionOfType(CmException.class)
                .isThrownBy(() -> Cm.addressInfo("not-digits", "7174", digits))
                .withMessageContaining("not-digits");
    }
}
