package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Every public method of the bindings is called: by a test, by another module, or on the way from one of those. A
 * method that nothing calls has never been seen to work.
 */
@Timeout(240)
class BindingsAreUsedTest {
    /** How deep a module's compiled classes are below the root: {@code transport/verbs/target/test-classes}. */
    private static final int DEPTH = 4;

    /** What compilers and libraries call. */
    private static final Set<String> IMPLIED = Set.of("equals", "hashCode", "toString", "values", "valueOf");

    private final Set<JavaCodeUnit> reached = new HashSet<>();
    private final Deque<JavaCodeUnit> next = new ArrayDeque<>();

    private static JavaClasses classes() throws Exception {
        try (Stream<Path> folders = Files.walk(Path.of(".."), DEPTH)) {
            List<Path> compiled = folders.filter(
                            folder -> folder.endsWith("target/classes") || folder.endsWith("target/test-classes"))
                    .toList();
            assertThat(compiled)
                    .contains(Path.of("../verbs/target/test-classes"), Path.of("../cm/target/test-classes"));
            // Reading what the libraries have takes most of the time, and calls none of this.
            return ArchConfiguration.withThreadLocalScope(configuration -> {
                configuration.setResolveMissingDependenciesFromClassPath(false);
                return new ClassFileImporter().importPaths(compiled);
            });
        }
    }

    private static boolean isBinding(JavaClass type) {
        String name = type.getPackageName();
        boolean ofTests = type.getSource().orElseThrow().getUri().toString().contains("/test-classes/");
        return !ofTests && (name.startsWith("org.verbena.verbs") || name.startsWith("org.verbena.cm"));
    }

    @Test
    void everyPublicMethodIsCalled() throws Exception {
        JavaClasses classes = classes();
        for (JavaClass type : classes) {
            if (!isBinding(type)) {
                type.getCodeUnits().forEach(this::reach);
            } else {
                type.getMethods().stream()
                        .filter(method -> IMPLIED.contains(method.getName()))
                        .forEach(this::reach);
            }
        }
        while (!next.isEmpty()) {
            follow(next.pop());
        }
        Set<String> dead = new TreeSet<>();
        int methods = 0;
        for (JavaClass type : classes) {
            if (isBinding(type) && isExported(type)) {
                for (JavaMethod method : type.getMethods()) {
                    if (isPublished(method)) {
                        methods++;
                        if (!reached.contains(method)) {
                            dead.add(method.getFullName());
                        }
                    }
                }
            }
        }
        assertThat(methods).isGreaterThan(500);
        assertThat(dead).as("public and called by nothing").isEmpty();
    }

    private void reach(JavaCodeUnit unit) {
        if (reached.add(unit)) {
            next.push(unit);
        }
    }

    /** Whatever a method calls may be an overriding method, and the first use of a class initializes it. */
    private void follow(JavaCodeUnit unit) {
        unit.getOwner().getStaticInitializer().ifPresent(this::reach);
        Stream.of(unit.getCallsFromSelf(), unit.getCodeUnitReferencesFromSelf())
                .flatMap(Set::stream)
                .map(JavaAccess::getTarget)
                .forEach(target -> target.resolveMember().ifPresent(member -> {
                    if (member instanceof JavaCodeUnit called) {
                        reach(called);
                        called.getOwner()
                                .getAllSubclasses()
                                .forEach(heir -> heir.getMethods().stream()
                                        .filter(method -> method.getName().equals(called.getName())
                                                && method.getRawParameterTypes().equals(called.getRawParameterTypes()))
                                        .forEach(this::reach));
                    }
                }));
    }

    private static boolean isExported(JavaClass type) {
        return type.getModifiers().contains(JavaModifier.PUBLIC)
                && !type.getPackageName().endsWith(".ffm");
    }

    /**
     * Without a record's accessors, which are right when its constructor is, and what implements
     * {@code NativeConstant}.
     */
    private static boolean isPublished(JavaMethod method) {
        JavaClass owner = method.getOwner();
        boolean accessor =
                owner.isRecord() && owner.tryGetField(method.getName()).isPresent();
        boolean constant = owner.isEnum() && Set.of("value", "cName").contains(method.getName());
        return method.getModifiers().contains(JavaModifier.PUBLIC)
                && !method.getModifiers().contains(JavaModifier.SYNTHETIC)
                && !IMPLIED.contains(method.getName())
                && !accessor
                && !constant;
    }
}
