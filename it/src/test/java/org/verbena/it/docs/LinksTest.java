package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Links between the pages lead to files and headings that exist. */
class LinksTest {
    private static final Pattern LINK = Pattern.compile("]\\(([^)#\\s]*)(?:#([^)\\s]+))?\\)");
    private static final Pattern HEADING = Pattern.compile("^#+ (.*)$", Pattern.MULTILINE);
    private static final Pattern CODE = Pattern.compile("^```.*?^```", Pattern.MULTILINE | Pattern.DOTALL);

    @Test
    void leadSomewhere() throws IOException {
        List<String> broken = new ArrayList<>();
        int links = 0;
        for (Path page : pages()) {
            Matcher link = LINK.matcher(text(page));
            while (link.find()) {
                if (link.group(1).contains(":")) {
                    continue; // not ours
                }
                links++;
                Path target = link.group(1).isEmpty()
                        ? page
                        : page.resolveSibling(link.group(1)).normalize();
                if (!Files.exists(target)
                        || link.group(2) != null && !anchors(target).contains(link.group(2))) {
                    broken.add(SnippetsTest.root().relativize(page) + ": " + link.group());
                }
            }
        }
        assertThat(links).isGreaterThan(20);
        assertThat(broken).isEmpty();
    }

    /** A page that the site does not list cannot be found there. */
    @Test
    void siteHasEveryPage() throws IOException {
        Path root = SnippetsTest.root();
        List<String> navigation = Files.readAllLines(root.resolve("site/navigation.txt"));
        for (Path page : pages()) {
            assertThat(navigation).anyMatch(line -> line.startsWith(root.relativize(page) + " "));
        }
    }

    private static List<Path> pages() throws IOException {
        Path root = SnippetsTest.root();
        List<Path> pages = new ArrayList<>();
        for (String folder : List.of("", "docs", "docs/decisions", "bench", "bench/results", "it/lab")) {
            try (Stream<Path> files = Files.list(root.resolve(folder))) {
                files.filter(file -> file.toString().endsWith(".md")).forEach(pages::add);
            }
        }
        return pages;
    }

    /** Headings as GitHub and most site generators make them into anchors. */
    private static List<String> anchors(Path page) throws IOException {
        return HEADING.matcher(text(page))
                .results()
                .map(heading -> heading.group(1)
                        .toLowerCase(Locale.ROOT)
                        .replaceAll("[^\\p{L}\\p{N}_ -]", "")
                        .replace(' ', '-'))
                .toList();
    }

    private static String text(Path page) throws IOException {
        return CODE.matcher(Files.readString(page)).replaceAll("");
    }
}
