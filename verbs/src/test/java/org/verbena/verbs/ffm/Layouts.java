package org.verbena.verbs.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.InputStream;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.UnionLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Compares the structs that are bound with those of the installed headers, and with a golden file of later ones. */
public final class Layouts {
    private static final List<String> HEADERS = List.of("infiniband/verbs.h");

    /**
     * Structs that later versions may append to: their size is passed along with them (port), or C makes them and what
     * is bound here is read at its place (queue pair).
     */
    private static final Set<String> GROWING = Set.of("ibv_port_attr", "ibv_qp_ex");

    private Layouts() {}

    /** Every struct has the size, and every member the place and size, that the C compiler gives it. */
    public static void compareWithInstalled(List<GroupLayout> layouts) throws Exception {
        CProbe.assumeHeaders("infiniband/verbs.h");
        Map<String, Long> bound = new LinkedHashMap<>();
        Map<String, String> expressions = new LinkedHashMap<>();
        for (GroupLayout layout : layouts) {
            describe(layout, bound, expressions);
        }
        Map<String, Long> installed = CProbe.evaluate(HEADERS, expressions);
        for (String growing : GROWING) {
            String size = "sizeof(" + growing + ")";
            if (bound.containsKey(size)) {
                assertThat(installed.get(size)).as(size).isGreaterThanOrEqualTo(bound.get(size));
                bound.put(size, installed.get(size));
            }
        }
        assertThat(installed).isEqualTo(bound);
        System.out.println(bound.size() + " sizes and offsets of " + layouts.size() + " structs compared");
    }

    /** Reads what {@link #writeGolden} wrote. */
    public static Map<String, Long> golden(InputStream file) throws Exception {
        Map<String, Long> golden = new LinkedHashMap<>();
        new String(file.readAllBytes(), StandardCharsets.UTF_8)
                .lines()
                .filter(line -> !line.startsWith("#"))
                .forEach(line -> golden.put(
                        line.substring(0, line.indexOf(' ')), Long.parseLong(line.substring(line.indexOf(' ') + 1))));
        return golden;
    }

    /** Asks the compiler about headers that are not the installed ones. */
    public static void writeGolden(
            List<GroupLayout> layouts, Map<String, String> more, String headers, Path file, String maker)
            throws Exception {
        Map<String, String> expressions = new LinkedHashMap<>();
        for (GroupLayout layout : layouts) {
            describe(layout, new LinkedHashMap<>(), expressions);
        }
        expressions.putAll(more);
        List<String> lines = new ArrayList<>();
        lines.add("# Sizes and offsets on x86-64 by the headers of rdma-core 56.1, made by " + maker + ".");
        CProbe.evaluate(HEADERS, expressions, "-I" + headers).forEach((name, value) -> lines.add(name + " " + value));
        Files.write(file, lines);
    }

    /** Adds the size of a struct and the sizes and places of its members, and how C puts them. */
    public static void describe(GroupLayout layout, Map<String, Long> bound, Map<String, String> expressions) {
        String tag = layout.name().orElseThrow();
        String type = (layout instanceof UnionLayout ? "union " : "struct ") + tag;
        bound.put("sizeof(" + tag + ")", layout.byteSize());
        expressions.put("sizeof(" + tag + ")", "sizeof(" + type + ")");
        members(layout, "", 0, tag, type, bound, expressions);
    }

    private static void members(
            GroupLayout group,
            String prefix,
            long start,
            String tag,
            String type,
            Map<String, Long> bound,
            Map<String, String> expressions) {
        long position = start;
        for (MemoryLayout member : group.memberLayouts()) {
            long at = group instanceof UnionLayout ? start : position;
            position += member.byteSize();
            if (member instanceof PaddingLayout) {
                continue;
            }
            String name = member.name().orElse("");
            String path = name.isEmpty() ? prefix : prefix.isEmpty() ? name : prefix + "." + name;
            if (!name.isEmpty()) {
                bound.put("offsetof(" + tag + "," + path + ")", at);
                expressions.put("offsetof(" + tag + "," + path + ")", "offsetof(" + type + ", " + path + ")");
                bound.put("sizeof(" + tag + "." + path + ")", member.byteSize());
                expressions.put("sizeof(" + tag + "." + path + ")", "sizeof(((" + type + " *) 0)->" + path + ")");
            }
            if (member instanceof GroupLayout inner) {
                members(inner, path, at, tag, type, bound, expressions);
            }
        }
    }
}
