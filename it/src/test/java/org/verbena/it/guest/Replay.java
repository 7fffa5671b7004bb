package org.verbena.it.guest;

import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.platform.engine.EngineExecutionListener;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.reporting.ReportEntry;
import org.verbena.it.guest.MirrorDescriptor.Progress;

/**
 * Reports on the host what happened in the guests. Every test found on the host comes to an end, whatever the guests
 * say. Each of the threads that follow a guest may call; what is reported is of one test class of its own.
 */
final class Replay {
    private final TestDescriptor root;
    private final EngineExecutionListener listener;

    Replay(TestDescriptor root, EngineExecutionListener listener) {
        this.root = root;
        this.listener = listener;
    }

    synchronized void play(LabEvent event) {
        switch (event.kind()) {
            case OUTPUT, BATCH_DONE -> {}
            case REGISTERED -> register(event);
            default -> {
                // Jupiter's own root has no mirror.
                MirrorDescriptor test = find(event.id());
                if (test != null) {
                    play(event, test);
                }
            }
        }
    }

    private void play(LabEvent event, MirrorDescriptor test) {
        switch (event.kind()) {
            case STARTED -> start(test);
            case SKIPPED -> skip(test, event.text());
            case SUCCESSFUL -> finish(test, TestExecutionResult.successful());
            case ABORTED ->
                finish(
                        test,
                        TestExecutionResult.aborted(
                                event.failure() == null ? null : event.failure().toAborted()));
            case FAILED ->
                finish(
                        test,
                        TestExecutionResult.failed(
                                event.failure() == null ? null : event.failure().toThrowable()));
            case REPORTED -> listener.reportingEntryPublished(test, ReportEntry.from("lab", event.text()));
            case OUTPUT, BATCH_DONE, REGISTERED -> throw new IllegalArgumentException(event.toString());
        }
    }

    private void register(LabEvent event) {
        LabEvent.Registered registered = event.test();
        MirrorDescriptor parent = registered == null ? null : find(registered.parentId());
        if (registered != null && parent != null && find(event.id()) == null) {
            MirrorDescriptor test = MirrorDescriptor.of(hostId(event.id()), registered, parent.getTags());
            parent.addChild(test);
            listener.dynamicTestRegistered(test);
        }
    }

    private UniqueId hostId(String jupiterId) {
        return MirrorDescriptor.inEngine(root.getUniqueId(), UniqueId.parse(jupiterId));
    }

    private @Nullable MirrorDescriptor find(String jupiterId) {
        return MirrorDescriptor.find(root, hostId(jupiterId)).orElse(null);
    }

    private void start(MirrorDescriptor test) {
        if (test.progress() == Progress.WAITING) {
            test.setProgress(Progress.STARTED);
            listener.executionStarted(test);
        }
    }

    private void skip(MirrorDescriptor test, String reason) {
        if (test.progress() == Progress.WAITING) {
            test.setProgress(Progress.DONE);
            listener.executionSkipped(test, reason);
        }
    }

    private void finish(MirrorDescriptor test, TestExecutionResult result) {
        if (test.progress() == Progress.STARTED) {
            test.setProgress(Progress.DONE);
            listener.executionFinished(test, result);
        }
    }

    /** Skips each class. */
    synchronized void skipAll(String reason) {
        children(root).forEach(test -> skip(test, reason));
    }

    /** Fails each class, once for all the tests in it. */
    synchronized void failAll(Throwable cause) {
        for (MirrorDescriptor test : children(root)) {
            start(test);
            finish(test, TestExecutionResult.failed(cause));
        }
    }

    /** Fails each test of this that has neither ended nor been skipped, nor is in a container that has. */
    synchronized void failWhatIsLeft(MirrorDescriptor test, Supplier<? extends Throwable> cause) {
        if (test.progress() == Progress.DONE) {
            return;
        }
        start(test);
        List<MirrorDescriptor> children = children(test);
        boolean childToBlame = children.stream().anyMatch(child -> child.progress() != Progress.DONE);
        children.forEach(child -> failWhatIsLeft(child, cause));
        finish(test, childToBlame ? TestExecutionResult.successful() : TestExecutionResult.failed(cause.get()));
    }

    private static List<MirrorDescriptor> children(TestDescriptor of) {
        return of.getChildren().stream().map(MirrorDescriptor.class::cast).toList();
    }
}
