package org.verbena.api.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.testsuite.transport.socket.SocketEchoTest;
import io.netty.testsuite.transport.socket.SocketTestPermutation;
import java.io.IOException;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarFile;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

/** Netty's suite over the soft provider. */
class SoftNettySuiteTest extends NettySuite {
    private static final RdmaSocketTestPermutation PERMUTATION = new RdmaSocketTestPermutation("soft", "127.0.0.1");

    @Override
    protected SocketTestPermutation permutation() {
        return PERMUTATION;
    }

    @AfterAll
    static void closeChannels() {
        PERMUTATION.close();
    }

    @Test
    void everyClassRunsOrIsLeftOutForAReason() throws Exception {
        String page = Files.readString(Path.of("../docs/netty-testsuite.md"));
        for (Class<?> test : classesOfTheSuite()) {
            boolean runs = List.of(NettySuite.class.getDeclaredClasses()).stream()
                    .anyMatch(nested -> test.isAssignableFrom(nested));
            assertThat(runs)
                    .as("%s runs, or is in LEFT_OUT", test.getSimpleName())
                    .isNotEqualTo(LEFT_OUT.containsKey(test));
            assertThat(page).contains("`" + test.getSimpleName());
        }
    }

    private static List<Class<?>> classesOfTheSuite() throws IOException, ClassNotFoundException {
        List<Class<?>> found = new ArrayList<>();
        String folder = SocketEchoTest.class.getPackageName().replace('.', '/') + "/";
        Path jar = Path.of(SocketEchoTest.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .getPath());
        try (JarFile suite = new JarFile(jar.toFile())) {
            for (var entry : suite.stream().toList()) {
                String name = entry.getName();
                if (name.startsWith(folder) && name.endsWith("Test.class")) {
                    String className =
                            name.substring(0, name.length() - ".class".length()).replace('/', '.');
                    Class<?> test = Class.forName(className, false, SocketEchoTest.class.getClassLoader());
                    if (!Modifier.isAbstract(test.getModifiers())) {
                        found.add(test);
                    }
                }
            }
        }
        assertThat(found).contains(SocketEchoTest.class).hasSizeGreaterThan(30);
        return found;
    }
}
