package org.verbena.api;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A class of these tests that runs in a process of its own. */
final class Program {
    private Program() {}

    static ProcessBuilder of(Class<?> main, String... arguments) {
        List<String> command = new ArrayList<>(
                List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (flag.startsWith("--enable-native-access")) {
                command.add("--enable-native-access=ALL-UNNAMED");
            }
        }
        command.addAll(List.of("-cp", classPath(), main.getName()));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command);
    }

    /** Modules have theirs too, as surefire patches the tests into one. */
    private static String classPath() {
        return String.join(
                File.pathSeparator,
                System.getProperty("java.class.path"),
                System.getProperty("jdk.module.path", ""),
                Path.of("target", "classes").toString(),
                Path.of("target", "test-classes").toString());
    }
}
