package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.transport.spi.Patience;

/** The lab itself: without these nothing else there means anything. */
@Tag("lab")
@Timeout(350)
class LabDevicesTest {

    @ParameterizedTest
    @EnumSource
    void deviceIsActive(LabDevice device) throws IOException {
        Path port = Path.of("/sys/class/infiniband", device.deviceName(), "ports/1");
        assertThat(Files.readString(port.resolve("state"))).contains("ACTIVE");
    }

    @ParameterizedTest
    @EnumSource
    void deviceIsOnItsInterface(LabDevice device) throws IOException {
        Path folder = Path.of("/sys/class/infiniband", device.deviceName());
        String interfaceName = device == LabDevice.RXE
                ? Files.readString(folder.resolve("ports/1/gid_attrs/ndevs/0"))
                : PeerProgram.run(Patience.LIMIT, "rdma", "link", "show", device.deviceName() + "/1");
        assertThat(interfaceName).contains(device.interfaceName());
    }

    @ParameterizedTest
    @CsvSource({"10.77.0.1", "fd77::1", "10.78.0.1"})
    void programsOfRdmaCoreTalk(String address) {
        try (PeerProgram server = PeerProgram.start("rping", "-s", "-a", address, "-p", "7301", "-C", "3")) {
            server.awaitListening(7301);
            String output =
                    PeerProgram.run(Patience.LIMIT, "rping", "-c", "-a", address, "-p", "7301", "-v", "-C", "3");
            assertThat(output).contains("ping data: rdma-ping-2:");
            assertThat(server.awaitExit(Patience.LIMIT)).isZero();
        }
    }
}
