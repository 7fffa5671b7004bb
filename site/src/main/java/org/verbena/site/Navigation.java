package org.verbena.site;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jsoup.nodes.Entities;
import org.jspecify.annotations.Nullable;

/**
 * The order of the pages, and the menu.
 *
 * @param chapters in their order
 */
record Navigation(List<Chapter> chapters) {

    /**
     * Pages that belong together.
     *
     * @param title its name in the menu
     * @param pages in their order
     */
    record Chapter(String title, List<PageSource> pages) {}

    static Navigation read(Path file) throws IOException {
        List<Chapter> chapters = new ArrayList<>();
        List<PageSource> pages = List.of();
        for (String line : Files.readAllLines(file)) {
            int space = line.indexOf(".md ");
            if (space >= 0) {
                int end = space + ".md".length();
                pages.add(new PageSource(Path.of(line.substring(0, end)), line.substring(end + 1)));
            } else if (!line.isBlank() && !line.startsWith("#")) {
                pages = new ArrayList<>();
                chapters.add(new Chapter(line, pages));
            }
        }
        return new Navigation(chapters);
    }

    List<PageSource> pages() {
        return chapters.stream().flatMap(chapter -> chapter.pages().stream()).toList();
    }

    /** The page made from a file of the repository. */
    @Nullable PageSource find(Path path) {
        return pages().stream()
                .filter(page -> page.path().equals(path))
                .findFirst()
                .orElse(null);
    }

    /** The menu as HTML, on a page of it. */
    String menu(PageSource here) {
        StringBuilder html = new StringBuilder();
        for (Chapter chapter : chapters) {
            html.append("<h2>").append(Entities.escape(chapter.title())).append("</h2>\n<ul>\n");
            if (chapter.title().equals("Reference")) {
                html.append("<li><a href=\"api/index.html\">Javadoc</a></li>\n");
            }
            for (PageSource page : chapter.pages()) {
                html.append("<li><a href=\"")
                        .append(page.file())
                        .append(page.equals(here) ? "\" aria-current=\"page\">" : "\">")
                        .append(Entities.escape(page.title()))
                        .append("</a></li>\n");
            }
            html.append("</ul>\n");
        }
        return html.toString();
    }
}
