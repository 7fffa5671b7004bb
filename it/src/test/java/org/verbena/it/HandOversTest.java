package org.verbena.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaCodeUnitAccess;
import com.tngtech.archunit.core.domain.JavaMethodCall;
import com.tngtech.archunit.core.domain.JavaMethodReference;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.LoopClock;

/**
 * Where work changes threads there may be no memory for the task, or no thread. Somebody has looked at each place in
 * the list for what happens then: the step is kept, or it fails at once, and the next call tries again. A new place
 * fails this test until somebody has.
 */
@Timeout(240)
class HandOversTest {
    private static final Set<String> NAMES = Set.of(
            "execute",
            "submit",
            "schedule",
            "scheduleAtFixedRate",
            "scheduleWithFixedDelay",
            "start",
            "startVirtualThread");

    private static final List<Class<?>> HAND_OVER = List.of(Executor.class, LoopClock.class);

    @Test
    void eachIsInTheList() throws IOException {
        Set<String> found = new TreeSet<>();
        for (JavaClass from : ArchitectureTest.CLASSES) {
            if (from.getPackageName().matches("org\\.verbena\\.(api|transport)(\\..*)?")) {
                for (JavaMethodCall call : from.getMethodCallsFromSelf()) {
                    add(call, found);
                }
                for (JavaMethodReference reference : from.getMethodReferencesFromSelf()) {
                    add(reference, found);
                }
            }
        }
        try (InputStream list = requireNonNull(HandOversTest.class.getResourceAsStream("hand-overs.txt"))) {
            assertThat(found)
                    .hasSizeGreaterThan(80)
                    .containsExactlyElementsOf(
                            new String(list.readAllBytes(), UTF_8).lines().toList());
        }
    }

    private static void add(JavaCodeUnitAccess<?> access, Set<String> found) {
        JavaClass to = access.getTargetOwner();
        String name = access.getTarget().getName();
        boolean isAsync = to.isAssignableTo(CompletableFuture.class) && name.endsWith("Async");
        boolean isThread = to.getName().startsWith("java.lang.Thread"); // or what builds one
        if (isAsync || (NAMES.contains(name) && (isThread || HAND_OVER.stream().anyMatch(to::isAssignableTo)))) {
            found.add(
                    access.getOriginOwner().getName() + "#" + access.getOrigin().getName());
        }
    }
}
