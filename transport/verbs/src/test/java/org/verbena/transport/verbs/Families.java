package org.verbena.transport.verbs;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.ArgumentsProvider;
import org.junit.jupiter.params.provider.ArgumentsSource;
import org.junit.jupiter.params.support.ParameterDeclarations;

/**
 * What stub0 is in a run of a suite: an ideal device, and with {@code -Dtests.families=all}, which {@code -Dlab=full}
 * implies, each adapter family that rdma_cm connects over, one after the other. {@code -Dtests.families=mlx5,hns} takes
 * those.
 */
final class Families implements ArgumentsProvider {
    /** The stub without the limits and habits of any driver. */
    static final String IDEAL = "ideal";

    /** Those of the table in stub_rdma.c that rdma_cm connects over. */
    static final List<String> CONNECTING = List.of(
            "mlx5",
            "mlx4",
            "bnxt_re",
            "irdma-roce",
            "irdma-iwarp",
            "x722",
            "erdma",
            "erdma-roce",
            "hns",
            "cxgb4",
            "cxgb4-t5",
            "ionic",
            "qedr",
            "mana-rc");

    private static final Set<String> IWARP = Set.of("irdma-iwarp", "x722", "erdma", "cxgb4", "cxgb4-t5");
    private static final Set<String> WITHOUT_SHARED_RECEIVES =
            Set.of("irdma-roce", "irdma-iwarp", "x722", "erdma", "erdma-roce", "cxgb4-t5", "ionic", "mana-rc");

    /** Those of RoCE whose library has no address handles, or no queue pairs for datagrams. */
    private static final Set<String> WITHOUT_DATAGRAMS = Set.of("erdma-roce", "qedr", "mana-rc");

    /** Those whose library flushes all behind the last completion, what was done included. */
    private static final Set<String> FLUSHING_WHAT_WAS_DONE =
            Set.of("irdma-roce", "irdma-iwarp", "x722", "bnxt_re", "cxgb4", "cxgb4-t5");

    /** Those on which a window is made and bound. */
    private static final Set<String> WITH_WINDOWS = Set.of("mlx5", "mlx4", "ionic");

    private static String playing = IDEAL;

    /** A suite that is run on each of them: it calls {@link #play} before each invocation of the class. */
    @Target(ElementType.TYPE)
    @Retention(RetentionPolicy.RUNTIME)
    @ParameterizedClass(name = "{0}")
    @ArgumentsSource(Families.class)
    @interface Suite {}

    /** The families on which such a suite is run in any case, besides the ideal device. */
    @Target(ElementType.TYPE)
    @Retention(RetentionPolicy.RUNTIME)
    @interface Everyday {
        String[] value();
    }

    /** A suite for what iWARP does not have: it is not run on those families. */
    @Target(ElementType.TYPE)
    @Retention(RetentionPolicy.RUNTIME)
    @interface NotIwarp {}

    /** A suite for datagrams, which some families of RoCE do not have either. */
    @Target(ElementType.TYPE)
    @Retention(RetentionPolicy.RUNTIME)
    @interface OfDatagrams {}

    @Override
    public Stream<Arguments> provideArguments(ParameterDeclarations parameters, ExtensionContext context) {
        String asked = System.getProperty("org.verbena.test.families", "");
        Class<?> suite = context.getRequiredTestClass();
        Everyday everyday = suite.getAnnotation(Everyday.class);
        Set<String> families = new LinkedHashSet<>(List.of(IDEAL));
        if (asked.equals("all")) {
            families.addAll(CONNECTING);
        } else {
            families.addAll(everyday == null ? List.of() : List.of(everyday.value()));
            families.addAll(asked.isEmpty() ? List.of() : List.of(asked.split(",")));
        }
        if (suite.isAnnotationPresent(NotIwarp.class)) {
            families.removeAll(IWARP);
        }
        if (suite.isAnnotationPresent(OfDatagrams.class)) {
            families.removeAll(WITHOUT_DATAGRAMS);
        }
        return families.stream().map(Arguments::of);
    }

    /** Makes stub0 one of a family. */
    static void play(String family) throws Exception {
        playing = family;
        StubDevice.install();
    }

    static String playing() {
        return playing;
    }

    /** Whether what is played is an iWARP device, on which the client speaks first and connects may block. */
    static boolean isIwarp() {
        return IWARP.contains(playing);
    }

    static boolean hasSharedReceives() {
        return !WITHOUT_SHARED_RECEIVES.contains(playing);
    }

    static boolean flushesWhatWasDone() {
        return FLUSHING_WHAT_WAS_DONE.contains(playing);
    }

    static boolean hasWindows() {
        return WITH_WINDOWS.contains(playing);
    }

    /** Skips a test of what iWARP does not have, or does otherwise. */
    static void assumeNotIwarp() {
        Assumptions.assumeFalse(isIwarp(), playing + " is iWARP");
    }

    /** Skips a test that shares receives where nobody can. */
    static void assumeReceives(boolean shared) {
        Assumptions.assumeTrue(!shared || hasSharedReceives(), playing + " has no shared receive queues");
    }
}
