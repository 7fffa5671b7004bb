package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.verbs.device.DriverFamily;
import org.verbena.verbs.device.NodeType;
import org.verbena.verbs.device.TransportType;

/** What the kernel says of a device besides libibverbs, and the family that follows. */
class DeviceDriverTest {
    @TempDir
    private Path sysfs;

    private Device device() {
        return new Device("mlx5_0", "uverbs0", 0, 1, NodeType.CA, TransportType.IB, sysfs.toString());
    }

    @Test
    void readsDriverAndNumaNode() throws Exception {
        Path driver = Files.createDirectories(sysfs.resolve("drivers").resolve("mlx5_core"));
        Path parent = Files.createDirectories(sysfs.resolve("device"));
        Files.createSymbolicLink(parent.resolve("driver"), driver);
        Files.writeString(parent.resolve("numa_node"), "1\n");
        assertThat(device().driverName()).isEqualTo("mlx5_core");
        assertThat(device().numaNode()).isOne();
    }

    @Test
    void hasNeitherWithoutHardware() throws Exception {
        assertThat(device().driverName()).isNull();
        assertThat(device().numaNode()).isEqualTo(-1);
        Files.writeString(Files.createDirectories(sysfs.resolve("device")).resolve("numa_node"), "-1\n");
        assertThat(device().numaNode()).isEqualTo(-1);
    }

    @Test
    void theVendorTellsSoftwareDevicesApart() {
        // Soft RoCE of old kernels has the parent of its network interface.
        assertThat(DriverFamily.of("mlx5_core", 0xffffff)).isEqualTo(DriverFamily.SOFT_ROCE);
        assertThat(DriverFamily.of(null, 0x626d74)).isEqualTo(DriverFamily.SOFT_IWARP);
    }

    @Test
    void aDriverThatIsNotKnownIsTreatedWithCare() {
        for (String driver : new String[] {null, "new_driver"}) {
            DriverFamily family = DriverFamily.of(driver, 0x1234);
            assertThat(family).isEqualTo(DriverFamily.OTHER);
            assertThat(family.pollsInUserSpace()).isFalse();
            assertThat(family.hasInline()).isFalse();
        }
        assertThat(DriverFamily.EFA.describe())
                .isEqualTo("Amazon EFA: no reliable connections by rdma_cm: Verbena uses soft here");
        assertThat(DriverFamily.of("hns3", 0x19e5).pollsInUserSpace()).isFalse();
        assertThat(DriverFamily.of("mana", 0x1414).hasInline()).isFalse();
        assertThat(DriverFamily.of("ionic", 0x1dd8).hasInline()).isTrue();
        assertThat(DriverFamily.of("qede", 0x1077).hasInline()).isTrue();
        assertThat(DriverFamily.of("ice", 0x8086).pollsInUserSpace()).isTrue();
    }
}
