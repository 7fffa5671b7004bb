package org.verbena.cm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.verbena.cm.ffm.RdmaCm;
import org.verbena.verbs.ffm.Errno;

/**
 * docs/errors-librdmacm.md says what the exceptions say: it is made of the same tables. When they change, this test
 * fails and leaves the new document in target/, to be copied.
 */
class ErrorsDocumentTest {
    private static final Path DOCUMENT = Path.of("../docs/errors-librdmacm.md");

    private static Map<Integer, String> errnos() throws IllegalAccessException {
        Map<Integer, String> errnos = new TreeMap<>();
        for (Field field : Errno.class.getDeclaredFields()) {
            if (field.getType() == int.class && Modifier.isPublic(field.getModifiers())) {
                errnos.put(field.getInt(null), field.getName());
            }
        }
        return errnos;
    }

    private static String document() throws IllegalAccessException {
        StringBuilder text = new StringBuilder("""
                # Troubleshooting: errors of the connection manager

                The messages of the exceptions and events of `org.verbena.cm`. This page is generated from the
                tables that they come from.

                ## Events

                | event | what happened | error |
                |---|---|---|
                """);
        for (CmEventType type : CmEventType.values()) {
            text.append("| `%s` | %s | %s |%n".formatted(type, type.meaning(), type.isError() ? "yes" : ""));
        }
        text.append("""

                ## Statuses of error events

                A negative status is an errno. A positive status of `REJECTED` is a reason code of the InfiniBand
                specification, which InfiniBand and RoCE have and iWARP does not.

                | event | status | what it means and what to do |
                |---|---|---|
                """);
        for (CmEventType type : CmEventType.values()) {
            Map<String, TreeSet<Integer>> errnosByRemedy = new LinkedHashMap<>();
            for (int errno : errnos().keySet()) {
                String described = CmStatus.describe(type, -errno);
                int colon = described.indexOf(": ");
                if (type.isError() && colon > 0) {
                    errnosByRemedy
                            .computeIfAbsent(
                                    described.substring(colon + 2, described.length() - 1), remedy -> new TreeSet<>())
                            .add(errno);
                }
            }
            for (Map.Entry<String, TreeSet<Integer>> remedy : errnosByRemedy.entrySet()) {
                boolean max = remedy.getValue().size() > errnos().size() / 2;
                StringBuilder statuses = new StringBuilder(max ? "any other" : "");
                for (int errno : max ? new TreeSet<Integer>() : remedy.getValue()) {
                    statuses.append(statuses.isEmpty() ? "" : ", ")
                            .append("-%d `%s`".formatted(errno, errnos().get(errno)));
                }
                text.append("| `%s` | %s | %s |%n".formatted(type, statuses, remedy.getKey()));
            }
        }
        for (RejectReason reason : RejectReason.values()) {
            text.append("| `REJECTED` | %d `%s` | %s |%n".formatted(reason.value(), reason, reason.meaning()));
        }
        for (int status = 1; status <= 5; status++) {
            String described = CmStatus.describe(CmEventType.UNREACHABLE, status);
            text.append("| `UNREACHABLE`, datagrams | %d | %s |%n"
                    .formatted(status, described.substring(described.indexOf('(') + 1, described.length() - 1)));
        }
        text.append("""

                ## Calls

                | errno | calls | what it means and what to do |
                |---|---|---|
                """);
        TreeSet<String> functions = new TreeSet<>();
        for (Method method : RdmaCm.class.getDeclaredMethods()) {
            if (Modifier.isPublic(method.getModifiers())) {
                functions.add(
                        "rdma_" + method.getName().replaceAll("([A-Z])", "_$1").toLowerCase(java.util.Locale.ROOT));
            }
        }
        for (Map.Entry<Integer, String> errno : errnos().entrySet()) {
            Map<String, TreeSet<String>> callsByHint = new LinkedHashMap<>();
            for (String function : functions) {
                String hint = CmStatus.hint(function, errno.getKey());
                if (!hint.isEmpty()) {
                    callsByHint.computeIfAbsent(hint, h -> new TreeSet<>()).add(function);
                }
            }
            callsByHint.forEach((hint, calls) -> text.append("| `%s` | %s | %s |%n"
                    .formatted(
                            errno.getValue(),
                            calls.size() > functions.size() / 2
                                    ? "all" + (calls.size() < functions.size() ? " others" : "")
                                    : "`" + String.join("`, `", calls) + "`",
                            hint)));
        }
        return text.toString();
    }

    @Test
    void documentSaysWhatTheExceptionsSay() throws Exception {
        String expected = document();
        Path made = Files.createDirectories(Path.of("target")).resolve("errors-librdmacm.md");
        Files.writeString(made, expected);
        assertThat(Files.exists(DOCUMENT) ? Files.readString(DOCUMENT) : "")
                .as("the document is out of date: copy cm/" + made + " to docs/")
                .isEqualTo(expected);
    }

    @Test
    void everyRejectReasonHasItsOwnValue() {
        assertThat(Arrays.stream(RejectReason.values()).map(RejectReason::value))
                .doesNotHaveDuplicates();
        for (RejectReason reason : RejectReason.values()) {
            assertThat(RejectReason.of(reason.value())).isSameAs(reason);
        }
    }
}
