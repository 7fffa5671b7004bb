package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.annotation.Annotation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.ffm.CProbe;

/**
 * The bindings on the stub library, compiled with the address sanitizer, in another process: other tests are run there,
 * and what they pass to C is read within its bounds, and not after it was given back.
 */
@Tag("full")
@Timeout(300)
class SanitizedTest {
    private static final String FAULT = "fault";

    private static final List<Class<?>> TESTS =
            List.of(DataPathTest.class, ObjectTreeTest.class, SurfaceTest.class, CloseDuringCallsTest.class);

    @Test
    void noCallReadsWhatIsNotThere() throws Exception {
        assertThat(run("")).contains("all tests are done").doesNotContain("AddressSanitizer");
    }

    @Test
    void wouldFindAFault() throws Exception {
        assertThat(run(FAULT)).contains("AddressSanitizer: heap-buffer-overflow");
    }

    private static String run(String argument) throws IOException, InterruptedException {
        String found = CProbe.run(List.of("gcc", "-print-file-name=libasan.so"));
        assumeTrue(found != null && Path.of(found.strip()).isAbsolute(), "gcc has no libasan");
        Path output = Files.createTempFile("sanitized", ".log");
        ProcessBuilder java = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-D" + Stub.FLAGS + "=-fsanitize=address -fno-omit-frame-pointer",
                "-cp",
                System.getProperty("java.class.path"),
                SanitizedTest.class.getName(),
                argument);
        java.environment().put("LD_PRELOAD", found.strip());
        // The JVM handles its own faults, and frees little at its end.
        java.environment().put("ASAN_OPTIONS", "handle_segv=0:detect_leaks=0");
        Process child =
                java.redirectErrorStream(true).redirectOutput(output.toFile()).start();
        try {
            assertThat(child.waitFor(240, TimeUnit.SECONDS)).as("it ended").isTrue();
            String text = Files.readString(output, StandardCharsets.UTF_8);
            System.out.println(text);
            return text;
        } finally {
            child.destroyForcibly();
            Files.delete(output);
        }
    }

    public static void main(String... arguments) throws Exception {
        Stub.install();
        if (arguments[0].equals(FAULT)) {
            Stub.call("stub_fault");
        }
        for (Class<?> type : TESTS) {
            for (Method test : methods(type, Test.class)) {
                if (test.getParameterCount() == 0) {
                    System.out.println(type.getSimpleName() + "." + test.getName());
                    play(type.getDeclaredConstructor().newInstance(), test);
                }
            }
        }
        System.out.println("all tests are done");
    }

    private static void play(Object instance, Method test) throws Exception {
        for (Method each : methods(instance.getClass(), BeforeEach.class)) {
            each.invoke(instance);
        }
        try {
            test.invoke(instance);
        } catch (InvocationTargetException failed) {
            throw new IllegalStateException(test + " failed", failed.getCause());
        } finally {
            for (Method each : methods(instance.getClass(), AfterEach.class)) {
                each.invoke(instance);
            }
        }
    }

    private static List<Method> methods(Class<?> type, Class<? extends Annotation> marked) {
        return Arrays.stream(type.getDeclaredMethods())
                .filter(method -> method.isAnnotationPresent(marked))
                .toList();
    }
}
