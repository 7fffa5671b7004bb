package org.verbena.verbs.ffm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/** Asks the C compiler about the installed headers: a generated program prints one {@code name value} a line. */
public final class CProbe {
    private static final String COMPILER = "gcc";

    private CProbe() {}

    /** Skips the test, saying why, where there is no compiler or no header. */
    public static void assumeHeaders(String header) throws Exception {
        boolean compiler = run(List.of(COMPILER, "--version")) != null;
        skipUnless(compiler, COMPILER + " is not installed");
        skipUnless(Files.exists(Path.of("/usr/include", header)), "/usr/include/" + header + " is not installed");
    }

    private static void skipUnless(boolean there, String reason) {
        if (!there) {
            System.out.println("Skipped: " + reason);
        }
        Assumptions.assumeTrue(there, reason);
    }

    /**
     * Evaluates C expressions.
     *
     * @param headers to include
     * @param expressions by the name they are printed with
     * @param options for the compiler
     * @return the values
     */
    public static Map<String, Long> evaluate(List<String> headers, Map<String, String> expressions, String... options)
            throws Exception {
        StringBuilder source = new StringBuilder("#define _GNU_SOURCE\n#include <stdio.h>\n#include <stddef.h>\n");
        headers.forEach(header -> source.append("#include <").append(header).append(">\n"));
        source.append("int main(void) {\n");
        expressions.forEach((name, expression) -> source.append("printf(\"")
                .append(name)
                .append(" %lld\\n\", (long long) (")
                .append(expression)
                .append("));\n"));
        source.append("return 0; }\n");
        Path directory = Files.createTempDirectory("probe");
        Path file = Files.writeString(directory.resolve("probe.c"), source);
        Path program = directory.resolve("probe");
        List<String> command = new ArrayList<>(
                List.of(COMPILER, "-Wno-deprecated-declarations", "-o", program.toString(), file.toString()));
        command.addAll(List.of(options));
        String errors = run(command);
        if (errors == null || !Files.exists(program)) {
            throw new IllegalStateException("the probe does not compile:\n" + errors);
        }
        String output = run(List.of(program.toString()));
        Map<String, Long> values = new LinkedHashMap<>();
        for (String line : String.valueOf(output).lines().toList()) {
            String[] words = line.split(" ");
            values.put(words[0], Long.parseLong(words[1]));
        }
        return values;
    }

    /** Compiles a shared library. */
    public static Path sharedLibrary(Path source, String... options) throws Exception {
        Path library = Files.createTempDirectory("stub")
                .resolve("lib" + source.getFileName().toString().replace(".c", ".so"));
        List<String> command = new ArrayList<>(
                List.of(COMPILER, "-shared", "-fPIC", "-O2", "-Wall", "-o", library.toString(), source.toString()));
        command.addAll(List.of(options));
        String errors = run(command);
        if (!Files.exists(library)) {
            throw new IllegalStateException(source + " does not compile:\n" + errors);
        }
        return library;
    }

    /** Runs a program, and gives what it wrote; null where there is no such program. */
    public static String run(List<String> command) throws InterruptedException {
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            String output =
                    new String(process.getInputStream().readAllBytes(), java.nio.charset.StandardCharsets.UTF_8);
            if (!process.waitFor(60, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new IllegalStateException(command + " does not end");
            }
            return output;
        } catch (IOException missing) {
            return null;
        }
    }
}
