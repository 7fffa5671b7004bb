package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.work.CompletionStatus;

/**
 * {@code docs/errors.md} says what the exceptions say: its tables for verbs are made from the same enums. Run {@link
 * Maker} after changing a text.
 */
class ErrorsDocumentTest {
    private static final Path DOCUMENT = Path.of("../docs/errors.md");
    private static final String STATUSES = "## Completion statuses";
    private static final String CALLS = "## Calls of libibverbs";

    private static List<String> statuses() {
        List<String> lines = new ArrayList<>();
        lines.add("| status | value | what it means | what usually causes it, what to do |");
        lines.add("|---|---|---|---|");
        for (CompletionStatus status : CompletionStatus.values()) {
            if (status != CompletionStatus.UNKNOWN) {
                lines.add("| `" + status + "` | " + status.value() + " | " + status.meaning() + " | " + status.hint()
                        + " |");
            }
        }
        return lines;
    }

    private static List<String> calls() {
        List<String> lines = new ArrayList<>();
        lines.add("| call | errno | what usually causes it, what to do |");
        lines.add("|---|---|---|");
        for (Failures failure : Failures.values()) {
            lines.add("| " + (failure.call().equals("*") ? "any other" : "`" + failure.call() + "`") + " | `"
                    + Errno.name(failure.errno()) + "` | " + failure.hint() + " |");
        }
        return lines;
    }

    /** The table under a heading. */
    private static List<String> table(List<String> document, String heading) {
        int at = document.indexOf(heading);
        assertThat(at).as(heading + " in " + DOCUMENT).isNotNegative();
        List<String> table = new ArrayList<>();
        for (String line : document.subList(at + 1, document.size())) {
            if (line.startsWith("## ")) {
                break;
            }
            if (line.startsWith("|")) {
                table.add(line);
            }
        }
        return table;
    }

    @Test
    void documentSaysWhatTheExceptionsSay() throws Exception {
        List<String> document = Files.readAllLines(DOCUMENT);
        assertThat(table(document, STATUSES)).isEqualTo(statuses());
        assertThat(table(document, CALLS)).isEqualTo(calls());
    }

    @Test
    void hintsAreFoundByCallAndErrno() {
        assertThat(Failures.hint("ibv_post_send", Errno.ENOMEM)).startsWith("the send queue is full");
        assertThat(Failures.hint("ibv_reg_mr_iova2", Errno.ENOMEM)).contains("locked-memory limit");
        assertThat(Failures.hint("ibv_close_device", Errno.EBUSY)).startsWith("it is still in use");
        assertThat(Failures.hint("ibv_close_device", Errno.EINVAL)).isEmpty();
    }

    /** Puts the tables into the document. */
    static final class Maker {
        /**
         * Replaces them.
         *
         * @param arguments the document
         */
        public static void main(String[] arguments) throws Exception {
            Path document = Path.of(arguments[0]);
            List<String> lines = new ArrayList<>(Files.readAllLines(document));
            replace(lines, STATUSES, statuses());
            replace(lines, CALLS, calls());
            Files.write(document, lines);
        }

        private static void replace(List<String> lines, String heading, List<String> table) {
            int at = lines.indexOf(heading) + 1;
            while (at < lines.size()
                    && !lines.get(at).startsWith("|")
                    && !lines.get(at).startsWith("## ")) {
                at++;
            }
            while (at < lines.size() && lines.get(at).startsWith("|")) {
                lines.remove(at);
            }
            lines.addAll(at, table);
        }
    }
}
