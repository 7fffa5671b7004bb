package org.verbena.verbs.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.InputStream;
import java.lang.foreign.GroupLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * What rdma-core 56.1 (Debian 13) lays out differently from what is bound here, as a golden file that its headers made. Each difference is
 * one that the code copes with.
 */
class LaterLayoutTest {
    private static final String GOLDEN = "layout-rdma-core-56.1.txt";

    /** What differs, and how it is coped with. */
    private static final Map<String, String> KNOWN = Map.of(
            "sizeof(ibv_port_attr)",
            "52 -> 56: active_speed_ex was appended. ibv_query_port is passed the size bound here, and fills no more.",
            "sizeof(ibv_qp_ex)",
            "352 -> 360: wr_flush was appended. C makes the struct, and what is bound here is read at its place; wr_flush is read only of"
                    + " queue pairs that were created with SendOperation.FLUSH, which older libraries refuse.");

    @Test
    void differencesAreThoseThatTheCodeHandles() throws Exception {
        Map<String, Long> later = new LinkedHashMap<>();
        try (InputStream golden = LaterLayoutTest.class.getResourceAsStream(GOLDEN)) {
            new String(golden.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .filter(line -> !line.startsWith("#"))
                    .forEach(line -> later.put(
                            line.substring(0, line.indexOf(' ')),
                            Long.parseLong(line.substring(line.indexOf(' ') + 1))));
        }
        Map<String, Long> bound = new LinkedHashMap<>();
        for (GroupLayout layout : Structs.ALL) {
            LayoutTest.describe(layout, bound, new LinkedHashMap<>());
        }
        Map<String, String> differences = new TreeMap<>();
        bound.forEach((name, value) -> {
            if (!value.equals(later.get(name))) {
                differences.put(name, value + " -> " + later.get(name));
            }
        });
        assertThat(differences.keySet()).isEqualTo(KNOWN.keySet());
        differences.forEach((name, change) -> assertThat(KNOWN.get(name)).startsWith(change + ":"));
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
            Map<String, String> expressions = new LinkedHashMap<>();
            for (GroupLayout layout : Structs.ALL) {
                LayoutTest.describe(layout, new LinkedHashMap<>(), expressions);
            }
            expressions.put("offsetof(ibv_qp_ex,wr_flush)", "offsetof(struct ibv_qp_ex, wr_flush)");
            List<String> lines = new ArrayList<>();
            lines.add("# Sizes and offsets on x86-64 by the headers of rdma-core 56.1, made by LaterLayoutTest.Maker.");
            CProbe.evaluate(List.of("infiniband/verbs.h"), expressions, "-I" + arguments[0])
                    .forEach((name, value) -> lines.add(name + " " + value));
            Files.write(Path.of(arguments[1]), lines);
        }
    }
}
