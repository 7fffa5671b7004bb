package org.verbena.verbs.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.UnionLayout;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every struct that is bound has the size, and every member the place and size, that the C compiler gives it. */
class LayoutTest {
    private static final List<String> HEADERS = List.of("infiniband/verbs.h");

    /**
     * Structs that later versions may append to: their size is passed along with them (port), or C makes them and what is bound here is read
     * at its place (queue pair).
     */
    static final Set<String> GROWING = Set.of("ibv_port_attr", "ibv_qp_ex");

    @Test
    @Timeout(240)
    void layoutsAreThoseOfTheInstalledHeaders() throws Exception {
        CProbe.assumeHeaders("infiniband/verbs.h");
        Map<String, Long> bound = new LinkedHashMap<>();
        Map<String, String> expressions = new LinkedHashMap<>();
        for (GroupLayout layout : Structs.ALL) {
            describe(layout, bound, expressions);
        }
        Map<String, Long> installed = CProbe.evaluate(HEADERS, expressions);
        for (String growing : GROWING) {
            String size = "sizeof(" + growing + ")";
            assertThat(installed.get(size)).as(size).isGreaterThanOrEqualTo(bound.get(size));
            bound.put(size, installed.get(size));
        }
        assertThat(installed).isEqualTo(bound);
        System.out.println(bound.size() + " sizes and offsets of " + Structs.ALL.size() + " structs compared");
    }

    @Test
    @Timeout(240)
    void descriptorsAreThoseOfTheInstalledHeaders() throws Exception {
        CProbe.assumeHeaders("poll.h");
        Map<String, Long> bound = new LinkedHashMap<>();
        Map<String, String> expressions = new LinkedHashMap<>();
        describe(FileDescriptors.POLLFD, bound, expressions);
        bound.put("F_GETFL", (long) FileDescriptors.F_GETFL);
        bound.put("F_SETFL", (long) FileDescriptors.F_SETFL);
        bound.put("O_NONBLOCK", (long) FileDescriptors.O_NONBLOCK);
        bound.put("O_CREAT", (long) FileDescriptors.O_CREAT);
        bound.put("O_CLOEXEC", (long) FileDescriptors.O_CLOEXEC);
        bound.put("POLLIN", (long) FileDescriptors.POLLIN);
        bound.keySet().forEach(name -> expressions.putIfAbsent(name, name));
        assertThat(CProbe.evaluate(List.of("poll.h", "fcntl.h"), expressions)).isEqualTo(bound);
    }

    static void describe(GroupLayout layout, Map<String, Long> bound, Map<String, String> expressions) {
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
