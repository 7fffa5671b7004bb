package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A knot is a set of files each of which knows all others, directly or by others: none of them can be understood, or
 * changed, without the rest. Knots have at most {@link #MAX_FILES} files.
 */
@Timeout(240)
class KnotsTest {
    private static final int MAX_FILES = 8;

    /** Larger knots that are there, by package. They may shrink, and this list with them; none may grow. */
    private static final Map<String, Integer> KNOWN = Map.of(
            "org.verbena.api.internal.request", 24,
            "org.verbena.testing", 14,
            "org.verbena.tools.perf", 23,
            "org.verbena.transport.buffer", 9,
            "org.verbena.transport.verbs", 35,
            "org.verbena.verbs", 33);

    @Test
    void knotsAreSmall() {
        Map<String, Set<String>> knows = new TreeMap<>();
        for (JavaClass file : ArchitectureTest.CLASSES) {
            Set<String> known = knows.computeIfAbsent(topLevel(file.getName()), name -> new TreeSet<>());
            file.getDirectDependenciesFromSelf().stream()
                    .map(dependency ->
                            dependency.getTargetClass().getBaseComponentType().getName())
                    .filter(name -> name.startsWith("org.verbena."))
                    .forEach(name -> known.add(topLevel(name)));
        }
        assertThat(knows).hasSizeGreaterThan(800);
        for (List<String> knot : knots(knows)) {
            assertThat(knot).hasSizeLessThanOrEqualTo(KNOWN.getOrDefault(commonPackage(knot), MAX_FILES));
        }
    }

    @Test
    void findsAKnot() {
        Map<String, Set<String>> knows = Map.of(
                "p.a.A", Set.of("p.b.B", "p.X"), "p.b.B", Set.of("p.c.C"), "p.c.C", Set.of("p.a.A"), "p.X", Set.of());
        List<List<String>> knots = knots(knows);
        assertThat(knots).hasSize(2);
        assertThat(knots).anySatisfy(knot -> assertThat(knot).containsExactlyInAnyOrder("p.a.A", "p.b.B", "p.c.C"));
        assertThat(commonPackage(List.of("p.a.A", "p.a.b.B"))).isEqualTo("p.a");
    }

    private static String topLevel(String name) {
        int nested = name.indexOf('$');
        return nested < 0 ? name : name.substring(0, nested);
    }

    private static String commonPackage(List<String> knot) {
        String common = knot.getFirst().substring(0, knot.getFirst().lastIndexOf('.'));
        for (String name : knot) {
            while (!name.startsWith(common + ".")) {
                common = common.substring(0, common.lastIndexOf('.'));
            }
        }
        return common;
    }

    /** The strongly connected components. Source: Tarjan, Depth-first search and linear graph algorithms (1972) */
    private static List<List<String>> knots(Map<String, Set<String>> knows) {
        List<List<String>> knots = new ArrayList<>();
        Map<String, Integer> number = new HashMap<>();
        Map<String, Integer> earliest = new HashMap<>();
        Deque<String> open = new ArrayDeque<>();
        for (String file : knows.keySet()) {
            visit(file, knows, number, earliest, open, knots);
        }
        return knots;
    }

    private static void visit(
            String file,
            Map<String, Set<String>> knows,
            Map<String, Integer> number,
            Map<String, Integer> earliest,
            Deque<String> open,
            List<List<String>> knots) {
        if (number.containsKey(file)) {
            return;
        }
        number.put(file, number.size());
        earliest.put(file, number.get(file));
        open.push(file);
        for (String known : knows.getOrDefault(file, Set.of())) {
            if (!number.containsKey(known)) {
                visit(known, knows, number, earliest, open, knots);
                earliest.merge(file, earliest.get(known), Math::min);
            } else if (open.contains(known)) {
                earliest.merge(file, number.get(known), Math::min);
            }
        }
        if (earliest.get(file).equals(number.get(file))) {
            List<String> knot = new ArrayList<>();
            String last;
            do {
                last = open.pop();
                knot.add(last);
            } while (!last.equals(file));
            knots.add(knot);
        }
    }
}
