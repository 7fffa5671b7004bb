package org.verbena.site;

import com.google.gson.Gson;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What the site's search knows. */
final class Search {
    private final List<Entry> entries = new ArrayList<>();

    /** One place that can be found; the names are those in the site's script. */
    private record Entry(int id, String page, String section, String url, String text, String words) {}

    /** Other words for sections, by their URLs. */
    private final Map<String, String> words = new HashMap<>();

    /**
     * Reads the words by which people look for what has another heading.
     *
     * @param file lines of a URL and words for it
     */
    void readWords(Path file) throws IOException {
        for (String line : Files.readAllLines(file)) {
            int space = line.indexOf(' ');
            if (space > 0 && !line.startsWith("#")) {
                words.put(line.substring(0, space), line.substring(space + 1));
            }
        }
    }

    void add(String page, String section, String url, String text) {
        String others = words.remove(url);
        entries.add(new Entry(entries.size(), page, section, url, text.strip(), others == null ? "" : others));
    }

    /** As a script, because a page that was opened as a file may not load anything else. */
    String toScript() {
        if (!words.isEmpty()) {
            throw new IllegalStateException("words for what is not there: " + words.keySet());
        }
        return "const searchData = " + new Gson().toJson(entries) + ";\n";
    }
}
