package org.verbena.verbs.packet.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.InputStream;
import java.lang.foreign.GroupLayout;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.ffm.Layouts;

/** Every struct of raw packets is laid out as the installed headers and those of rdma-core 56.1 have it. */
class PacketLayoutTest {
    @Test
    @Timeout(240)
    void layoutsAreThoseOfTheInstalledHeaders() throws Exception {
        Layouts.compareWithInstalled(PacketStructs.ALL);
    }

    @Test
    void laterHeadersHaveTheSame() throws Exception {
        Map<String, Long> bound = new LinkedHashMap<>();
        for (GroupLayout layout : PacketStructs.ALL) {
            Layouts.describe(layout, bound, new LinkedHashMap<>());
        }
        try (InputStream golden = PacketLayoutTest.class.getResourceAsStream("layout-rdma-core-56.1.txt")) {
            assertThat(Layouts.golden(golden)).isEqualTo(bound);
        }
    }

    /** Makes the golden file again. */
    static final class Maker {
        /**
         * Asks the compiler.
         *
         * @param arguments the folder that has infiniband/verbs.h, and the file to write
         */
        public static void main(String[] arguments) throws Exception {
            Layouts.writeGolden(
                    PacketStructs.ALL, Map.of(), arguments[0], Path.of(arguments[1]), "PacketLayoutTest.Maker");
        }
    }
}
