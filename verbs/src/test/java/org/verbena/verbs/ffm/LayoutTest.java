package org.verbena.verbs.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every struct that is bound has the size, and every member the place and size, that the C compiler gives it. */
class LayoutTest {
    @Test
    @Timeout(240)
    void layoutsAreThoseOfTheInstalledHeaders() throws Exception {
        Layouts.compareWithInstalled(Structs.ALL);
    }

    @Test
    @Timeout(240)
    void descriptorsAreThoseOfTheInstalledHeaders() throws Exception {
        CProbe.assumeHeaders("poll.h");
        Map<String, Long> bound = new LinkedHashMap<>();
        Map<String, String> expressions = new LinkedHashMap<>();
        Layouts.describe(Pollfd.LAYOUT, bound, expressions);
        bound.put("F_GETFL", (long) FileDescriptors.F_GETFL);
        bound.put("F_SETFL", (long) FileDescriptors.F_SETFL);
        bound.put("O_NONBLOCK", (long) FileDescriptors.O_NONBLOCK);
        bound.put("O_CREAT", (long) FileDescriptors.O_CREAT);
        bound.put("O_CLOEXEC", (long) FileDescriptors.O_CLOEXEC);
        bound.put("POLLIN", (long) FileDescriptors.POLLIN);
        bound.keySet().forEach(name -> expressions.putIfAbsent(name, name));
        assertThat(CProbe.evaluate(List.of("poll.h", "fcntl.h"), expressions)).isEqualTo(bound);
    }
}
