package org.verbena.it.guest;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.reporting.ReportEntry;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.verbena.it.guest.LabEvent.Kind;
import org.verbena.times.ClassTimes;

/**
 * Runs tests with Jupiter in the guest and writes what happens into the event log.
 *
 * <p>Its argument is the exchange folder. The host puts one batch of tests after the other there, each as soon as the
 * one before is done: {@link #tests(int)} names the file, which has their unique ids, a line each; {@value #EVENTS} is
 * the log. The host ends the guest when there is no more to do.
 */
final class GuestMain {
    static final String EVENTS = "events";

    /** How often the folder is looked into for the next batch: the host cannot wake the guest. */
    private static final Duration LOOK_INTERVAL = Duration.ofMillis(20);

    /**
     * Without an event for so long, all threads' stacks are printed and the run ends. No test waits so long. The
     * property {@code lab.silenceLimitSeconds} changes it, also while a test runs.
     */
    private static Duration silenceLimit() {
        return Duration.ofSeconds(Integer.getInteger("lab.silenceLimitSeconds", 400));
    }

    static final int SILENCE_STATUS = 97;

    private GuestMain() {}

    /**
     * The name of a batch's file, which comes into the folder complete.
     *
     * @param batch its number, from 0 on
     */
    static String tests(int batch) {
        return "tests-" + batch;
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        Path exchange = Path.of(args[0]);
        EventLog.Writer log = new EventLog.Writer(exchange.resolve(EVENTS));
        Recorder recorder = new Recorder(log);
        PrintStream console = System.out;
        System.setOut(new PrintStream(new LineOutput(recorder), true, StandardCharsets.UTF_8));
        System.setErr(System.out);
        Thread.ofPlatform().daemon().name("silence watch").start(() -> endWhenSilent(recorder, console));
        for (int batch = 0; ; batch++) {
            Path tests = exchange.resolve(tests(batch));
            while (!Files.exists(tests)) {
                TimeUnit.NANOSECONDS.sleep(LOOK_INTERVAL.toNanos());
            }
            recorder.begin();
            LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                    .selectors(Files.readAllLines(tests).stream()
                            .map(DiscoverySelectors::selectUniqueId)
                            .toList())
                    .build();
            Jupiter.launcher().execute(request, recorder, new ClassTimes());
            recorder.end();
        }
    }

    private static void endWhenSilent(Recorder recorder, PrintStream console) {
        try {
            while (!recorder.isRunning
                    || System.nanoTime() - recorder.lastEventNanos
                            < silenceLimit().toNanos()) {
                TimeUnit.SECONDS.sleep(1);
            }
        } catch (InterruptedException e) {
            return;
        }
        console.printf(
                "lab: nothing happened for %d s; the threads are:%n",
                silenceLimit().toSeconds());
        for (Map.Entry<Thread, StackTraceElement[]> thread :
                Thread.getAllStackTraces().entrySet()) {
            console.println(thread.getKey());
            for (StackTraceElement element : thread.getValue()) {
                console.println("    at " + element);
            }
        }
        console.flush();
        Runtime.getRuntime().halt(SILENCE_STATUS);
    }

    /** Turns what Jupiter reports into events. */
    private static final class Recorder implements TestExecutionListener {
        private final EventLog.Writer log;

        /** Written by whichever thread reports, read by the silence watch. */
        private volatile long lastEventNanos = System.nanoTime();

        /** Whether a batch is under way; written by the main thread, read by the silence watch. */
        private volatile boolean isRunning;

        Recorder(EventLog.Writer log) {
            this.log = log;
        }

        void begin() {
            lastEventNanos = System.nanoTime();
            isRunning = true;
        }

        void end() {
            isRunning = false;
            record(LabEvent.of(Kind.BATCH_DONE, "", ""));
        }

        void record(LabEvent event) {
            lastEventNanos = System.nanoTime();
            try {
                log.write(event);
            } catch (IOException e) {
                // Without the log the host learns nothing of the tests: it reports them as lost.
                Runtime.getRuntime().halt(70);
            }
        }

        @Override
        public void dynamicTestRegistered(TestIdentifier test) {
            TestSource source = test.getSource().orElse(null);
            String className = "";
            String methodName = "";
            String parameterTypes = "";
            if (source instanceof MethodSource method) {
                className = method.getClassName();
                methodName = method.getMethodName();
                parameterTypes = method.getMethodParameterTypes();
            } else if (source instanceof ClassSource inClass) {
                className = inClass.getClassName();
            }
            LabEvent.Registered registered = new LabEvent.Registered(
                    test.getParentId().orElse(""),
                    test.getDisplayName(),
                    test.getLegacyReportingName(),
                    test.isContainer(),
                    className,
                    methodName,
                    parameterTypes == null ? "" : parameterTypes);
            record(new LabEvent(Kind.REGISTERED, test.getUniqueId(), "", registered, null));
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            record(LabEvent.of(Kind.STARTED, test.getUniqueId(), ""));
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            record(LabEvent.of(Kind.SKIPPED, test.getUniqueId(), reason));
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            Kind kind = switch (result.getStatus()) {
                case SUCCESSFUL -> Kind.SUCCESSFUL;
                case ABORTED -> Kind.ABORTED;
                case FAILED -> Kind.FAILED;
            };
            GuestFailure failure = result.getThrowable().map(GuestFailure::of).orElse(null);
            record(new LabEvent(kind, test.getUniqueId(), "", null, failure));
        }

        @Override
        public void reportingEntryPublished(TestIdentifier test, ReportEntry entry) {
            entry.getKeyValuePairs()
                    .forEach((key, value) ->
                            record(LabEvent.of(Kind.REPORTED, test.getUniqueId(), key + " = " + value)));
        }

        @Override
        public void testPlanExecutionFinished(TestPlan testPlan) {
            System.out.flush();
        }
    }

    /** Standard output as events, a line each: small writes over the exchange folder are slow. */
    private static final class LineOutput extends OutputStream {
        private static final int MAX_LINE_BYTES = 64 * 1024;

        private final Recorder recorder;
        private final ByteArrayOutputStream line = new ByteArrayOutputStream();

        LineOutput(Recorder recorder) {
            this.recorder = recorder;
        }

        @Override
        public synchronized void write(int b) {
            line.write(b);
            if (b == '\n' || line.size() >= MAX_LINE_BYTES) {
                recorder.record(LabEvent.of(Kind.OUTPUT, "", line.toString(StandardCharsets.UTF_8)));
                line.reset();
            }
        }
    }
}
