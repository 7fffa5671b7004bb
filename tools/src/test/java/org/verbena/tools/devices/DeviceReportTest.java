package org.verbena.tools.devices;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.verbs.address.Gid;

class DeviceReportTest {
    @ParameterizedTest
    @CsvSource({
        "fe80::386f:68ff:fe9e:4d46",
        "fd77::1",
        "::1",
        "::",
        "1::",
        "1:2:3:4:5:6:7:8",
        "1:0:3:4:5:6:7:8",
        "1::4:0:0:7:8",
        "1:0:0:4::8"
    })
    void shortensGidsAsCDoes(String text) throws Exception {
        assertThat(DeviceReport.shortText(Gid.of(InetAddress.getByName(text).getAddress())))
                .isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({"10.77.0.1", "192.0.2.255"})
    void writesMappedAddressesWithDots(String address) throws Exception {
        byte[] bytes = new byte[Gid.BYTES];
        bytes[10] = bytes[11] = (byte) 0xff;
        System.arraycopy(InetAddress.getByName(address).getAddress(), 0, bytes, 12, 4);
        assertThat(DeviceReport.shortText(Gid.of(bytes))).isEqualTo("::ffff:" + address);
    }
}
