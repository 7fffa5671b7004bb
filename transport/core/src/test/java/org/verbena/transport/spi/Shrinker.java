package org.verbena.transport.spi;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * Makes a list that fails as short as it can: it leaves out ever smaller parts as long as the rest still fails (delta
 * debugging, Zeller 2002).
 */
public final class Shrinker {
    private Shrinker() {}

    /**
     * Shortens a list.
     *
     * @param failing a list that fails
     * @param fails whether a list does
     * @param attempts how often to ask at the most
     * @param <T> of its elements
     * @return a list that fails still, from which no element can be left out if the attempts sufficed
     */
    public static <T> List<T> shrink(List<T> failing, Predicate<List<T>> fails, int attempts) {
        List<T> shortest = List.copyOf(failing);
        int left = attempts;
        int part = Math.max(1, shortest.size() / 2);
        while (part > 0 && left > 0) {
            boolean anyLess = false;
            for (int from = 0; from < shortest.size() && left > 0; ) {
                List<T> without = new ArrayList<>(shortest.subList(0, from));
                without.addAll(shortest.subList(Math.min(from + part, shortest.size()), shortest.size()));
                left--;
                if (fails.test(without)) {
                    shortest = List.copyOf(without);
                    anyLess = true;
                } else {
                    from += part;
                }
            }
            if (!anyLess || part > shortest.size()) {
                part /= 2;
            }
        }
        return shortest;
    }
}
