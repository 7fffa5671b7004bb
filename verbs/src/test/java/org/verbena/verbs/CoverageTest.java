package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

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
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.ffm.CProbe;

/** {@code docs/coverage.md} names every function of libibverbs, and Java methods that exist. */
class CoverageTest {
    private static final Path TABLE = Path.of("../docs/coverage.md");
    private static final Path HEADER = Path.of("/usr/include/infiniband/verbs.h");
    private static final Pattern ROW = Pattern.compile("\\| `(\\w+)` \\| (.*?) \\|(?: (.*?) \\|)?.*");
    private static final Pattern INLINE = Pattern.compile("static inline\\s+[^;{}()]*?\\b(\\w+)\\s*\\(");
    private static final Pattern EXPORT = Pattern.compile("\\S+ T (\\w+)@@?(\\S+)");

    private static Map<String, String> rows(String heading) throws Exception {
        Map<String, String> rows = new TreeMap<>();
        boolean inside = false;
        for (String line : Files.readAllLines(TABLE)) {
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
    @Timeout(60)
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
        Set<String> table = new TreeSet<>(rows("Verbs").keySet());
        table.addAll(rows("Verbs that are not bound").keySet());
        Set<String> missing = new TreeSet<>(functions);
        missing.removeAll(table);
        Set<String> gone = new TreeSet<>(table);
        gone.removeAll(functions);
        if (Files.readString(HEADER).contains("IBV_WR_FLUSH")) {
            // Headers later than the table: what they add is theirs, what they lack is still an error.
            System.out.println("Later than rdma-core 44, and not in the table: " + missing);
        } else {
            assertThat(missing).as("functions that the table lacks").isEmpty();
        }
        assertThat(gone).as("functions that do not exist").isEmpty();
    }

    @Test
    void tableNamesMethodsThatExist() throws Exception {
        rows("Verbs").forEach((function, java) -> {
            String[] name = java.substring(1, java.length() - 1).split("\\.");
            try {
                Class<?> type = Class.forName("org.verbena.verbs." + name[0]);
                assertThat(Arrays.stream(type.getMethods()).map(method -> method.getName()))
                        .as(function)
                        .contains(name[1]);
            } catch (ClassNotFoundException gone) {
                throw new AssertionError(function + " is said to be " + java, gone);
            }
        });
    }
}
