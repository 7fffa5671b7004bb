package org.verbena.samples.command;

import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;

/** Finds the names that a user may have meant. */
final class SimilarNames {
    /** A user would not choose from more. */
    private static final int MAX = 3;

    /** Typing errors: a letter too many, missing or wrong, or two that are swapped. */
    private static final int MAX_ERRORS = 2;

    /** A shorter part of a name would match too many. */
    private static final int MIN_PART = 3;

    private SimilarNames() {}

    /**
     * Finds them.
     *
     * @param typed not one of the names
     * @param names all names
     * @return the most similar first, three at most
     */
    static List<String> of(String typed, Collection<String> names) {
        return names.stream()
                .filter(name -> errors(typed, name) <= Math.min(MAX_ERRORS, typed.length() / 2)
                        || (typed.length() >= MIN_PART && name.contains(typed)))
                .sorted(Comparator.comparingInt(name -> errors(typed, name)))
                .limit(MAX)
                .toList();
    }

    /** The optimal string alignment distance. */
    private static int errors(String typed, String name) {
        int[] beforeLast = new int[name.length() + 1];
        int[] last = new int[name.length() + 1];
        int[] row = new int[name.length() + 1];
        Arrays.setAll(last, i -> i);
        for (int i = 1; i <= typed.length(); i++) {
            row[0] = i;
            for (int j = 1; j <= name.length(); j++) {
                boolean same = typed.charAt(i - 1) == name.charAt(j - 1);
                row[j] = Math.min(Math.min(row[j - 1], last[j]) + 1, last[j - 1] + (same ? 0 : 1));
                boolean swapped = i > 1
                        && j > 1
                        && typed.charAt(i - 1) == name.charAt(j - 2)
                        && typed.charAt(i - 2) == name.charAt(j - 1);
                if (swapped) {
                    row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
                }
            }
            int[] free = beforeLast;
            beforeLast = last;
            last = row;
            row = free;
        }
        return last[name.length()];
    }
}
