package org.verbena.it.guest;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.EngineDiscoveryRequest;
import org.junit.platform.engine.ExecutionRequest;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestEngine;
import org.junit.platform.engine.TestExecutionResult;
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
 * Runs the tests tagged {@value #TAG} in the guest. It reports them under their own names, as they happen; what the guest
 * does not finish fails here with the reason and the end of the guest's console.
 *
 * <p>Its settings are system properties, which the build sets: {@code lab} (see {@link LabMode}), {@code lab.folder}
 * ({@code it/lab}), {@code lab.output} (where the exchange folder and the console go), {@code lab.jvmFlags} and
 * {@code lab.timeLimitSeconds}.
 */
public final class LabTestEngine implements TestEngine {
    /** The engine's id. */
    public static final String ID = "lab";

    static final String TAG = "lab";

    private final LabMode mode;
    private final Guest guest;
    private final Path output;
    private final Consumer<String> notices;

    /** For JUnit, with the settings of the build. */
    public LabTestEngine() {
        this(
                LabMode.parse(System.getProperty("lab", "auto")),
                new QemuGuest(
                        Path.of(System.getProperty("lab.folder", "it/lab")).toAbsolutePath(),
                        Arrays.stream(System.getProperty("lab.jvmFlags", "").split(" "))
                                .filter(flag -> !flag.isBlank())
                                .toList(),
                        Integer.getInteger("lab.timeLimitSeconds", 900)),
                Path.of(System.getProperty("lab.output", "it/target/lab")).toAbsolutePath(),
                System.out::println);
    }

    /**
     * @param mode whether to run
     * @param guest where
     * @param output the folder for what a run leaves
     * @param notices is told why the tests are skipped
     */
    LabTestEngine(LabMode mode, Guest guest, Path output, Consumer<String> notices) {
        this.mode = mode;
        this.guest = guest;
        this.output = output;
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

    private static void mirrorChildren(TestPlan plan, TestIdentifier of, TestDescriptor parent, UniqueId root) {
        for (TestIdentifier child : plan.getChildren(of)) {
            MirrorDescriptor mirror =
                    MirrorDescriptor.of(MirrorDescriptor.inEngine(root, child.getUniqueIdObject()), child);
            parent.addChild(mirror);
            mirrorChildren(plan, child, mirror, root);
        }
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
                    run(replay, root);
                } catch (Guest.UnavailableException e) {
                    if (mode == LabMode.REQUIRE) {
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

    private void run(Replay replay, TestDescriptor root) throws Guest.UnavailableException {
        try {
            Path exchange = output.resolve("exchange");
            deleteRecursively(exchange);
            Files.createDirectories(exchange);
            List<String> tests = new ArrayList<>();
            root.accept(test -> {
                if (test instanceof MirrorDescriptor mirror
                        && test.getChildren().isEmpty()) {
                    tests.add(mirror.jupiterId());
                }
            });
            Files.write(exchange.resolve(GuestMain.TESTS), tests);

            EventLog.Reader log = new EventLog.Reader(exchange.resolve(GuestMain.EVENTS));
            try (Guest.Run running = guest.start(exchange)) {
                boolean alive;
                do {
                    alive = running.isAlive();
                    List<LabEvent> events = log.poll();
                    events.forEach(replay::play);
                    if (replay.allDone()) {
                        break;
                    }
                    if (alive && events.isEmpty()) {
                        Thread.sleep(20);
                    }
                } while (alive);
                AtomicBoolean told = new AtomicBoolean();
                replay.failWhatIsLeft(
                        () -> told.getAndSet(true) ? GuestLostError.further(running) : GuestLostError.first(running));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            replay.failWhatIsLeft(() -> new GuestLostError("the build was interrupted"));
        }
    }

    private static void deleteRecursively(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return;
        }
        try (var files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
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
            return new GuestLostError(
                    run.howItEnded() + " before this test was done; the end of its console (target/lab/console.log):\n"
                            + String.join("\n", run.consoleTail()));
        }

        /** For the others. */
        static GuestLostError further(Guest.Run run) {
            return new GuestLostError(run.howItEnded() + " before this test was done");
        }
    }
}
