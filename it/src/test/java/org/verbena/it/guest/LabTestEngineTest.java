package org.verbena.it.guest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.testkit.engine.EngineExecutionResults;
import org.junit.platform.testkit.engine.EngineTestKit;
import org.junit.platform.testkit.engine.Event;
import org.verbena.it.guest.LabEvent.Kind;
import org.verbena.transport.spi.Patience;

/** The engine, with a JVM of its own or a pretended guest in the place of QEMU. */
@Timeout(240)
class LabTestEngineTest {
    @TempDir
    Path output;

    private final List<String> notices = new ArrayList<>();

    @Test
    void reportsTheGuestsTestsByTheirOwnNamesAndOutcomes() {
        assertThat(outcomes(run(LabMode.REQUIRE, new JvmGuest(), selectClass(AllOutcomes.class))))
                .containsExactlyInAnyOrderEntriesOf(Map.of(
                        "passes()", "SUCCESSFUL",
                        "fails()", "FAILED",
                        "assumes()", "ABORTED",
                        "isDisabled()", "SKIPPED",
                        "hasParameters(int)[1]", "SUCCESSFUL",
                        "hasParameters(int)[2]", "FAILED"));
    }

    @Test
    void invocationsAreTheirMethods() {
        EngineExecutionResults results = run(LabMode.REQUIRE, new JvmGuest(), selectClass(AllOutcomes.class));
        assertThat(results.testEvents().succeeded().stream()
                        .map(event -> event.getTestDescriptor().getSource().orElseThrow())
                        .map(MethodSource.class::cast)
                        .map(MethodSource::getMethodName))
                .containsExactlyInAnyOrder("passes", "hasParameters");
    }

    @Test
    void failuresKeepMessageTraceAndCause() {
        EngineExecutionResults results = run(LabMode.REQUIRE, new JvmGuest(), selectMethod(AllOutcomes.class, "fails"));
        Throwable thrown = onlyFailure(results);
        assertThat(thrown).hasToString("java.lang.IllegalStateException: broken");
        assertThat(thrown.getStackTrace()[0].getMethodName()).isEqualTo("fails");
        assertThat(thrown.getCause()).hasToString("java.io.IOException: deeper");
    }

    @Test
    void failedAssertionsStayAssertions() {
        EngineExecutionResults results =
                run(LabMode.REQUIRE, new JvmGuest(), selectMethod(AllOutcomes.class, "hasParameters", "int"));
        assertThat(onlyFailure(results)).isInstanceOf(AssertionError.class);
    }

    @Test
    void classesThatCannotBeSetUpFail() {
        EngineExecutionResults results = run(LabMode.REQUIRE, new JvmGuest(), selectClass(NeverSetUp.class));
        assertThat(results.containerEvents().failed().count()).isEqualTo(1);
        assertThat(results.testEvents().count()).isZero();
    }

    @Test
    void testsLostWithTheGuestFailWithTheConsole() {
        EngineExecutionResults results = run(LabMode.REQUIRE, new JvmGuest(), selectClass(Halts.class));
        assertThat(outcomes(results))
                .containsExactlyInAnyOrderEntriesOf(
                        Map.of("aPasses()", "SUCCESSFUL", "bHalts()", "FAILED", "cComesAfter()", "FAILED"));
        assertThat(messageOf(results, "bHalts()"))
                .contains("ended with status 3 before this test was done")
                .contains("last words on the console");
        assertThat(messageOf(results, "cComesAfter()")).contains("ended with status 3 before this test was done");
    }

    @Test
    void guestsThatHangAreEndedAndPrintTheirThreads() {
        EngineExecutionResults results = run(LabMode.REQUIRE, new JvmGuest(), selectClass(Hangs.class));
        assertThat(messageOf(results, "hangs()"))
                .contains("ended with status " + GuestMain.SILENCE_STATUS)
                .contains("Hangs.hangs(");
    }

    /** A test that is interrupted at its time limit is reported as any other, and those after it run. */
    @Test
    void whatAnInterruptedThreadPrintsEndsNoGuest() throws IOException {
        EngineExecutionResults results = run(LabMode.REQUIRE, new JvmGuest(), selectClass(IsInterrupted.class));
        assertThat(outcomes(results))
                .containsExactlyInAnyOrderEntriesOf(Map.of("aPrints()", "SUCCESSFUL", "bComesAfter()", "SUCCESSFUL"));
        assertThat(output.resolve("reports").resolve(IsInterrupted.class.getName() + "-output.txt"))
                .hasContent("this is printed");
    }

    @Test
    void whatAClassPrintsIsBesideItsReport() throws IOException {
        run(LabMode.REQUIRE, new JvmGuest(), selectClass(Passes.class));
        assertThat(output.resolve("reports").resolve(Passes.class.getName() + "-output.txt"))
                .hasContent("this is printed");
    }

    @Test
    void classesAreSharedAmongGuests() {
        EngineExecutionResults results = run(
                LabMode.REQUIRE,
                false,
                2,
                new JvmGuest(),
                selectClass(WaitsForTheOther.class),
                selectClass(TheOther.class));
        assertThat(results.testEvents().failed().count()).isZero();
        assertThat(outcomes(results)).containsOnlyKeys("meetsTheOther()", "isMet()");
    }

    @Test
    void anotherGuestRunsWhatTheFirstDidNotComeTo() {
        EngineExecutionResults results =
                run(LabMode.REQUIRE, false, 1, new JvmGuest(), selectClass(Halts.class), selectClass(Passes.class));
        assertThat(outcomes(results))
                .containsEntry("bHalts()", "FAILED")
                .containsEntry("comesAfterHalts()", "SUCCESSFUL");
    }

    @Test
    void leavesOutWhatIsForTheFullRun() {
        assertThat(outcomes(run(LabMode.REQUIRE, new JvmGuest(), selectClass(PartlyFull.class))))
                .containsOnlyKeys("isEveryday()");
        assertThat(outcomes(run(LabMode.FULL, new JvmGuest(), selectClass(PartlyFull.class))))
                .containsOnlyKeys("isEveryday()", "isFull()", "isFullAnywhere()");
        assertThat(outcomes(run(LabMode.REQUIRE, true, 1, new JvmGuest(), selectClass(PartlyFull.class))))
                .as("asked for by name")
                .containsOnlyKeys("isEveryday()", "isFull()", "isFullAnywhere()");
    }

    @Test
    void classesThatAreForTheFullRunAloneStartNoGuest() {
        EngineExecutionResults results = run(LabMode.REQUIRE, new NoGuest(), selectClass(AllFull.class));
        assertThat(results.testEvents().count()).isZero();
        assertThat(results.allEvents().failed().count()).isZero();
    }

    @Test
    void testsTheGuestForgotFail() {
        EngineExecutionResults results = run(
                LabMode.REQUIRE,
                new PretendedGuest(List.of(LabEvent.of(Kind.BATCH_DONE, "", ""))),
                selectMethod(AllOutcomes.class, "passes"));
        assertThat(messageOf(results, "passes()")).contains("did not run this test");
    }

    @Test
    void deadGuestsFailEveryTest() {
        EngineExecutionResults results = run(LabMode.AUTO, new PretendedGuest(List.of()), selectClass(Halts.class));
        assertThat(outcomes(results).values()).containsExactly("FAILED", "FAILED", "FAILED");
    }

    @Test
    void skipsWithTheReasonWhereThereIsNoLab() {
        EngineExecutionResults results = run(LabMode.AUTO, new NoGuest(), selectClass(AllOutcomes.class));
        assertThat(results.allEvents().skipped().stream().map(event -> event.getRequiredPayload(String.class)))
                .containsExactly("no QEMU here");
        assertThat(results.allEvents().failed().count()).isZero();
        assertThat(notices).containsExactly("lab: skipped: no QEMU here");
    }

    @Test
    void failsWithTheReasonWhereTheLabIsRequired() {
        EngineExecutionResults results = run(LabMode.REQUIRE, new NoGuest(), selectClass(AllOutcomes.class));
        assertThat(onlyFailure(results)).hasMessage("the lab cannot start: no QEMU here");
    }

    @Test
    void startsNoGuestWhenOff() {
        Guest never = (exchange, isAlone) -> {
            throw new AssertionError("started");
        };
        EngineExecutionResults results = run(LabMode.OFF, never, selectClass(AllOutcomes.class));
        assertThat(results.allEvents().skipped().count()).isEqualTo(1);
    }

    @Test
    void leavesOtherTestsToJupiter() {
        EngineExecutionResults results = run(LabMode.REQUIRE, new NoGuest(), selectClass(NotForTheLab.class));
        assertThat(results.allEvents().failed().count()).isZero();
        assertThat(results.testEvents().count()).isZero();
    }

    @Test
    void unknownModesAreRefused() {
        assertThatThrownBy(() -> LabMode.parse("on")).hasMessage("-Dlab=on: use auto, require, full or off");
    }

    @Test
    void halfWrittenEventsWaitForTheRest() throws IOException {
        Path whole = output.resolve("whole");
        try (EventLog.Writer writer = new EventLog.Writer(whole)) {
            writer.write(LabEvent.of(Kind.STARTED, "a", ""));
            writer.write(LabEvent.of(Kind.SKIPPED, "b", "a reason"));
        }
        byte[] bytes = Files.readAllBytes(whole);
        Path growing = output.resolve("growing");
        EventLog.Reader reader = new EventLog.Reader(growing);
        assertThat(reader.poll()).isEmpty();
        int seen = 0;
        for (int length = 0; length <= bytes.length; length++) {
            Files.write(growing, java.util.Arrays.copyOf(bytes, length));
            for (LabEvent event : reader.poll()) {
                assertThat(event.id()).isEqualTo(seen++ == 0 ? "a" : "b");
            }
        }
        assertThat(seen).isEqualTo(2);
    }

    private EngineExecutionResults run(LabMode mode, Guest guest, DiscoverySelector selector) {
        return run(mode, false, 1, guest, selector);
    }

    private EngineExecutionResults run(
            LabMode mode, boolean isNamed, int guests, Guest guest, DiscoverySelector... selectors) {
        return EngineTestKit.engine(new LabTestEngine(
                        mode, isNamed, guests, guest, output, output.resolve("reports"), notices::add))
                .selectors(selectors)
                .execute();
    }

    /** The tests' names for reports, and what became of them. */
    private static Map<String, String> outcomes(EngineExecutionResults results) {
        Map<String, String> outcomes = new TreeMap<>();
        for (Event event : results.testEvents().finished().list()) {
            outcomes.put(
                    event.getTestDescriptor().getLegacyReportingName(),
                    event.getRequiredPayload(TestExecutionResult.class)
                            .getStatus()
                            .toString());
        }
        results.testEvents()
                .skipped()
                .list()
                .forEach(event -> outcomes.put(event.getTestDescriptor().getLegacyReportingName(), "SKIPPED"));
        return outcomes;
    }

    private static Throwable onlyFailure(EngineExecutionResults results) {
        List<Event> failed = results.allEvents().failed().list();
        assertThat(failed).hasSize(1);
        return thrown(failed.getFirst());
    }

    private static String messageOf(EngineExecutionResults results, String test) {
        return results.testEvents().failed().stream()
                .filter(event ->
                        event.getTestDescriptor().getLegacyReportingName().equals(test))
                .map(event -> thrown(event).getMessage())
                .findFirst()
                .orElseThrow(() -> new AssertionError(test + " did not fail"));
    }

    private static Throwable thrown(Event event) {
        return event.getRequiredPayload(TestExecutionResult.class)
                .getThrowable()
                .orElseThrow();
    }

    /** Runs the guest's side in a JVM on this machine. */
    private static final class JvmGuest implements Guest {
        @Override
        public Run start(Path exchange, boolean isAlone) {
            Path console = exchange.resolve("printed");
            try {
                Process process = new ProcessBuilder(
                                System.getProperty("java.home") + File.separator + "bin" + File.separator + "java",
                                "-XX:TieredStopAtLevel=1",
                                "-Dlab.meetingPlace=" + exchange.getParent().getParent(),
                                "-cp",
                                System.getProperty("java.class.path"),
                                GuestMain.class.getName(),
                                exchange.toString())
                        .redirectErrorStream(true)
                        .redirectOutput(console.toFile())
                        .start();
                return new JvmRun(process, console);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private record JvmRun(Process process, Path console) implements Guest.Run {
        @Override
        public boolean isAlive() {
            return process.isAlive();
        }

        @Override
        public String howItEnded() {
            return "the JVM ended with status " + process.exitValue();
        }

        @Override
        public List<String> consoleTail() {
            try {
                return Files.readAllLines(console);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public void close() {
            process.destroyForcibly().onExit().join();
        }
    }

    /** Has written its events before it can be asked, and is dead. */
    private record PretendedGuest(List<LabEvent> events) implements Guest, Guest.Run {
        @Override
        public Run start(Path exchange, boolean isAlone) {
            try (EventLog.Writer log = new EventLog.Writer(exchange.resolve(GuestMain.EVENTS))) {
                for (LabEvent event : events) {
                    log.write(event);
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return this;
        }

        @Override
        public boolean isAlive() {
            return false;
        }

        @Override
        public String howItEnded() {
            return "it ended";
        }

        @Override
        public List<String> consoleTail() {
            return List.of();
        }

        @Override
        public void close() {}
    }

    /** There is none. */
    private static final class NoGuest implements Guest {
        @Override
        public void prepare() throws UnavailableException {
            throw new UnavailableException("no QEMU here");
        }

        @Override
        public Run start(Path exchange, boolean isAlone) {
            throw new AssertionError("started");
        }
    }

    @Tag("lab")
    static class AllOutcomes {
        @Test
        void passes() {}

        @Test
        void fails() {
            throw new IllegalStateException("broken", new IOException("deeper"));
        }

        @Test
        void assumes() {
            Assumptions.abort("not here");
        }

        @Test
        @Disabled("for a reason")
        void isDisabled() {}

        @ParameterizedTest
        @ValueSource(ints = {1, 2})
        void hasParameters(int value) {
            assertThat(value).isEqualTo(1);
        }
    }

    @Tag("lab")
    static class NeverSetUp {
        @BeforeAll
        static void setUp() {
            throw new IllegalStateException("no set-up");
        }

        @Test
        void isNeverReached() {}
    }

    @Tag("lab")
    @TestMethodOrder(MethodOrderer.MethodName.class)
    static class Halts {
        @Test
        void aPasses() {}

        @Test
        void bHalts() throws IOException {
            // As a crashing JVM prints, past System.out.
            try (var console = new java.io.FileOutputStream(java.io.FileDescriptor.out)) {
                console.write("last words on the console\n".getBytes(java.nio.charset.StandardCharsets.US_ASCII));
            }
            Runtime.getRuntime().halt(3);
        }

        @Test
        void cComesAfter() {}
    }

    @Tag("lab")
    @TestMethodOrder(MethodOrderer.MethodName.class)
    static class IsInterrupted {
        @Test
        void aPrints() {
            Thread.currentThread().interrupt();
            System.out.println("this is printed");
            if (!Thread.interrupted()) {
                throw new IllegalStateException("it is not interrupted any more");
            }
        }

        @Test
        void bComesAfter() {}
    }

    @Tag("lab")
    static class Hangs {
        @Test
        void hangs() throws InterruptedException {
            // Not before: how long the JVM needs until here is the machine's affair.
            System.setProperty("lab.silenceLimitSeconds", "1");
            new java.util.concurrent.CountDownLatch(1).await();
        }
    }

    /**
     * Each of two passes only while the other runs, in a guest beside it; they meet in the folder that all guests here
     * share.
     */
    private static void meet(String own, String other) throws IOException, InterruptedException {
        Path here = Path.of(System.getProperty("lab.meetingPlace"));
        Files.createFile(here.resolve(own));
        Patience.until("the other comes", () -> Files.exists(here.resolve(other)));
    }

    @Tag("lab")
    @Timeout(240)
    static class WaitsForTheOther {
        @Test
        void meetsTheOther() throws Exception {
            meet("one", "other");
        }
    }

    @Tag("lab")
    @Timeout(240)
    static class TheOther {
        @Test
        void isMet() throws Exception {
            meet("other", "one");
        }
    }

    @Tag("lab")
    static class Passes {
        @Test
        void comesAfterHalts() {
            System.out.println("this is printed");
        }
    }

    @Tag("lab")
    static class PartlyFull {
        @Test
        void isEveryday() {}

        @Test
        @Tag("lab-full")
        void isFull() {}

        @Test
        @Tag("full")
        void isFullAnywhere() {}
    }

    @Tag("lab")
    @Tag("lab-full")
    static class AllFull {
        @Test
        void isFull() {}
    }

    static class NotForTheLab {
        @Test
        void passes() {}
    }
}
