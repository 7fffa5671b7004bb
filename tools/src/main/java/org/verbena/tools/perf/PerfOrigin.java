package org.verbena.tools.perf;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.stream.Stream;

/**
 * The origin of figures, without which a picture has no meaning.
 *
 * @param provider what carried them
 * @param machine of this end: its name and processors
 * @param date when they were measured
 * @param version of Verbena and of Java
 */
record PerfOrigin(String provider, String machine, String date, String version) {
    private static final Path HOST_NAME = Path.of("/proc/sys/kernel/hostname");
    private static final Path PROCESSORS = Path.of("/proc/cpuinfo");

    /** The origin of figures that are measured now. */
    static PerfOrigin now(String provider) {
        String version = PerfOrigin.class.getPackage().getImplementationVersion();
        return new PerfOrigin(
                provider,
                firstLine(HOST_NAME, "") + ", " + Runtime.getRuntime().availableProcessors() + " x "
                        + firstLine(PROCESSORS, "model name").replaceFirst("^model name\\s*:\\s*", ""),
                LocalDate.now(ZoneId.systemDefault()).toString(),
                "Verbena " + (version == null ? "(not packaged)" : version) + ", Java "
                        + Runtime.version().feature());
    }

    private static String firstLine(Path file, String beginning) {
        try (Stream<String> lines = Files.lines(file)) {
            return lines.filter(line -> line.startsWith(beginning)).findFirst().orElse("unknown");
        } catch (IOException notLinux) {
            return "unknown";
        }
    }

    /** One line for people. */
    String text() {
        return provider + " on " + machine + ", " + date + ", " + version;
    }
}
