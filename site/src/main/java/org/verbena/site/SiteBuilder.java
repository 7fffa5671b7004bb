package org.verbena.site;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.jsoup.nodes.Entities;

/**
 * Builds the site from the pages that {@code site/navigation.txt} lists and from the Javadoc of the published modules.
 * It needs no network, and what it writes needs no server.
 *
 * <p>Arguments: the repository, the folder to write into, the version, then {@code NAME=RESOURCE} for each file of a
 * web jar.
 */
final class SiteBuilder {
    private static final String WEB_JARS = "META-INF/resources/webjars/";

    private final Path repository;
    private final Path out;
    private final String version;
    private final Navigation navigation;
    private final Search search = new Search();

    private SiteBuilder(Path repository, Path out, String version) throws IOException {
        this.repository = repository;
        this.out = out;
        this.version = version;
        navigation = Navigation.read(repository.resolve("site/navigation.txt"));
    }

    /**
     * Builds the site.
     *
     * @param arguments see above
     * @throws IOException a page, a picture or a link's target is missing
     */
    public static void main(String... arguments) throws IOException {
        Path repository = Path.of(arguments[0]).toAbsolutePath().normalize();
        SiteBuilder builder = new SiteBuilder(repository, Path.of(arguments[1]), arguments[2]);
        empty(builder.out);
        builder.search.readWords(repository.resolve("site/words.txt"));
        builder.writePages();
        for (String asset : Arrays.asList(arguments).subList(3, arguments.length)) {
            int equals = asset.indexOf('=');
            builder.copyResource(WEB_JARS + asset.substring(equals + 1), asset.substring(0, equals));
        }
        builder.copyResource("org/verbena/site/site.css", "site.css");
        builder.copyResource("org/verbena/site/search.js", "search.js");
        builder.copyResource("org/verbena/site/site.js", "site.js");
        new Javadoc(repository, builder.out.resolve("api"), arguments[2]).write(builder.search);
        Files.writeString(builder.out.resolve("search-data.js"), builder.search.toScript());
    }

    /** Pages of an earlier run would stay, and their links lead nowhere. */
    private static void empty(Path folder) throws IOException {
        if (Files.exists(folder)) {
            try (Stream<Path> files = Files.walk(folder)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        }
        Files.createDirectories(folder);
    }

    private void writePages() throws IOException {
        String template = new String(resource("org/verbena/site/page.html"), UTF_8);
        List<PageSource> pages = navigation.pages();
        Set<Path> files = new HashSet<>();
        for (int i = 0; i < pages.size(); i++) {
            PageSource source = pages.get(i);
            Page page = Page.read(repository, source, navigation);
            files.addAll(page.files());
            page.addTo(search);
            Files.writeString(
                    out.resolve(source.file()),
                    template.replace("{{title}}", Entities.escape(page.title()))
                            .replace("{{version}}", Entities.escape(version))
                            .replace("{{menu}}", navigation.menu(source))
                            .replace("{{contents}}", page.contents())
                            .replace("{{previous}}", i == 0 ? "" : link(pages.get(i - 1), "previous"))
                            .replace("{{next}}", i + 1 == pages.size() ? "" : link(pages.get(i + 1), "next"))
                            .replace("{{heading}}", page.heading())
                            .replace("{{text}}", page.text()));
        }
        for (Path file : files) {
            Path copy = out.resolve(Page.copyOf(file));
            Files.createDirectories(copy.resolveSibling("."));
            Files.write(copy, Files.readAllBytes(repository.resolve(file)));
        }
    }

    private static String link(PageSource page, String rel) {
        return "<a rel=\"%s\" href=\"%s\">%s</a>".formatted(rel, page.file(), Entities.escape(page.title()));
    }

    private void copyResource(String resource, String name) throws IOException {
        Files.write(out.resolve(name), resource(resource));
    }

    private static byte[] resource(String name) throws IOException {
        try (InputStream in = SiteBuilder.class.getClassLoader().getResourceAsStream(name)) {
            if (in == null) {
                throw new IOException("no resource " + name + " on the class path");
            }
            return in.readAllBytes();
        }
    }
}
