package org.verbena.verbs.ffm;

import java.util.BitSet;

/** The kernel's lists of processors and nodes: {@code 0-3,8,10-11}. Source: cpuset(7), "Formats" */
public final class CpuList {
    /** More than any kernel is built for. */
    private static final int MAX = 1 << 16;

    private CpuList() {}

    /**
     * Reads a list.
     *
     * @param text the content of a file
     * @return the numbers; empty for an empty list
     * @throws NumberFormatException it is no such list
     */
    public static BitSet parse(String text) {
        BitSet numbers = new BitSet();
        for (String range : text.strip().split(",")) {
            if (!range.isBlank()) {
                int dash = range.indexOf('-');
                int first = Integer.parseInt((dash < 0 ? range : range.substring(0, dash)).strip());
                int last = dash < 0
                        ? first
                        : Integer.parseInt(range.substring(dash + 1).strip());
                if (first < 0 || last < first || last >= MAX) {
                    throw new NumberFormatException(range);
                }
                numbers.set(first, last + 1);
            }
        }
        return numbers;
    }
}
