package org.verbena.it.skips;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.verbena.it.guest.LabTests;

/**
 * The end of a build: prints which tests of all modules were skipped or aborted and why, and how many of the lab's ran.
 * Where the lab is required it fails when a test was skipped that the list does not name.
 */
public final class SkipReport {
    private SkipReport() {}

    /**
     * Runs.
     *
     * @param arguments the root folder, the list of skips that are allowed, when the build began (ISO 8601), and the
     *     property {@code lab}
     */
    public static void main(String[] arguments) throws IOException {
        Path list = Path.of(arguments[1]);
        TestReports reports = TestReports.read(Path.of(arguments[0]), Instant.parse(arguments[2]));
        boolean isStrict = arguments[3].equals("require") || arguments[3].equals("full");
        LabTests lab = reports.labMethods().isEmpty() ? LabTests.NONE : LabTests.all();
        if (!report(reports, lab, AllowedSkip.parse(Files.readAllLines(list)), System.out) && isStrict) {
            System.out.println("tests were skipped that " + list.getFileName()
                    + " does not name: install what they need, or name them there with the reason");
            System.exit(1);
        }
    }

    /** Returns whether the list names all that was skipped. */
    static boolean report(TestReports reports, LabTests lab, List<AllowedSkip> allowed, PrintStream out) {
        if (reports.count() == 0) {
            return true;
        }
        if (lab.everyday() > 0) {
            out.printf(
                    "lab: %d of %d tests (methods) ran; %d are left to -Dlab=full, which runs all%n",
                    reports.labMethods().size(), lab.everyday() + lab.full(), lab.full());
        }
        Map<String, Long> rows = reports.skipped().stream()
                .collect(Collectors.groupingBy(
                        skipped -> "%-9s %-7s %s: %s"
                                .formatted(
                                        allowed.stream().anyMatch(each -> each.allows(skipped))
                                                ? "listed"
                                                : "NOT LISTED",
                                        skipped.device(),
                                        skipped.method(),
                                        skipped.shortReason()),
                        TreeMap::new,
                        Collectors.counting()));
        out.printf(
                "%d tests reported, %d of them skipped or aborted%s%n",
                reports.count(), reports.skipped().size(), rows.isEmpty() ? "" : ":");
        rows.forEach((row, times) -> out.println("  " + row + (times == 1 ? "" : " (" + times + " times)")));
        return reports.skipped().stream().allMatch(skipped -> allowed.stream().anyMatch(each -> each.allows(skipped)));
    }
}
