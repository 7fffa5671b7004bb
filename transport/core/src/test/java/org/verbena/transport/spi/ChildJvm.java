package org.verbena.transport.spi;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Another JVM with the class path of this one, for what a whole process is needed for. */
public final class ChildJvm {
    private ChildJvm() {}

    /** The command that starts a program. */
    public static List<String> command(List<String> flags, Class<?> main, String... arguments) {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xmx256m"));
        command.addAll(flags);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(arguments));
        return command;
    }

    /** Runs a program that ends by itself, within {@link Patience#LIMIT}; returns what it printed, errors included. */
    public static String run(List<String> flags, Class<?> main, String... arguments)
            throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command(flags, main, arguments))
                .redirectErrorStream(true)
                .start();
        CompletableFuture<Process> limit = process.onExit().orTimeout(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
        limit.exceptionally(late -> process.destroyForcibly());
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (process.waitFor() != 0) {
            throw new AssertionError(main.getSimpleName() + " has failed:\n" + output);
        }
        return output;
    }
}
