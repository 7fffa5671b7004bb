package org.verbena.it.skips;

import java.util.ArrayList;
import java.util.List;

/**
 * A line of the list of tests that may be skipped, {@code test | device | reason}.
 *
 * @param test the class without its package, and the method: {@code OuterTest$Inner#method}
 * @param device the lab's device that the class is for, or {@value #ANY_DEVICE}
 * @param reason what the reason given has in it: the same test may not be skipped for another
 */
record AllowedSkip(String test, String device, String reason) {
    /** For tests that are not for one device. */
    static final String ANY_DEVICE = "-";

    private static final int COLUMNS = 3;

    /**
     * Reads the list. Empty lines and those that begin with # say nothing.
     *
     * @throws IllegalArgumentException if a line has not three columns
     */
    static List<AllowedSkip> parse(List<String> lines) {
        List<AllowedSkip> list = new ArrayList<>();
        for (String line : lines) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            String[] columns = line.split("\\|", COLUMNS);
            if (columns.length != COLUMNS || columns[2].isBlank()) {
                throw new IllegalArgumentException("expected \"test | device | reason\": " + line);
            }
            list.add(new AllowedSkip(columns[0].strip(), columns[1].strip(), columns[2].strip()));
        }
        return list;
    }

    boolean allows(SkippedTest skipped) {
        return skipped.method().equals(test)
                && skipped.device().equals(device)
                && skipped.shortReason().contains(reason);
    }
}
