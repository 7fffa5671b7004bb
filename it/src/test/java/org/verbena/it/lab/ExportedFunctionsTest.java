package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.spi.Patience;

/**
 * The tables of the bindings name what the guest's libraries export to programs: one guest has rdma-core 44, the other
 * 56.
 */
@Tag("lab")
@Timeout(60)
class ExportedFunctionsTest {
    private static final Pattern EXPORT = Pattern.compile(" T (\\w+)@@?(?!\\S*PRIVATE)");
    private static final Pattern ROW = Pattern.compile("^\\| `(\\w+)` \\|", Pattern.MULTILINE);

    @ParameterizedTest
    @CsvSource({"libibverbs.so.1, coverage.md", "librdmacm.so.1, coverage-librdmacm.md"})
    void areAllInATable(String library, String page) throws Exception {
        String loaded = PeerProgram.run(Patience.LIMIT, "sh", "-c", "/sbin/ldconfig -p | grep " + library);
        String file = loaded.substring(loaded.lastIndexOf("=> ") + 3).strip();
        String symbols = PeerProgram.run(Patience.LIMIT, "nm", "-D", "--defined-only", "--with-symbol-versions", file);
        Set<String> exported = names(EXPORT, symbols);
        assertThat(exported).as("functions of %s", file).hasSizeGreaterThan(60);
        Path docs = Path.of(System.getProperty("lab.folder")).resolve("../../docs");
        exported.removeAll(names(ROW, Files.readString(docs.resolve(page))));
        assertThat(exported).as("functions of %s that %s lacks", file, page).isEmpty();
    }

    private static Set<String> names(Pattern pattern, String text) {
        return pattern.matcher(text)
                .results()
                .map((MatchResult found) -> found.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
    }
}
