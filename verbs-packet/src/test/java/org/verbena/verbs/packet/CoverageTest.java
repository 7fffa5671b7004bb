package org.verbena.verbs.packet;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.ffm.CProbe;

/** {@code docs/coverage.md} names every function of libibverbs, and Java methods that exist, here or in verbs. */
class CoverageTest {
    private static final Path TABLE = Path.of("../docs/coverage.md");
    private static final Path HEADER = Path.of("/usr/include/infiniband/verbs.h");
    private static final Pattern ROW = Pattern.compile("\\| `(\\w+)` \\| (.*?) \\|(?: (.*?) \\|)?.*");
    private static final Pattern INLINE = Pattern.compile("static inline\\s+[^;{}()]*?\\b(\\w+)\\s*\\(");
    private static final Path MANUAL = Path.of("/usr/share/man/man3");
    private static final Pattern SYNOPSIS = Pattern.compile("\\n\\.SH SYNOPSIS(.*?)\\n\\.SH", Pattern.DOTALL);
    private static final Pattern PROTOTYPE = Pattern.compile("\\b((?:ibv|rdma|mult_to_ibv|mbps_to_ibv)_\\w+)\\s*\\(");
    private static final Pattern EXPORT = Pattern.compile("\\S+ T (\\w+)@@?(\\S+)");

    private static Map<String, String> rows(Path table, String heading) throws Exception {
        Map<String, String> rows = new TreeMap<>();
        boolean inside = false;
        for (String line : Files.readAllLines(table)) {
            if (line.startsWith("## ")) {
                inside = line.equals("## " + heading);
            }
            Matcher row = ROW.matcher(line);
            if (inside && row.matches()) {
                assertThat(rows.put(row.group(1), row.group(2)))
                        .as(row.group(1) + " twice")
                        .isNull();
            }
        }
        assertThat(rows).as("rows under " + heading).isNotEmpty();
        return rows;
    }

    @Test
    @Timeout(240)
    void tableNamesWhatTheLibraryExportsAndTheHeaderDefines() throws Exception {
        CProbe.assumeHeaders("infiniband/verbs.h");
        Set<String> functions = new TreeSet<>();
        Matcher inline = INLINE.matcher(Files.readString(HEADER));
        while (inline.find()) {
            functions.add(inline.group(1));
        }
        String loader = CProbe.run(List.of("/sbin/ldconfig", "-p"));
        Assumptions.assumeTrue(loader != null, "ldconfig is not there to find the library with");
        Matcher library = Pattern.compile("libibverbs\\.so\\.1 .*=> (\\S+)").matcher(loader);
        assertThat(library.find()).as("libibverbs.so.1 among " + loader).isTrue();
        Matcher export = EXPORT.matcher(CProbe.run(List.of("nm", "-D", "--with-symbol-versions", library.group(1))));
        while (export.find()) {
            if (!export.group(2).contains("PRIVATE")) {
                functions.add(export.group(1));
            }
        }
        Set<String> table = new TreeSet<>(rows(TABLE, "Verbs").keySet());
        table.addAll(rows(TABLE, "Verbs with another way in Java").keySet());
        table.addAll(rows(TABLE, "Verbs that are not bound").keySet());
        Set<String> missing = new TreeSet<>(functions);
        missing.removeAll(table);
        Set<String> gone = new TreeSet<>(table);
        gone.removeAll(functions);
        if (isLater()) {
            missing.removeAll(rows(TABLE, "Later than rdma-core 44").keySet());
        }
        assertThat(missing).as("functions that the table lacks").isEmpty();
        assertThat(gone).as("functions that do not exist").isEmpty();
    }

    @Test
    void everythingThatManPagesDocumentCanBeDone() throws Exception {
        Set<String> documented = documented();
        System.out.println(documented.size() + " functions in the synopses of " + MANUAL);
        assertThat(documented).hasSizeGreaterThan(120);
        documented.removeAll(rows(TABLE, "Verbs").keySet());
        documented.removeAll(rows(TABLE, "Verbs with another way in Java").keySet());
        rows(Path.of("../docs/coverage-librdmacm.md"), "librdmacm").forEach((function, java) -> {
            if (!java.equals("none")) {
                documented.remove(function);
            }
        });
        if (isLater()) {
            documented.removeAll(rows(TABLE, "Later than rdma-core 44").keySet());
        }
        assertThat(documented).as("documented, and not to be done").isEmpty();
    }

    private static boolean isLater() throws Exception {
        return Files.exists(HEADER) && Files.readString(HEADER).contains("IBV_WR_FLUSH");
    }

    /** The functions that the synopses of man pages name. */
    private static Set<String> documented() throws Exception {
        Set<String> functions = new TreeSet<>();
        if (Files.isDirectory(MANUAL)) {
            try (DirectoryStream<Path> found =
                    Files.newDirectoryStream(MANUAL, "{ibv_,rdma_,mult_to_ibv_,mbps_to_ibv_}*.3*")) {
                for (Path page : found) {
                    Matcher synopsis = SYNOPSIS.matcher(text(page).replaceAll("\\\\f(\\[\\w*]|\\w)|\\\\-|\"", ""));
                    assertThat(synopsis.find()).as("a synopsis in " + page).isTrue();
                    PROTOTYPE.matcher(synopsis.group(1)).results().forEach(name -> functions.add(name.group(1)));
                }
            }
        }
        Assumptions.assumeTrue(!functions.isEmpty(), "the man pages of libibverbs-dev are not installed");
        return functions;
    }

    private static String text(Path page) throws Exception {
        try (InputStream file = Files.newInputStream(page);
                InputStream plain = page.toString().endsWith(".gz") ? new GZIPInputStream(file) : file) {
            return new String(plain.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void tableNamesMethodsThatExist() throws Exception {
        Map<String, String> rows = rows(TABLE, "Verbs");
        rows.putAll(rows(TABLE, "Verbs with another way in Java"));
        rows.forEach((function, java) -> {
            String[] name = java.substring(1, java.length() - 1).split("\\.");
            Class<?> type = named(name[0]);
            assertThat(Arrays.stream(type.getMethods()).map(method -> method.getName()))
                    .as(function)
                    .contains(name[1]);
        });
    }

    private static Class<?> named(String simpleName) {
        for (String place : List.of("", "address.", "device.", "memory.", "packet.", "queue.", "work.")) {
            try {
                return Class.forName("org.verbena.verbs." + place + simpleName);
            } catch (ClassNotFoundException elsewhere) {
                continue;
            }
        }
        throw new AssertionError("the table names " + simpleName + ", which no package has");
    }
}
