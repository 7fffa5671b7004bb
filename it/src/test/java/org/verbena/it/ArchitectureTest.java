package org.verbena.it;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.ArchRule;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Arrows between modules point down only: grpc over api over transport over cm over verbs, and soft over transport's SPI. */
@Timeout(120)
class ArchitectureTest {
    private static final String VERBS = "org.verbena.verbs..";
    private static final String CM = "org.verbena.cm..";
    private static final String TRANSPORT = "org.verbena.transport..";
    private static final String SPI = "org.verbena.transport.spi..";
    private static final String SOFT = "org.verbena.soft..";
    private static final String API = "org.verbena.api..";
    private static final String GRPC = "org.verbena.grpc..";
    private static final String ALL = "org.verbena..";
    private static final String NETTY = "io.netty..";

    private static JavaClasses classes;

    @BeforeAll
    static void readClasses() {
        classes = new ClassFileImporter()
                .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                .withImportOption(location -> !location.contains("-tests.jar"))
                .importPackages("org.verbena");
    }

    @Test
    void everyModuleIsSeen() {
        for (String module : List.of("verbs", "cm", "transport", "soft", "api", "grpc", "samples")) {
            assertThat(classes.stream().filter(resideInAPackage("org.verbena." + module + "..")))
                    .as("classes of %s on the class path", module)
                    .isNotEmpty();
        }
    }

    static List<Arguments> mayUse() {
        return List.of(
                Arguments.of(VERBS, List.of()),
                Arguments.of(CM, List.of(VERBS)),
                Arguments.of(TRANSPORT, List.of(CM, VERBS)),
                // RdmaException is in verbs: soft throws what every provider throws.
                Arguments.of(SOFT, List.of(SPI, "org.verbena.verbs")),
                Arguments.of(API, List.of(TRANSPORT, CM, VERBS)),
                Arguments.of(GRPC, List.of(API, TRANSPORT)),
                Arguments.of("org.verbena.samples..", List.of(GRPC, API, TRANSPORT, CM, VERBS)));
    }

    @ParameterizedTest
    @MethodSource("mayUse")
    void modulesUseOnlyWhatIsBelow(String module, List<String> below) {
        DescribedPredicate<JavaClass> foreign = resideInAPackage(ALL)
                .and(not(resideInAPackage(module)))
                .and(not(resideInAnyPackage(below.toArray(String[]::new))))
                .as("Verbena's classes other than those of %s and %s", module, below);
        check(noClasses().that().resideInAPackage(module).should().dependOnClassesThat(foreign));
    }

    @Test
    void nettyStaysOutOfTheBindings() {
        check(noClasses().that().resideInAnyPackage(VERBS, CM).should().dependOnClassesThat(resideInAPackage(NETTY)));
    }

    @Test
    void foreignFunctionsStayInTheirPackages() {
        // A module's own ffm package is unexported; cm builds on the one of verbs.
        check(noClasses()
                .that()
                .resideOutsideOfPackages(VERBS, CM, TRANSPORT)
                .should()
                .dependOnClassesThat(resideInAPackage("org.verbena..ffm..")));
    }

    @Test
    void packagesHaveNoCycles() {
        slices().matching("org.verbena.(**)")
                .should()
                .beFreeOfCycles()
                .allowEmptyShould(true)
                .check(classes);
    }

    private static void check(ArchRule rule) {
        // A module may still be nearly empty.
        rule.allowEmptyShould(true).check(classes);
    }
}
