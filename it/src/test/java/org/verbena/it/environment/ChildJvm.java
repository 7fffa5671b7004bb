package org.verbena.it.environment;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Starts a program in a JVM that has what an application on Verbena has, nothing of the tests, and waits. */
final class ChildJvm {
    static final Path JAVA = Path.of(System.getProperty("java.home"), "bin/java");
    private static final int SECONDS = 100;

    /** What an application that uses all providers has on its path. */
    private static final List<String> VERBENA = List.of(
            "verbs", "cm", "transport/core", "transport/verbs", "transport/soft", "transport/shm", "api", "doctor");

    private static final List<String> LIBRARIES = List.of(
            "netty-common-", "netty-buffer-", "netty-transport-4", "netty-resolver-4", "slf4j-api-", "jspecify-");

    private final List<String> flags = new ArrayList<>();
    private final List<Path> verbena;
    private final List<Path> libraries;
    private Path java = JAVA;
    private boolean isOnModulePath;
    private @Nullable Map<String, String> environment;
    private @Nullable List<Path> classPath;
    private List<String> starter = List.of();

    ChildJvm(String... flags) {
        this.flags.addAll(List.of("-XX:TieredStopAtLevel=1", "-Dorg.verbena.stat=false"));
        this.flags.addAll(List.of(flags));
        Path root = root();
        verbena = VERBENA.stream()
                .map(module ->
                        only(entry -> entry.startsWith(root.resolve(module).resolve("target"))
                                && !entry.toString().contains("test")))
                .toList();
        libraries = LIBRARIES.stream()
                .map(name -> only(entry -> entry.getFileName().toString().startsWith(name)))
                .toList();
    }

    private ChildJvm(ChildJvm other, List<Path> libraries) {
        this.flags.addAll(other.flags);
        this.verbena = other.verbena;
        this.libraries = libraries;
    }

    /** With other jars in place of those of the same artifact. */
    ChildJvm replacing(Map<String, Path> byArtifact) {
        return new ChildJvm(
                this,
                libraries.stream()
                        .map(jar -> byArtifact.entrySet().stream()
                                .filter(entry -> jar.getFileName().toString().startsWith(entry.getKey() + "-4"))
                                .map(Map.Entry::getValue)
                                .findFirst()
                                .orElse(jar))
                        .toList());
    }

    /** Verbena and its libraries as modules; the program is in none. */
    ChildJvm onModulePath() {
        isOnModulePath = true;
        return this;
    }

    /** With another JVM, which has Verbena in it. */
    ChildJvm in(Path otherJava) {
        java = otherJava;
        return this;
    }

    /** With nothing in the environment but this. */
    ChildJvm withEnvironment(Map<String, String> only) {
        environment = only;
        return this;
    }

    /** With a limit of descriptors. */
    ChildJvm withDescriptors(int max) {
        starter = List.of("bash", "-c", "ulimit -n " + max + "; exec \"$@\"", "bash");
        return this;
    }

    /** With all that the tests have, for programs that need more than Verbena. */
    ChildJvm withTheTestsLibraries() {
        classPath = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(Path::of)
                .toList();
        return this;
    }

    /** With the libraries, and a folder for the program. */
    ChildJvm withoutVerbena(Path program) {
        classPath = Stream.concat(Stream.of(program), libraries.stream()).toList();
        return this;
    }

    /** Verbena and the folder of a program. */
    List<Path> verbena(Class<?> program) {
        return Stream.concat(Stream.of(classesOf(program)), verbena.stream()).toList();
    }

    List<Path> modulePath() {
        return Stream.concat(verbena.stream(), libraries.stream()).toList();
    }

    record Outcome(int exitCode, String output) {

        /** The program ended well and printed these lines. */
        void succeeded(String... lines) {
            assertThat(exitCode).as(output).isZero();
            assertThat(output.lines()).contains(lines);
        }
    }

    Outcome run(Class<?> program, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(starter);
        command.add(java.toString());
        command.addAll(flags);
        List<Path> path = new ArrayList<>(List.of(classesOf(program)));
        if (classPath != null) {
            path.clear();
            path.addAll(classPath);
        } else if (isOnModulePath) {
            command.addAll(List.of("--module-path", join(modulePath()), "--add-modules", "ALL-MODULE-PATH"));
        } else if (java.equals(JAVA)) {
            path.addAll(modulePath());
        }
        command.addAll(List.of("-classpath", join(path), program.getName()));
        command.addAll(List.of(arguments));
        return run(command, environment);
    }

    static Outcome run(List<String> command, @Nullable Map<String, String> environment)
            throws IOException, InterruptedException {
        Path output = Files.createTempFile("child", ".txt");
        try {
            ProcessBuilder builder =
                    new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
            if (environment != null) {
                builder.environment().clear();
                builder.environment().putAll(environment);
            }
            Process process = builder.start();
            try {
                assertThat(process.waitFor(SECONDS, TimeUnit.SECONDS))
                        .as("%s ends; it printed %s", command, Files.readString(output))
                        .isTrue();
            } finally {
                process.destroyForcibly();
            }
            return new Outcome(process.exitValue(), Files.readString(output));
        } finally {
            Files.delete(output);
        }
    }

    static Path root() {
        Path here = Path.of("").toAbsolutePath();
        return Files.exists(here.resolve("it/lab")) ? here : here.getParent();
    }

    static String join(List<Path> paths) {
        return paths.stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator));
    }

    static Path classesOf(Class<?> program) {
        return Path.of(
                program.getProtectionDomain().getCodeSource().getLocation().getPath());
    }

    private static Path only(Predicate<Path> wanted) {
        List<Path> found = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(Path::of)
                .filter(entry -> Files.exists(entry) && wanted.test(real(entry)))
                .toList();
        assertThat(found)
                .as("of the class path %s", System.getProperty("java.class.path"))
                .isNotEmpty();
        return found.getFirst();
    }

    private static Path real(Path entry) {
        try {
            return entry.toRealPath();
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }
}
