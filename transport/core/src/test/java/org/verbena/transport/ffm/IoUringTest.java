package org.verbena.transport.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.StructLayout;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The structures and numbers of io_uring are those that the C compiler finds in the kernel's header. */
@Timeout(240)
class IoUringTest {
    private static final String HEADER = "linux/io_uring.h";

    /** The first header with the newest of the names. */
    private static final String NEWEST = "IORING_SETUP_DEFER_TASKRUN";

    @TempDir
    Path folder;

    @Test
    void structuresAndNumbersAreThoseOfTheInstalledHeader() throws Exception {
        Path installed = Path.of("/usr/include", HEADER);
        assumeThat(installed).exists();
        assumeThat(Files.readString(installed)).contains(NEWEST);
        assumeThat(run("gcc", "--version")).isNotNull();
        Map<String, Long> bound = bound();
        StringBuilder source = new StringBuilder("#include <stddef.h>\n#include <stdio.h>\n#include <poll.h>\n"
                + "#include <netinet/in.h>\n#include <netinet/tcp.h>\n#include <sys/socket.h>\n#include <" + HEADER
                + ">\nint main(void) {\n");
        bound.keySet()
                .forEach(expression -> source.append("printf(\"%lld\\n\", (long long) (")
                        .append(expression)
                        .append("));\n"));
        Path file = Files.writeString(folder.resolve("probe.c"), source + "return 0; }\n");
        Path program = folder.resolve("probe");
        assertThat(run("gcc", "-o", program.toString(), file.toString())).isEmpty();
        List<Long> found = String.valueOf(run(program.toString()))
                .lines()
                .map(Long::valueOf)
                .toList();
        assertThat(found).hasSameSizeAs(bound.values());
        Map<String, Long> compiled = new LinkedHashMap<>();
        int i = 0;
        for (String expression : bound.keySet()) {
            compiled.put(expression, found.get(i++));
        }
        assertThat(compiled).isEqualTo(bound);
    }

    /** By C's expressions. */
    private static Map<String, Long> bound() throws IllegalAccessException {
        Map<String, Long> bound = new LinkedHashMap<>();
        for (StructLayout struct : IoUring.STRUCTS) {
            String tag = "struct " + struct.name().orElseThrow();
            bound.put("sizeof(" + tag + ")", struct.byteSize());
            for (MemoryLayout member : struct.memberLayouts()) {
                if (!(member instanceof PaddingLayout)) {
                    String name = member.name().orElseThrow();
                    bound.put("offsetof(" + tag + ", " + name + ")", IoUring.offset(struct, name));
                    bound.put("sizeof(((" + tag + " *) 0)->" + name + ")", member.byteSize());
                }
            }
        }
        for (Field field : IoUring.class.getFields()) {
            if (Modifier.isStatic(field.getModifiers()) && field.getType().isPrimitive()) {
                bound.put(field.getName(), ((Number) field.get(null)).longValue());
            }
        }
        assertThat(bound).hasSizeGreaterThan(80);
        return bound;
    }

    /** What a program prints; null where there is none. */
    private static @Nullable String run(String... command) throws InterruptedException {
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            process.waitFor();
            return output;
        } catch (IOException missing) {
            return null;
        }
    }
}
