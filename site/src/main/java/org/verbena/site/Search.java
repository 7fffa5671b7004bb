package org.verbena.site;

import com.google.gson.Gson;
import java.util.ArrayList;
import java.util.List;

/** What the site's search knows. */
final class Search {
    private final List<Entry> entries = new ArrayList<>();

    /** One place that can be found; the names are those in the site's script. */
    private record Entry(int id, String page, String section, String url, String text) {}

    void add(String page, String section, String url, String text) {
        entries.add(new Entry(entries.size(), page, section, url, text.strip()));
    }

    /** As a script, because a page that was opened as a file may not load anything else. */
    String toScript() {
        return "const searchData = " + new Gson().toJson(entries) + ";\n";
    }
}
