package org.verbena.site;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jsoup.Jsoup;
import org.jsoup.nodes.Document;
import org.jsoup.nodes.Element;
import org.junit.jupiter.api.Test;

/** The site that was just built holds together: every link, picture and search result leads to something in it. */
class SiteTest {
    private static final Path SITE = Path.of(System.getProperty("site"));
    private static final Pattern EXPORTS = Pattern.compile("module ([\\w.]+) \\{.*\\bexports ", Pattern.DOTALL);

    private final Map<Path, Set<String>> ids = new HashMap<>();

    @Test
    void linksAndAnchorsLeadSomewhere() throws IOException {
        Set<String> broken = new TreeSet<>();
        int links = 0;
        for (Path page : pages()) {
            for (Element element : parse(page).select("[href], [src]")) {
                String target = element.hasAttr("href") ? element.attr("href") : element.attr("src");
                if (!target.matches("(?s)[a-z]+:.*")) {
                    links++;
                    if (!exists(page, target)) {
                        broken.add(SITE.relativize(page) + ": " + target);
                    }
                }
            }
        }
        assertThat(links).isGreaterThan(5_000);
        assertThat(broken).isEmpty();
    }

    @Test
    void searchLeadsToEverySectionAndType() throws IOException {
        String script = Files.readString(SITE.resolve("search-data.js"));
        JsonArray entries = JsonParser.parseString(script.substring(script.indexOf('['), script.lastIndexOf(']') + 1))
                .getAsJsonArray();
        List<String> urls = new ArrayList<>();
        for (JsonElement entry : entries) {
            JsonObject object = entry.getAsJsonObject();
            urls.add(object.get("url").getAsString());
        }
        assertThat(urls)
                .allMatch(url -> exists(SITE.resolve("index.html"), url))
                .doesNotHaveDuplicates();
        assertThat(urls)
                .contains(
                        "index.html",
                        "guide.html#flow-control",
                        "errors.html#soft-iwarp-siw",
                        "api/org.verbena.api/org/verbena/api/RdmaChannel.html",
                        "api/org.verbena.verbs/org/verbena/verbs/QueuePair.html");
    }

    /** By the declarations in the source tree, not by the list that the site is made from. */
    @Test
    void hasJavadocOfEveryModuleThatExportsSomething() throws IOException {
        List<String> modules = new ArrayList<>();
        try (Stream<Path> files = Files.find(
                Path.of("..").toRealPath(), 7, (file, attributes) -> file.endsWith("src/main/java/module-info.java"))) {
            for (Path file : files.toList()) {
                Matcher exports = EXPORTS.matcher(Files.readString(file));
                if (exports.find()) {
                    modules.add(exports.group(1));
                }
            }
        }
        assertThat(modules).hasSizeGreaterThan(10);
        assertThat(modules).allMatch(module -> Files.exists(SITE.resolve("api/" + module + "/module-summary.html")));
        for (String artifact : List.of("verbena-ratis", "verbena-disni")) { // which are no modules
            assertThat(SITE.resolve("api/" + artifact + "/index.html")).exists();
        }
    }

    @Test
    void javadocBeginsWithTheModulesThatProgramsUse() throws IOException {
        assertThat(parse(SITE.resolve("api/index.html")).select("main a[href]").eachAttr("href"))
                .startsWith("org.verbena.api/module-summary.html");
    }

    @Test
    void linksToPagesReadAsTitles() throws IOException {
        for (Path page : ownPages()) {
            assertThat(parse(page).select("main a[href]").eachText())
                    .as(page.toString())
                    .noneMatch(text -> text.matches("[\\w./-]+\\.md"));
        }
    }

    @Test
    void contentsHaveTwoLevels() throws IOException {
        Document guide = parse(SITE.resolve("guide.html"));
        assertThat(guide.select("aside > ul > li > a[href]").eachAttr("href")).contains("#the-short-form");
        assertThat(guide.select("aside > ul > li > ul > li > a[href]").eachAttr("href"))
                .contains("#stopping-a-server");
    }

    @Test
    void nothingIsLoadedFromElsewhere() throws IOException {
        for (Path page : ownPages()) {
            assertThat(parse(page).select("script[src], link[href], img[src]"))
                    .as(page.toString())
                    .noneMatch(element -> element.attr(element.hasAttr("src") ? "src" : "href")
                            .matches("(https?:)?//.*"));
        }
    }

    @Test
    void picturesSayWhatTheyShow() throws IOException {
        List<Element> pictures = new ArrayList<>();
        for (Path page : ownPages()) {
            pictures.addAll(parse(page).select("img"));
        }
        assertThat(pictures).hasSizeGreaterThan(3);
        assertThat(pictures).allMatch(picture -> picture.attr("alt").length() > 40);
    }

    /** Headings name themselves, and may take a name that the page needs for itself. */
    @Test
    void namesAreUnique() throws IOException {
        for (Path page : ownPages()) {
            assertThat(parse(page).select("[id]").eachAttr("id"))
                    .as(page.toString())
                    .doesNotHaveDuplicates();
        }
    }

    @Test
    void menuHasEveryPage() throws IOException {
        List<Path> pages = ownPages();
        assertThat(pages).hasSizeGreaterThan(15);
        for (Path page : pages) {
            Document document = parse(page);
            assertThat(document.select("#ui-menu a[href]").eachAttr("href"))
                    .containsAll(pages.stream()
                            .map(other -> other.getFileName().toString())
                            .toList());
            assertThat(document.select("#ui-menu a[aria-current=page]").eachAttr("href"))
                    .containsExactly(page.getFileName().toString());
        }
    }

    /** A narrow screen has no room beside the text, and shows them above it. */
    @Test
    void sectionsAreListedBesideAndAboveTheText() throws IOException {
        for (Path page : ownPages()) {
            Document document = parse(page);
            List<String> above =
                    document.select("main > h1 + details.contents a[href]").eachAttr("href");
            assertThat(above)
                    .as(page.toString())
                    .containsAll(document.select("main > h2").eachAttr("id").stream()
                            .map(id -> "#" + id)
                            .toList())
                    .isEqualTo(document.select("aside a[href]").eachAttr("href"));
        }
    }

    /** All that a browser can show, Javadoc included. */
    private static List<Path> pages() throws IOException {
        try (Stream<Path> files = Files.walk(SITE)) {
            return files.filter(file -> file.toString().endsWith(".html")).toList();
        }
    }

    /** Those made from Markdown. */
    private static List<Path> ownPages() throws IOException {
        try (Stream<Path> files = Files.list(SITE)) {
            return files.filter(file -> file.toString().endsWith(".html")).toList();
        }
    }

    private boolean exists(Path page, String target) {
        URI uri = URI.create(target);
        Path file = uri.getPath().isEmpty()
                ? page
                : page.resolveSibling(uri.getPath()).normalize();
        if (Files.isDirectory(file)) {
            return false; // opened as a file it is no page
        }
        String fragment = uri.getFragment();
        return Files.exists(file)
                && (fragment == null || fragment.isEmpty() || ids(file).contains(fragment));
    }

    private Set<String> ids(Path page) {
        return ids.computeIfAbsent(page, file -> {
            try {
                Set<String> found = new HashSet<>(parse(file).select("[id]").eachAttr("id"));
                found.addAll(parse(file).select("a[name]").eachAttr("name"));
                return found;
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    private static Document parse(Path page) throws IOException {
        return Jsoup.parse(Files.readString(page));
    }
}
