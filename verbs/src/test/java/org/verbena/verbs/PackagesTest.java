package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Values know nothing of the objects that use them, not even in their documentation. */
class PackagesTest {
    private static final Path SOURCES = Path.of("src/main/java/org/verbena/verbs");
    private static final Pattern OBJECT = Pattern.compile("\\borg\\.verbena\\.verbs\\.[A-Z]");

    @Test
    void theObjectsAreAboveAllOtherPackages() throws Exception {
        List<Path> below;
        try (Stream<Path> files = Files.walk(SOURCES)) {
            below = files.filter(file -> file.toString().endsWith(".java"))
                    .filter(file -> !file.getParent().equals(SOURCES))
                    .toList();
        }
        assertThat(below).hasSizeGreaterThan(50);
        for (Path file : below) {
            assertThat(Files.readString(file)).as(file.toString()).doesNotContainPattern(OBJECT);
        }
    }
}
