package org.verbena.it.skips;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.it.guest.LabTests;

class SkipReportTest {
    private static final Instant BEGIN = Instant.parse("2026-01-02T03:04:05Z");

    /** As Surefire writes an assumption that did not hold and a test that is disabled, and Failsafe a class. */
    private static final String ABORTED = """
            <testsuite name="org.verbena.it.lab.OneOnSiwTest">
              <testcase name="runs" classname="org.verbena.it.lab.OneOnSiwTest$Inner" time="0.1"/>
              <testcase name="needs(int)[1]" classname="org.verbena.it.lab.OneOnSiwTest$Inner" time="0.0">
                <skipped type="org.opentest4j.TestAbortedException"><![CDATA[org.opentest4j.TestAbortedException: assumption was not met due to: [the device
              can]
            \tat org.verbena.Some.thing(Some.java:1)
            ]]></skipped>
              </testcase>
              <testcase name="isDisabled" classname="org.verbena.it.lab.OneOnSiwTest" time="0.0">
                <skipped message="for a reason"/>
              </testcase>
            </testsuite>
            """;

    private static final String ALL_SKIPPED = """
            <testsuite name="org.verbena.it.lab.OtherTest">
              <testcase name="" classname="org.verbena.it.lab.OtherTest" time="0.0">
                <skipped message="no QEMU here"/>
              </testcase>
            </testsuite>
            """;

    @TempDir
    Path root;

    private final ByteArrayOutputStream printed = new ByteArrayOutputStream();

    private void write(String path, String report, Instant time) throws IOException {
        Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        Files.writeString(file, report);
        Files.setLastModifiedTime(file, FileTime.from(time));
    }

    private boolean report(String... allowed) throws IOException {
        return SkipReport.report(
                TestReports.read(root, BEGIN),
                new LabTests(3, 2),
                AllowedSkip.parse(List.of(allowed)),
                new PrintStream(printed, true, StandardCharsets.UTF_8));
    }

    private List<String> lines() {
        return printed.toString(StandardCharsets.UTF_8).lines().toList();
    }

    @Test
    void tellsEachSkipOfAllModulesWithItsReason() throws IOException {
        write("deep/in/target/surefire-reports/TEST-x.xml", ABORTED, BEGIN);
        write("it/target/failsafe-reports/TEST-y.xml", ALL_SKIPPED, BEGIN.plusSeconds(60));
        assertThat(report()).isFalse();
        assertThat(lines())
                .containsExactly(
                        "lab: 4 of 5 tests (methods) ran; 2 are left to -Dlab=full, which runs all",
                        "4 tests reported, 3 of them skipped or aborted:",
                        "  NOT LISTED -       OtherTest: no QEMU here",
                        "  NOT LISTED siw0    OneOnSiwTest#isDisabled: for a reason",
                        "  NOT LISTED siw0    OneOnSiwTest$Inner#needs: assumption was not met due to: [the device can]");
    }

    @Test
    void countsInheritedTestsOfEachClassOfTheLab() throws IOException {
        String report = """
                <testsuite name="org.verbena.it.lab.%s">
                  <testcase name="runs[1]" classname="org.verbena.api.Suite$Inner" time="0.1"/>
                  <testcase name="runs[2]" classname="org.verbena.api.Suite$Inner" time="0.1"/>
                </testsuite>
                """;
        write("it/target/failsafe-reports/TEST-x.xml", report.formatted("OneOnRxeTest"), BEGIN);
        write("it/target/failsafe-reports/TEST-y.xml", report.formatted("OneOnSiwTest"), BEGIN);
        write("it/target/surefire-reports/TEST-z.xml", report.replace("it.lab.%s", "api.OtherTest"), BEGIN);
        assertThat(report()).isTrue();
        assertThat(lines())
                .contains(
                        "lab: 2 of 5 tests (methods) ran; 2 are left to -Dlab=full, which runs all",
                        "6 tests reported, 0 of them skipped or aborted");
    }

    @Test
    void letsPassWhatTheListNamesWithThatReason() throws IOException {
        write("a/target/surefire-reports/TEST-x.xml", ABORTED, BEGIN);
        assertThat(report(
                        "# a comment",
                        "",
                        "OneOnSiwTest$Inner#needs | siw0 | [the device can]",
                        "OneOnSiwTest#isDisabled | siw0 | for a reason"))
                .isTrue();
        assertThat(report(
                        "OneOnSiwTest$Inner#needs | siw0 | gcc is missing",
                        "OneOnSiwTest#isDisabled | siw0 | for a reason"))
                .as("another reason")
                .isFalse();
        assertThat(report(
                        "OneOnSiwTest$Inner#needs | rxe0 | [the device can]",
                        "OneOnSiwTest#isDisabled | siw0 | for a reason"))
                .as("another device")
                .isFalse();
        assertThat(report("OneOnSiwTest$Inner#needs | siw0 | [the device can]"))
                .as("one of two")
                .isFalse();
    }

    @Test
    void letsASecondRunOfAClassPassAsTheFirst() throws IOException {
        write(
                "a/target/surefire-reports/TEST-x-nio.xml",
                ABORTED.replace("Test\"", "Test(nio)\"").replace("Inner\"", "Inner(nio)\""),
                BEGIN);
        assertThat(report(
                        "OneOnSiwTest$Inner#needs | siw0 | [the device can]",
                        "OneOnSiwTest#isDisabled | siw0 | for a reason"))
                .isTrue();
    }

    @Test
    void knowsNothingOfFormerRuns() throws IOException {
        write("a/target/surefire-reports/TEST-x.xml", ABORTED, BEGIN.minusSeconds(1));
        write("a/target/other/TEST-x.xml", ABORTED, BEGIN);
        assertThat(report()).isTrue();
        assertThat(lines()).isEmpty();
    }

    @Test
    void refusesLinesWithoutAReason() {
        assertThatThrownBy(() -> AllowedSkip.parse(List.of("OneTest#one | siw0 |")))
                .hasMessage("expected \"test | device | reason\": OneTest#one | siw0 |");
    }

    @Test
    void theCommittedListCanBeRead() throws IOException {
        assertThat(AllowedSkip.parse(Files.readAllLines(Path.of("lab/skips.txt"))))
                .isNotEmpty();
    }
}
