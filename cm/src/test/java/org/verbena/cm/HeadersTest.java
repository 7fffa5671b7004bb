package org.verbena.cm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.cm.ffm.RdmaAddrinfo;
import org.verbena.cm.ffm.RdmaCmConstants;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.cm.ffm.Structs;
import org.verbena.verbs.ffm.CStruct;

/** Asks a C compiler about every struct, member and constant that is bound, and compares. */
@Timeout(240)
class HeadersTest {
    private static final Path HEADER = Path.of("/usr/include/rdma/rdma_cma.h");

    @TempDir
    static Path folder;

    private static final Map<String, Long> EXPECTED = new LinkedHashMap<>();
    private static Map<String, Long> compiled = Map.of();

    @BeforeAll
    static void compileProbe() throws Exception {
        Assumptions.assumeTrue(
                Files.exists(HEADER), HEADER + " is missing: apt-get install librdmacm-dev, and gcc, to run this test");
        for (GroupLayout struct : Structs.ALL) {
            expectStruct(struct);
        }
        for (CmEventType type : CmEventType.values()) {
            if (type != CmEventType.UNKNOWN) {
                EXPECTED.put("RDMA_CM_EVENT_" + type, (long) type.value());
            }
        }
        for (PortSpace space : PortSpace.values()) {
            EXPECTED.put("RDMA_PS_" + space, (long) space.value());
        }
        expectConstants(RdmaCmConstants.class, "RDMA_");
        expectConstants(RdmaAddrinfo.class, "RAI_");
        expectConstants(Sockaddr.class, "AF_");
        EXPECTED.put("sizeof(struct sockaddr_storage)", Sockaddr.STORAGE_BYTES);
        EXPECTED.put("RDMA_UDP_QKEY", (long) DatagramParameters.UDP_QUEUE_KEY);
        EXPECTED.put("RDMA_MAX_RESP_RES", (long) ConnectionParameters.DEVICE_MAXIMUM);
        compiled = run(EXPECTED.keySet());
    }

    private static void expectStruct(GroupLayout struct) {
        String tag = "struct " + struct.name().orElseThrow();
        EXPECTED.put("sizeof(" + tag + ")", struct.byteSize());
        expectMembers(tag, struct, struct);
    }

    private static void expectMembers(String tag, GroupLayout struct, GroupLayout group) {
        for (MemoryLayout member : group.memberLayouts()) {
            if (member.name().isPresent()) {
                String name = member.name().get();
                EXPECTED.put("offsetof(" + tag + ", " + name + ")", CStruct.offset(struct, name));
            }
        }
    }

    private static void expectConstants(Class<?> owner, String... prefixes) throws IllegalAccessException {
        for (Field field : owner.getDeclaredFields()) {
            boolean constant = Modifier.isPublic(field.getModifiers())
                    && (field.getType() == int.class || field.getType() == short.class);
            for (String prefix : prefixes) {
                if (constant && field.getName().startsWith(prefix)) {
                    EXPECTED.put(field.getName(), ((Number) field.get(null)).longValue());
                }
            }
        }
    }

    private static Map<String, Long> run(Iterable<String> expressions) throws Exception {
        StringBuilder source = new StringBuilder("""
                #define _GNU_SOURCE
                #include <stddef.h>
                #include <stdio.h>
                #include <sys/socket.h>
                #include <netinet/in.h>
                #include <infiniband/ib.h>
                #include <rdma/rdma_cma.h>
                #include <rdma/rdma_verbs.h>
                int main(void) {
                """);
        for (String expression : expressions) {
            source.append("    printf(\"%s=%lld\\n\", \"")
                    .append(expression)
                    .append("\", (long long)(")
                    .append(expression)
                    .append("));\n");
        }
        source.append("    return 0;\n}\n");
        Path c = Files.writeString(folder.resolve("probe.c"), source);
        Path program = folder.resolve("probe");
        execute("gcc", "-o", program.toString(), c.toString());
        Map<String, Long> values = new LinkedHashMap<>();
        for (String line : execute(program.toString()).split("\n")) {
            int equals = line.lastIndexOf('=');
            values.put(line.substring(0, equals), Long.parseLong(line.substring(equals + 1)));
        }
        return values;
    }

    private static String execute(String... command) throws Exception {
        Path output = folder.resolve("output");
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        String text = Files.readString(output);
        assertThat(process.exitValue()).as(text).isZero();
        return text;
    }

    @Test
    void everythingBoundIsAsInTheHeaders() {
        assertThat(EXPECTED).hasSizeGreaterThan(120);
        assertThat(compiled).isEqualTo(EXPECTED);
    }
}
