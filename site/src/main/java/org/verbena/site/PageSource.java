package org.verbena.site;

import java.nio.file.Path;
import java.util.Locale;

/**
 * One page of the site.
 *
 * @param path of its Markdown, in the repository
 * @param title in the menu
 */
record PageSource(Path path, String title) {

    /** Its file in the site: all pages are in one folder. */
    String file() {
        String name = path.getFileName().toString().replaceFirst("\\.md$", "");
        Path folder = path.getParent();
        if (name.equals("README")) {
            name = folder == null ? "index" : folder.getFileName().toString();
        }
        return name.toLowerCase(Locale.ROOT) + ".html";
    }
}
