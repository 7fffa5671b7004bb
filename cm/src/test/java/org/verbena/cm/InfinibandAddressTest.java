package org.verbena.cm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.verbena.verbs.address.Gid;

class InfinibandAddressTest {
    @Test
    void keepsItsPartsThroughC() {
        Gid gid = Gid.of(new byte[] {(byte) 0xfe, (byte) 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8});
        InfinibandAddress address = new InfinibandAddress(gid, 0x8001, 0x1122334455667788L, 0xffff0000L);
        try (Arena arena = Arena.ofConfined()) {
            InfinibandAddress read = Objects.requireNonNull(InfinibandAddress.read(address.write(arena)));
            assertThat(read).isEqualTo(address).hasSameHashCodeAs(address);
            assertThat(read.gid()).isEqualTo(gid);
            assertThat(read.partitionKey()).isEqualTo(0x8001);
            assertThat(read.serviceId()).isEqualTo(0x1122334455667788L);
            assertThat(read.serviceIdMask()).isEqualTo(0xffff0000L);
        }
    }
}
