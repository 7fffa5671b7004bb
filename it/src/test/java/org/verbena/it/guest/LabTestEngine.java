package org.verbena.it.guest;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.EngineDiscoveryRequest;
import org.junit.platform.engine.ExecutionRequest;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestEngine;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestTag;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.discovery.ClassNameFilter;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.discovery.PackageNameFilter;
import org.junit.platform.engine.discovery.UniqueIdSelector;
import org.junit.platform.engine.support.descriptor.EngineDescriptor;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;

/**
 * Runs the tests tagged {@value #TAG} in guests. It reports them under their own names, as they happen; what a guest
 * does not finish fails here with the reason and the end of the guest's console.
 *
 * <p>Several guests run at a time, each with a class of tests; whichever is done with one gets the next. What is tagged
 * {@value #FULL_TAG} or {@value #FULL_ANYWHERE_TAG} as well is left out unless the mode is {@link LabMode#FULL} or
 * tests were asked for by name.
 *
 * <p>Its settings are system properties, which the build sets: {@code lab} (see {@link LabMode}), {@code lab.tests}
 * (the names asked for), {@code lab.guests} (how many), {@code lab.folder} ({@code it/lab}), {@code lab.output} (where
 * the exchange folders and the consoles go), {@code lab.jvmFlags} and {@code lab.timeLimitSeconds}.
 */
public final class LabTestEngine implements TestEngine {
    /** The engine's id. */
    public static final String ID = "lab";

    static final String TAG = "lab";

    /** For what repeats a proof with other options, or goes on for minutes. */
    static final String FULL_TAG = "lab-full";

    /** The same, in suites that run on the host as well. */
    static final String FULL_ANYWHERE_TAG = "full";

    /**
     * For a class that takes a minute or more though its tests are few: the order of classes goes by their number else.
     */
    static final String LONG_TAG = "lab-long";

    /**
     * A guest that died is followed by another, for the classes that are left; one that always dies ends after so many.
     */
    private static final int MAX_BOOTS = 3;

    /** How often the event log is looked at: it grows in a file, of which nobody tells. */
    private static final int LOOK_MILLIS = 20;

    private final LabMode mode;
    private final boolean withFull;
    private final int guests;
    private final Guest guest;
    private final Path output;
    private final Path reports;
    private final Consumer<String> notices;

    /** For JUnit, with the settings of the build. */
    public LabTestEngine() {
        this(
                LabMode.parse(System.getProperty("lab", "auto")),
                isNamed(),
                Integer.getInteger("lab.guests", 1),
                new QemuGuest(
                        Path.of(System.getProperty("lab.folder", "it/lab")).toAbsolutePath(),
                        Arrays.stream(System.getProperty("lab.jvmFlags", "").split(" "))
                                .filter(flag -> !flag.isBlank())
                                .toList(),
                        Integer.getInteger("lab.timeLimitSeconds", 900),
                        isNamed() ? null : output().resolve("classes")),
                output(),
                output().resolveSibling("failsafe-reports"),
                System.out::println);
    }

    private static boolean isNamed() {
        return !System.getProperty("lab.tests", "").isBlank();
    }

    private static Path output() {
        return Path.of(System.getProperty("lab.output", "it/target/lab")).toAbsolutePath();
    }

    /**
     * @param mode whether to run
     * @param isNamed whether tests were asked for by name
     * @param guests how many run at a time
     * @param guest where
     * @param output the folder for what a run leaves
     * @param reports where the output of each class goes, as with tests of the host
     * @param notices is told why the tests are skipped
     */
    LabTestEngine(
            LabMode mode,
            boolean isNamed,
            int guests,
            Guest guest,
            Path output,
            Path reports,
            Consumer<String> notices) {
        this.mode = mode;
        this.withFull = isNamed || mode == LabMode.FULL;
        this.guests = guests;
        this.guest = guest;
        this.output = output;
        this.reports = reports;
        this.notices = notices;
    }

    @Override
    public String getId() {
        return ID;
    }

    @Override
    public TestDescriptor discover(EngineDiscoveryRequest request, UniqueId uniqueId) {
        EngineDescriptor root = new EngineDescriptor(uniqueId, "Lab");
        List<DiscoverySelector> selectors = request.getSelectorsByType(DiscoverySelector.class).stream()
                .flatMap(selector -> forJupiter(selector).stream())
                .toList();
        if (selectors.isEmpty()) {
            return root;
        }
        TestPlan plan = Jupiter.launcher()
                .discover(LauncherDiscoveryRequestBuilder.request()
                        .selectors(selectors)
                        .filters(request.getFiltersByType(ClassNameFilter.class).toArray(ClassNameFilter[]::new))
                        .filters(request.getFiltersByType(PackageNameFilter.class)
                                .toArray(PackageNameFilter[]::new))
                        .filters(TagFilter.includeTags(TAG))
                        .build());
        for (TestIdentifier engine : plan.getRoots()) {
            mirrorChildren(plan, engine, root, uniqueId);
        }
        return root;
    }

    /** Unique ids name their engine; all else selects the same in Jupiter. */
    private static List<DiscoverySelector> forJupiter(DiscoverySelector selector) {
        if (!(selector instanceof UniqueIdSelector byId)) {
            return List.of(selector);
        }
        UniqueId id = byId.getUniqueId();
        return id.getEngineId().filter(ID::equals).isPresent()
                ? List.of(DiscoverySelectors.selectUniqueId(
                        MirrorDescriptor.inEngine(UniqueId.forEngine(Jupiter.ENGINE_ID), id)))
                : List.of();
    }

    private void mirrorChildren(TestPlan plan, TestIdentifier of, TestDescriptor parent, UniqueId root) {
        for (TestIdentifier child : plan.getChildren(of)) {
            if (!withFull && isForTheFullRun(child)) {
                continue;
            }
            MirrorDescriptor mirror =
                    MirrorDescriptor.of(MirrorDescriptor.inEngine(root, child.getUniqueIdObject()), child);
            mirrorChildren(plan, child, mirror, root);
            // A class all of whose tests were left out is left out too.
            if (plan.getChildren(child).isEmpty() || !mirror.getChildren().isEmpty()) {
                parent.addChild(mirror);
            }
        }
    }

    static boolean isForTheFullRun(TestIdentifier test) {
        return test.getTags().contains(TestTag.create(FULL_TAG))
                || test.getTags().contains(TestTag.create(FULL_ANYWHERE_TAG));
    }

    @Override
    public void execute(ExecutionRequest request) {
        TestDescriptor root = request.getRootTestDescriptor();
        Replay replay = new Replay(root, request.getEngineExecutionListener());
        request.getEngineExecutionListener().executionStarted(root);
        if (!root.getChildren().isEmpty()) {
            if (mode == LabMode.OFF) {
                replay.skipAll("the lab is off (-Dlab=off)");
            } else {
                try {
                    guest.prepare();
                    deleteFormerRuns();
                    run(replay, root);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                } catch (Guest.UnavailableException e) {
                    if (mode.isRequired()) {
                        replay.failAll(new LabUnavailableError(e.getMessage()));
                    } else {
                        notices.accept("lab: skipped: " + e.getMessage());
                        replay.skipAll(String.valueOf(e.getMessage()));
                    }
                }
            }
        }
        request.getEngineExecutionListener().executionFinished(root, TestExecutionResult.successful());
    }

    /**
     * What there is to run: each class with its nested ones, the longest first, so that none of them is alone at the
     * end.
     */
    private static Queue<MirrorDescriptor> classes(TestDescriptor root) {
        return root.getChildren().stream()
                .map(MirrorDescriptor.class::cast)
                .sorted(Comparator.comparing(
                                (MirrorDescriptor each) -> each.getTags().contains(TestTag.create(LONG_TAG)))
                        .thenComparing(each -> tests(each).size())
                        .reversed())
                .collect(Collectors.toCollection(ConcurrentLinkedQueue::new));
    }

    private static List<String> tests(MirrorDescriptor of) {
        List<String> tests = new ArrayList<>();
        of.accept(test -> {
            if (test instanceof MirrorDescriptor mirror && test.getChildren().isEmpty()) {
                tests.add(mirror.jupiterId());
            }
        });
        return tests;
    }

    private void run(Replay replay, TestDescriptor root) {
        Queue<MirrorDescriptor> waiting = classes(root);
        int count = Math.min(guests, waiting.size());
        List<Thread> followers = new ArrayList<>();
        for (int i = 1; i <= count; i++) {
            Path folder = output.resolve("guest-" + i);
            followers.add(
                    Thread.ofPlatform().name("lab guest " + i).start(() -> follow(replay, waiting, folder, count)));
        }
        try {
            for (Thread follower : followers) {
                follower.join();
            }
        } catch (InterruptedException e) {
            followers.forEach(Thread::interrupt);
            Thread.currentThread().interrupt();
        }
        waiting.forEach(left -> replay.failWhatIsLeft(
                left, () -> new GuestLostError("no guest is left to run this: see the tests before")));
    }

    /** Runs classes in a guest, and in another when that died, until there are none left. */
    private void follow(Replay replay, Queue<MirrorDescriptor> waiting, Path folder, int count) {
        try {
            for (int boot = 1; boot <= MAX_BOOTS && !waiting.isEmpty(); boot++) {
                Path exchange = folder.resolve(boot == 1 ? "exchange" : "exchange-" + boot);
                Files.createDirectories(exchange);
                EventLog.Reader log = new EventLog.Reader(exchange.resolve(GuestMain.EVENTS));
                try (Guest.Run running = guest.start(exchange, count == 1)) {
                    MirrorDescriptor next = waiting.poll();
                    for (int batch = 0; next != null; batch++) {
                        if (!run(next, batch, running, exchange, log, replay)) {
                            break;
                        }
                        next = waiting.poll();
                    }
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns whether the guest can run more. */
    private boolean run(
            MirrorDescriptor tests, int batch, Guest.Run running, Path exchange, EventLog.Reader log, Replay replay)
            throws IOException {
        Path printed = reports.resolve(tests.className() + "-output.txt");
        Files.deleteIfExists(printed);
        Path complete = exchange.resolve("next");
        Files.write(complete, tests(tests));
        Files.move(complete, exchange.resolve(GuestMain.tests(batch)), StandardCopyOption.ATOMIC_MOVE);
        boolean alive;
        do {
            alive = running.isAlive();
            List<LabEvent> events = log.poll();
            append(events, printed);
            events.forEach(replay::play);
            if (!events.isEmpty() && events.getLast().kind() == LabEvent.Kind.BATCH_DONE) {
                // What the guest did not know of, if anything.
                replay.failWhatIsLeft(tests, () -> new GuestLostError("the guest did not run this test"));
                return true;
            }
            if (alive && events.isEmpty()) {
                try {
                    Thread.sleep(LOOK_MILLIS);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    replay.failWhatIsLeft(tests, () -> new GuestLostError("the build was interrupted"));
                    return false;
                }
            }
        } while (alive);
        AtomicBoolean told = new AtomicBoolean();
        replay.failWhatIsLeft(
                tests, () -> told.getAndSet(true) ? GuestLostError.further(running) : GuestLostError.first(running));
        return false;
    }

    private static void append(List<LabEvent> events, Path printed) throws IOException {
        StringBuilder text = new StringBuilder();
        for (LabEvent event : events) {
            if (event.kind() == LabEvent.Kind.OUTPUT) {
                text.append(event.text());
            }
        }
        if (!text.isEmpty()) {
            Files.createDirectories(printed.getParent());
            Files.writeString(printed, text, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        }
    }

    private void deleteFormerRuns() throws IOException {
        Files.createDirectories(output);
        try (DirectoryStream<Path> folders = Files.newDirectoryStream(output, "guest-*")) {
            for (Path folder : folders) {
                try (Stream<Path> files = Files.walk(folder)) {
                    for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                        Files.delete(file);
                    }
                }
            }
        }
    }

    /** The lab is required and cannot be. */
    static final class LabUnavailableError extends Error {
        private static final long serialVersionUID = 1;

        LabUnavailableError(@Nullable String reason) {
            super("the lab cannot start: " + reason, null, false, false);
        }
    }

    /** The guest ended before its tests did. */
    static final class GuestLostError extends Error {
        private static final long serialVersionUID = 1;

        private GuestLostError(String message) {
            super(message, null, false, false);
        }

        /** For the first test lost, with all that is known. */
        static GuestLostError first(Guest.Run run) {
            return new GuestLostError(run.howItEnded() + " before this test was done; the end of its console:\n"
                    + String.join("\n", run.consoleTail()));
        }

        /** For the others. */
        static GuestLostError further(Guest.Run run) {
            return new GuestLostError(run.howItEnded() + " before this test was done");
        }
    }
}
