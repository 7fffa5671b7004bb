package org.verbena.it.guest;

import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.TestTag;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.support.descriptor.AbstractTestDescriptor;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestIdentifier;

/** One of Jupiter's tests or containers, as the lab's engine shows it. */
final class MirrorDescriptor extends AbstractTestDescriptor {
    /** How far it has come, as its listener was told. */
    enum Progress {
        WAITING,
        STARTED,
        DONE
    }

    private final Type type;
    private final Set<TestTag> tags;
    private final String legacyName;
    private Progress progress = Progress.WAITING;

    private MirrorDescriptor(
            UniqueId id,
            String displayName,
            String legacyName,
            @Nullable TestSource source,
            Type type,
            Set<TestTag> tags) {
        super(id, displayName, source);
        this.type = type;
        this.tags = Set.copyOf(tags);
        this.legacyName = legacyName;
    }

    static MirrorDescriptor of(UniqueId id, TestIdentifier test) {
        return new MirrorDescriptor(
                id,
                test.getDisplayName(),
                test.getLegacyReportingName(),
                test.getSource().orElse(null),
                test.getType(),
                test.getTags());
    }

    static MirrorDescriptor of(UniqueId id, LabEvent.Registered test, Set<TestTag> tags) {
        TestSource source = null;
        if (!test.methodName().isEmpty()) {
            source = MethodSource.from(test.className(), test.methodName(), test.parameterTypes());
        } else if (!test.className().isEmpty()) {
            source = ClassSource.from(test.className());
        }
        return new MirrorDescriptor(
                id, test.displayName(), test.legacyName(), source, test.container() ? Type.CONTAINER : Type.TEST, tags);
    }

    /** The unique id with another engine's name as its first segment. */
    static UniqueId inEngine(UniqueId root, UniqueId id) {
        UniqueId moved = root;
        for (UniqueId.Segment segment :
                id.getSegments().subList(1, id.getSegments().size())) {
            moved = moved.append(segment);
        }
        return moved;
    }

    String jupiterId() {
        return inEngine(UniqueId.forEngine(Jupiter.ENGINE_ID), getUniqueId()).toString();
    }

    Progress progress() {
        return progress;
    }

    void setProgress(Progress progress) {
        this.progress = progress;
    }

    boolean isClass() {
        return getSource().filter(ClassSource.class::isInstance).isPresent();
    }

    /** Of a class its name, and of anything else what it is displayed as. */
    String className() {
        return getSource()
                .filter(ClassSource.class::isInstance)
                .map(source -> ((ClassSource) source).getClassName())
                .orElse(getDisplayName());
    }

    @Override
    public String getLegacyReportingName() {
        return legacyName;
    }

    @Override
    public Type getType() {
        return type;
    }

    @Override
    public Set<TestTag> getTags() {
        return tags;
    }

    @Override
    public boolean mayRegisterTests() {
        // A container without tests of its own would be pruned; it may be a parameterised test.
        return isContainer() && getChildren().isEmpty();
    }

    static Optional<MirrorDescriptor> find(TestDescriptor root, UniqueId id) {
        return root.findByUniqueId(id)
                .filter(MirrorDescriptor.class::isInstance)
                .map(MirrorDescriptor.class::cast);
    }
}
