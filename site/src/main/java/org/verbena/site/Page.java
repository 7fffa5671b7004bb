package org.verbena.site;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.commonmark.Extension;
import org.commonmark.ext.gfm.tables.TablesExtension;
import org.commonmark.parser.Parser;
import org.commonmark.renderer.html.HtmlRenderer;
import org.jsoup.Jsoup;
import org.jsoup.nodes.Document;
import org.jsoup.nodes.Element;
import org.jsoup.nodes.Node;
import org.jspecify.annotations.Nullable;

/** A page as HTML: links lead to the site's files, tables scroll by themselves, and headings have anchors. */
final class Page {
    private static final List<Extension> EXTENSIONS = List.of(TablesExtension.create());
    private static final Parser PARSER = Parser.builder().extensions(EXTENSIONS).build();
    private static final HtmlRenderer RENDERER =
            HtmlRenderer.builder().extensions(EXTENSIONS).build();

    /** What a link reads as in the repository, where files have no titles. */
    private static final Pattern FILE_NAME = Pattern.compile("[\\w./-]+\\.md");

    private final PageSource source;
    private final Element body;
    private final Set<Path> files = new HashSet<>();
    private final StringBuilder contents = new StringBuilder();

    private Page(PageSource source, Element body) {
        this.source = source;
        this.body = body;
    }

    /**
     * Reads and converts a page.
     *
     * @throws IOException it is missing, or a file that it links to is
     */
    static Page read(Path repository, PageSource source, Navigation navigation) throws IOException {
        String html = RENDERER.render(PARSER.parse(Files.readString(repository.resolve(source.path()))));
        Document document = Jsoup.parseBodyFragment(html);
        document.outputSettings().prettyPrint(false);
        Page page = new Page(source, document.body());
        page.nameHeadings();
        page.resolveLinks(repository, navigation);
        page.decorate();
        return page;
    }

    /** The heading of the page, or its title in the menu. */
    String title() {
        Element heading = body.selectFirst("h1");
        return heading == null ? source.title() : heading.ownText();
    }

    /** The heading of the page as HTML; empty if it has none. */
    String heading() {
        Element heading = body.selectFirst("h1");
        return heading == null ? "" : heading.outerHtml();
    }

    /** All but the heading, as HTML. */
    String text() {
        Element heading = body.selectFirst("h1");
        return body.childNodes().stream()
                .filter(node -> !node.equals(heading))
                .map(Node::outerHtml)
                .collect(Collectors.joining());
    }

    /** Files of the repository that the page shows or links to, besides pages. */
    Set<Path> files() {
        return files;
    }

    /** Where such a file is copied to: pictures into a folder, texts beside the pages. */
    static String copyOf(Path file) {
        String name = file.getFileName().toString();
        return file.startsWith("docs/images") ? "images/" + name : name + ".txt";
    }

    /** The list of sections: beside the text, or on a narrow screen above it. */
    String contents() {
        return contents.toString();
    }

    /** Makes each section an entry of its own. */
    void addTo(Search search) {
        String pageTitle = title();
        String section = "";
        String id = "";
        StringBuilder text = new StringBuilder();
        for (Element child : body.children()) {
            if (child.tagName().matches("h[23]")) {
                search.add(pageTitle, section, source.file() + id, text.toString());
                text.setLength(0);
                section = child.text();
                id = "#" + child.id();
            } else if (!child.tagName().equals("h1")) {
                text.append(child.text()).append(' ');
            }
        }
        search.add(pageTitle, section, source.file() + id, text.toString());
    }

    /** Gives headings the anchors that GitHub gives them, so that a link works here and there. */
    private void nameHeadings() {
        Map<String, Integer> uses = new HashMap<>();
        for (Element heading : body.select("h1, h2, h3, h4")) {
            String id = heading.text()
                    .toLowerCase(Locale.ROOT)
                    .replaceAll("[^\\p{L}\\p{N}_ -]", "")
                    .replace(' ', '-');
            int before = uses.merge(id, 1, Integer::sum) - 1;
            heading.attr("id", before == 0 ? id : id + "-" + before);
        }
    }

    private void resolveLinks(Path repository, Navigation navigation) throws IOException {
        for (Element link : body.select("a[href]")) {
            String href = link.attr("href");
            if (!href.contains(":") && !href.startsWith("#")) {
                link.attr("href", resolve(repository, navigation, href));
                PageSource page = navigation.find(target(href.replaceFirst("#.*", "")));
                if (page != null && FILE_NAME.matcher(link.text()).matches()) {
                    link.text(page.title());
                }
            }
        }
        for (Element image : body.select("img")) {
            Path file = target(image.attr("src"));
            requireFile(repository, file);
            files.add(file);
            image.attr("src", copyOf(file));
        }
    }

    private String resolve(Path repository, Navigation navigation, String href) throws IOException {
        int hash = href.indexOf('#');
        Path file = target(hash < 0 ? href : href.substring(0, hash));
        @Nullable PageSource page = navigation.find(file);
        if (page != null) {
            return page.file() + (hash < 0 ? "" : href.substring(hash));
        }
        requireFile(repository, file);
        files.add(file);
        return copyOf(file);
    }

    private Path target(String href) {
        return source.path().resolveSibling(href).normalize();
    }

    private void requireFile(Path repository, Path file) throws IOException {
        if (!Files.isRegularFile(repository.resolve(file))) {
            throw new IOException(source.path() + " links to " + file + ", which is not a file");
        }
    }

    private void decorate() {
        for (Element table : body.select("table")) {
            table.wrap("<div class=\"wide\" tabindex=\"0\"></div>");
        }
        for (Element code : body.select("pre")) {
            code.attr("tabindex", "0"); // it scrolls
        }
        for (Element paragraph : body.select("p:has(> img:only-child)")) {
            paragraph.tagName("figure");
        }
        boolean isNested = false;
        for (Element heading : body.select("h2, h3")) {
            boolean isBelow = heading.tagName().equals("h3") && !contents.isEmpty();
            if (isBelow != isNested) {
                contents.append(isBelow ? "<li><ul>\n" : "</ul></li>\n");
                isNested = isBelow;
            }
            contents.append("<li><a href=\"#%s\">%s</a></li>\n".formatted(heading.id(), heading.html()));
        }
        contents.append(isNested ? "</ul></li>\n" : "");
        for (Element heading : body.select("h2, h3")) {
            heading.appendElement("a")
                    .addClass("anchor")
                    .attr("href", "#" + heading.id())
                    .attr("aria-label", "Link to this section");
        }
    }
}
