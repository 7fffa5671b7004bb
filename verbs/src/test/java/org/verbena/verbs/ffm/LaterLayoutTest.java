package org.verbena.verbs.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.InputStream;
import java.lang.foreign.GroupLayout;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * What rdma-core 56.1 (Debian 13) lays out differently from what is bound here, as a golden file that its headers made.
 * Each difference is one that the code copes with.
 */
class LaterLayoutTest {
    private static final String GOLDEN = "layout-rdma-core-56.1.txt";

    /** What differs, and how it is coped with. */
    private static final Map<String, String> KNOWN = Map.of(
            "sizeof(ibv_port_attr)",
            "52 -> 56: active_speed_ex was appended. ibv_query_port is passed the later size, of which earlier"
                    + " libraries leave zero what they do not know.",
            "sizeof(ibv_qp_ex)",
            "352 -> 360: wr_flush was appended. C makes the struct, and what is bound here is read at its place; wr_flush is read only of"
                    + " queue pairs that were created with SendOperation.FLUSH, which older libraries refuse.");

    @Test
    void differencesAreThoseThatTheCodeHandles() throws Exception {
        Map<String, Long> later;
        try (InputStream golden = LaterLayoutTest.class.getResourceAsStream(GOLDEN)) {
            later = Layouts.golden(golden);
        }
        Map<String, Long> bound = new LinkedHashMap<>();
        for (GroupLayout layout : Structs.ALL) {
            Layouts.describe(layout, bound, new LinkedHashMap<>());
        }
        Map<String, String> differences = new TreeMap<>();
        bound.forEach((name, value) -> {
            if (!value.equals(later.get(name))) {
                differences.put(name, value + " -> " + later.get(name));
            }
        });
        assertThat(differences.keySet()).isEqualTo(KNOWN.keySet());
        differences.forEach((name, change) -> assertThat(KNOWN.get(name)).startsWith(change + ":"));
        assertThat(later).containsEntry("sizeof(ibv_port_attr)", IbvPortAttr.EXTENDED_SIZE);
        // Where the builder looks for what came later.
        assertThat(later).containsEntry("offsetof(ibv_qp_ex,wr_flush)", IbvQpEx.SIZE);
        assertThat(later.keySet()).containsAll(bound.keySet());
        System.out.println(
                bound.size() + " sizes and offsets compared with rdma-core 56.1, of which differ " + differences);
    }

    /** Makes the golden file anew. */
    static final class Maker {
        /**
         * Asks the compiler.
         *
         * @param arguments the folder that has infiniband/verbs.h, and the file to write
         */
        public static void main(String[] arguments) throws Exception {
            Layouts.writeGolden(
                    Structs.ALL,
                    Map.of("offsetof(ibv_qp_ex,wr_flush)", "offsetof(struct ibv_qp_ex, wr_flush)"),
                    arguments[0],
                    Path.of(arguments[1]),
                    "LaterLayoutTest.Maker");
        }
    }
}
