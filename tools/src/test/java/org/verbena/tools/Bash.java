package org.verbena.tools;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;

/** A bash that has sourced a completion script. */
final class Bash {
    /** Sources the script as a user's shell does, then completes as TAB behind the last word does. */
    private static final String COMPLETE = """
            source "$1" || exit 1
            shift
            COMP_WORDS=("$@")
            COMP_CWORD=$(($# - 1))
            COMP_LINE="$*"
            COMP_POINT=${#COMP_LINE}
            function=$(complete -p verbena) || exit 1
            function=${function##*-F }
            "${function%% *}" 2>/dev/null || exit 1 # compopt complains outside of an interactive completion
            printf '%s\\n' "${COMPREPLY[@]}"
            """;

    private Bash() {}

    static List<String> complete(Path script, String... words) throws Exception {
        Path bash = Path.of("/bin/bash");
        Assumptions.assumeTrue(bash.toFile().canExecute(), "there is no /bin/bash");
        List<String> command =
                new ArrayList<>(List.of(bash.toString(), "--norc", "-c", COMPLETE, "bash", script.toString()));
        command.addAll(List.of(words));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(printed).isZero();
        return printed.lines()
                .map(String::strip)
                .filter(line -> !line.isEmpty())
                .toList();
    }
}
