package org.verbena.it;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.assignableTo;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.ArchRule;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Arrows between modules point down only: adapters over api over transport's core; each provider over the core's SPI,
 * the native one over cm over verbs.
 */
@Timeout(240)
class ArchitectureTest {
    private static final String VERBS = "org.verbena.verbs..";
    private static final String PACKET = "org.verbena.verbs.packet..";
    private static final String CM = "org.verbena.cm..";
    private static final String TRANSPORT = "org.verbena.transport";
    private static final String PROVIDER = "org.verbena.transport.provider..";
    private static final String SPI = "org.verbena.transport.spi..";
    private static final String NATIVE = "org.verbena.transport.verbs..";
    private static final String SOFT = "org.verbena.transport.soft..";
    private static final String SHM = "org.verbena.transport.shm..";
    private static final String SOFTWARE = "org.verbena.transport.software..";
    private static final String FFM = "org.verbena.transport.ffm..";
    private static final String SYSTEM = "org.verbena.transport.system..";
    private static final String STAT = "org.verbena.transport.stat..";
    private static final String API = "org.verbena.api..";
    private static final String TESTING = "org.verbena.testing..";
    private static final String DOCTOR = "org.verbena.doctor..";
    private static final String DISNI = "org.verbena.disni..";
    private static final String GRPC = "org.verbena.grpc..";
    private static final String SAMPLES = "org.verbena.samples..";
    private static final String JGROUPS = "org.verbena.jgroups..";
    private static final String RATIS = "org.verbena.ratis..";
    private static final String REACTOR = "org.verbena.reactor..";
    private static final String RSOCKET = "org.verbena.rsocket..";
    private static final String SOCKETS = "org.verbena.sockets..";
    private static final String VERTX = "org.verbena.vertx..";
    private static final String ALL = "org.verbena..";
    private static final String NETTY = "io.netty..";

    /** The packages of transport's core: what is below them in name are the providers. */
    private static final List<String> CORE = List.of(
            TRANSPORT,
            PROVIDER,
            SPI,
            "org.verbena.transport.protocol..",
            "org.verbena.transport.buffer..",
            FFM,
            SOFTWARE,
            SYSTEM,
            STAT);

    /** Main code of all modules; read once, since that takes seconds. */
    static final JavaClasses CLASSES = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .withImportOption(location -> !location.contains("-tests.jar") && !location.contains("/it/times/"))
            .importPackages("org.verbena");

    /** Which C functions have another way in Java instead, docs/coverage*.md say. */
    @Test
    void everyBoundFunctionIsCalled() {
        List<JavaMethod> functions = Stream.of(
                        "org.verbena.verbs.ffm.LibIbverbs",
                        "org.verbena.verbs.ffm.WorkRequestOps",
                        "org.verbena.verbs.ffm.CompletionQueueOps",
                        "org.verbena.verbs.packet.ffm.PacketOps",
                        "org.verbena.cm.ffm.RdmaCm")
                .flatMap(name -> CLASSES.get(name).getMethods().stream())
                .filter(method -> method.getModifiers().contains(JavaModifier.PUBLIC))
                .toList();
        assertThat(functions).hasSizeGreaterThan(100);
        assertThat(functions)
                .filteredOn(method -> method.getAccessesToSelf().isEmpty())
                .as("bound and called by nothing")
                .isEmpty();
    }

    @Test
    void everyModuleIsSeen() {
        for (String module : List.of(
                "verbs",
                "verbs.packet",
                "cm",
                "transport.spi",
                "transport.verbs",
                "transport.soft",
                "transport.shm",
                "api",
                "testing",
                "doctor",
                "disni",
                "grpc",
                "jgroups",
                "ratis",
                "reactor",
                "rsocket",
                "sockets",
                "vertx",
                "samples",
                "tools")) {
            assertThat(CLASSES.stream().filter(resideInAPackage("org.verbena." + module + "..")))
                    .as("classes of %s on the class path", module)
                    .isNotEmpty();
        }
    }

    static List<Arguments> mayUse() {
        return List.of(
                Arguments.of(VERBS, List.of()),
                Arguments.of(CM, List.of(VERBS)),
                Arguments.of(NATIVE, List.of(TRANSPORT, SPI, SYSTEM, FFM, CM, VERBS)),
                Arguments.of(SOFT, List.of(TRANSPORT, SPI, SOFTWARE, SYSTEM, FFM)),
                Arguments.of(SHM, List.of(TRANSPORT, SPI, SOFTWARE, SYSTEM, FFM)),
                Arguments.of(TESTING, List.of(TRANSPORT, SPI, SOFTWARE)),
                Arguments.of(API, CORE),
                Arguments.of(DOCTOR, with(CORE, API, CM, VERBS)),
                Arguments.of(DISNI, List.of(CM, VERBS)),
                Arguments.of(GRPC, with(CORE, API)),
                Arguments.of(JGROUPS, with(CORE, API)),
                Arguments.of(RATIS, with(CORE, API)),
                Arguments.of(REACTOR, with(CORE, API)),
                Arguments.of(RSOCKET, with(CORE, API)),
                Arguments.of(SOCKETS, with(CORE, API)),
                Arguments.of(VERTX, with(CORE, API)),
                Arguments.of(SAMPLES, with(CORE, API, GRPC, VERBS)),
                Arguments.of("org.verbena.tools..", with(CORE, API, DOCTOR, GRPC, CM, VERBS, SAMPLES)));
    }

    private static List<String> with(List<String> some, String... more) {
        return Stream.concat(some.stream(), Stream.of(more)).toList();
    }

    @Test
    void theCoreOfTransportUsesNoneOfTheOthers() {
        check(noClasses()
                .that()
                .resideInAnyPackage(CORE.toArray(String[]::new))
                .should()
                .dependOnClassesThat(resideInAPackage(ALL).and(not(resideInAnyPackage(CORE.toArray(String[]::new))))));
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
    void nothingIsBuiltOnRawPackets() {
        check(noClasses()
                .that()
                .resideInAPackage(ALL)
                .and()
                .resideOutsideOfPackage(PACKET)
                .should()
                .dependOnClassesThat(resideInAPackage(PACKET)));
    }

    @Test
    void nettyStaysOutOfTheBindings() {
        check(noClasses().that().resideInAnyPackage(VERBS, CM).should().dependOnClassesThat(resideInAPackage(NETTY)));
    }

    @Test
    void foreignFunctionsStayInTheirPackages() {
        // A module's own ffm package is unexported; cm and the native provider build on the one of verbs.
        check(noClasses()
                .that()
                .resideOutsideOfPackages(VERBS, CM, NATIVE)
                .should()
                .dependOnClassesThat(resideInAnyPackage(
                        "org.verbena.verbs.ffm..", "org.verbena.cm.ffm..", "org.verbena.transport.verbs.ffm..")));
        check(noClasses()
                .that()
                .resideOutsideOfPackages("org.verbena..ffm..")
                .should()
                .dependOnClassesThat(resideInAnyPackage("java.lang.invoke..").and(assignableTo(MethodHandle.class))));
    }

    /**
     * The wall clock jumps when it is set; times to wait are measured with the other. The figures say when something
     * was.
     */
    @Test
    void onlyFiguresReadTheWallClock() {
        DescribedPredicate<JavaAccess<?>> wallClock = DescribedPredicate.describe("reads the wall clock", access -> {
            String owner = access.getTargetOwner().getFullName();
            return owner.equals("java.lang.System") && access.getName().equals("currentTimeMillis")
                    || owner.startsWith("java.time.") && access.getName().matches("now|system.*|tick.*");
        });
        check(noClasses()
                .that(resideInAPackage(ALL)
                        .and(not(resideInAnyPackage(STAT, "org.verbena.tools.stat..", "org.verbena.tools.perf.."))))
                .should()
                .accessTargetWhere(wallClock));
        assertThat(CLASSES.stream()
                        .filter(resideInAPackage(STAT))
                        .flatMap(type -> type.getAccessesFromSelf().stream())
                        .filter(wallClock))
                .as("what the rule is about")
                .isNotEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "verbs",
                "cm",
                "transport",
                "transport.verbs",
                "transport.soft",
                "transport.shm",
                "api",
                "doctor",
                "disni",
                "grpc",
                "jgroups",
                "ratis",
                "reactor",
                "rsocket",
                "sockets",
                "vertx",
                "samples",
                "tools"
            })
    void packagesOfAModuleHaveNoCycles(String module) {
        slices().matching("org.verbena.(**)")
                .should()
                .beFreeOfCycles()
                .allowEmptyShould(true)
                .check(CLASSES.that(resideInAPackage("org.verbena." + module + "..")));
    }

    @Test
    void whatUsersNameUsesNothingElse() {
        check(noClasses()
                .that()
                .resideInAPackage(TRANSPORT)
                .should()
                .dependOnClassesThat(resideInAPackage(ALL).and(not(resideInAPackage(TRANSPORT)))));
    }

    /** The order of docs/architecture.md, "The protocol's parts". */
    @Test
    void thePartsOfTheProtocolUseOnlyThoseBeforeThem() {
        List<String> order = Stream.of(
                        ".wire",
                        "",
                        ".memory",
                        ".state",
                        ".sending",
                        ".receiving",
                        ".rendezvous",
                        ".handshake",
                        ".framing",
                        ".connection")
                .map(part -> "org.verbena.transport.protocol" + part)
                .toList();
        for (int i = 0; i < order.size() - 1; i++) {
            assertThat(CLASSES.that(resideInAPackage(order.get(i))))
                    .as("classes of %s", order.get(i))
                    .isNotEmpty();
            check(noClasses()
                    .that()
                    .resideInAPackage(order.get(i))
                    .should()
                    .dependOnClassesThat()
                    .resideInAnyPackage(order.subList(i + 1, order.size()).toArray(String[]::new)));
        }
    }

    /** What each package of api may use of its module; its page says the same. */
    @Test
    void packagesOfApiUseWhatTheirPagesSay() {
        String api = "org.verbena.api";
        String internal = api + ".internal.";
        Map<String, List<String>> below = Map.ofEntries(
                Map.entry(internal + "memory", List.of()),
                Map.entry(internal + "option", List.of()),
                Map.entry(internal + "datagram", List.of(internal + "channel")),
                Map.entry(internal + "stat", List.of(internal + "memory")),
                Map.entry(internal + "loop", List.of(internal + "stat")),
                Map.entry(
                        internal + "channel",
                        List.of(
                                internal + "loop",
                                internal + "stat",
                                internal + "memory",
                                internal + "option",
                                api + ".queuepair")),
                Map.entry(internal + "server", List.of(internal + "loop", internal + "stat", internal + "option")),
                Map.entry(
                        internal + "request",
                        List.of(internal + "channel", internal + "loop", internal + "stat", api + ".service")),
                Map.entry(
                        internal + "client",
                        List.of(
                                internal + "request",
                                internal + "loop",
                                internal + "stat",
                                api + ".client",
                                api + ".service",
                                api + ".ladder")),
                Map.entry(
                        internal + "ladder",
                        List.of(internal + "channel", internal + "loop", internal + "stat", api + ".ladder")),
                Map.entry(api + ".service", List.of()),
                Map.entry(api + ".client", List.of(api + ".service")),
                Map.entry(api + ".ladder", List.of(internal + "stat")),
                Map.entry(api + ".queuepair", List.of(internal + "loop")),
                Map.entry(
                        api,
                        List.of(
                                api + ".client",
                                api + ".service",
                                api + ".ladder",
                                api + ".queuepair",
                                internal + "*")),
                Map.entry(api + ".datagram", List.of(api, internal + "*")),
                Map.entry(api + ".ring", List.of(api)),
                Map.entry(api + ".metrics", List.of(api, api + ".client", api + ".ladder")),
                Map.entry(api + ".tracing", List.of(api, api + ".client", api + ".service")));
        assertThat(CLASSES.stream()
                        .filter(resideInAPackage(API))
                        .map(JavaClass::getPackageName)
                        .distinct())
                .as("packages with arrows")
                .containsExactlyInAnyOrderElementsOf(below.keySet());
        below.forEach((from, to) -> {
            DescribedPredicate<JavaClass> foreign = resideInAPackage(API)
                    .and(not(resideInAPackage(from)))
                    .and(not(resideInAnyPackage(to.toArray(String[]::new))))
                    .as("packages of api other than %s", to);
            check(noClasses().that().resideInAPackage(from).should().dependOnClassesThat(foreign));
        });
    }

    @Test
    void internalsOfApiAreNamedByNobodyElse() {
        check(noClasses()
                .that()
                .resideOutsideOfPackage(API)
                .should()
                .dependOnClassesThat(resideInAPackage("org.verbena.api.internal..")));
    }

    private static void check(ArchRule rule) {
        // A module may still be nearly empty.
        rule.allowEmptyShould(true).check(CLASSES);
    }
}
