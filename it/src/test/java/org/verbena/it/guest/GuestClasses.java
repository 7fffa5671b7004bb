package org.verbena.it.guest;

import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;

/**
 * What JVMs in the guest load: the class path in jars alone, and an ahead-of-time cache of its classes, which is made
 * on the host in seconds and saves each JVM in the guest a third of its start.
 *
 * @param classPath the jars
 * @param cache the flags with which a JVM takes the cache; none if there is none
 */
record GuestClasses(String classPath, List<String> cache) {
    /**
     * The cache shall have classes and no machine code: the host's processor has instructions that the guest's has not.
     */
    private static final List<String> WITHOUT_CODE =
            List.of("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTAdapterCaching", "-XX:-AOTStubCaching");

    /** Many times what it takes on a busy machine. */
    private static final int TRAINING_LIMIT_SECONDS = 300;

    /** This JVM's class path as it is. */
    static GuestClasses asTheyAre() {
        return new GuestClasses(System.getProperty("java.class.path"), List.of());
    }

    /**
     * Makes them unless they are there and nothing has changed since; without the cache where the JVM makes none.
     *
     * @param folder where they go
     * @param flags those of the guest's JVMs: another JVM does not take the cache
     */
    static GuestClasses prepare(Path folder, List<String> flags) throws IOException, InterruptedException {
        Files.createDirectories(folder);
        List<String> jars = new ArrayList<>();
        Map<Path, Path> directories = new LinkedHashMap<>();
        FileTime newest = FileTime.fromMillis(0);
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            Path path = Path.of(entry);
            if (!Files.exists(path)) {
                continue;
            }
            newest = later(newest, newestIn(path));
            if (Files.isDirectory(path)) {
                // Caches are of jars alone.
                Path jar = folder.resolve("classes-" + jars.size() + ".jar");
                directories.put(path, jar);
                path = jar;
            }
            jars.add(path.toString());
        }
        String classPath = String.join(File.pathSeparator, jars);
        Path cache = folder.resolve("classes.aot");
        List<String> arguments = new ArrayList<>(flags);
        arguments.addAll(WITHOUT_CODE);
        arguments.addAll(List.of("-XX:AOTCacheOutput=" + cache, "-cp", classPath, GuestTraining.class.getName()));
        List<String> use = new ArrayList<>(WITHOUT_CODE);
        use.add("-XX:AOTCache=" + cache);
        Path argumentFile = folder.resolve("training.args");
        Path wanted = folder.resolve("wanted.args");
        QemuGuest.writeArguments(wanted, arguments);
        if (Files.exists(cache)
                && Files.exists(argumentFile)
                && Files.mismatch(wanted, argumentFile) == -1
                && newest.compareTo(Files.getLastModifiedTime(cache)) < 0) {
            return new GuestClasses(classPath, use);
        }
        Files.deleteIfExists(cache);
        for (Map.Entry<Path, Path> directory : directories.entrySet()) {
            jar(directory.getKey(), directory.getValue());
        }
        Files.move(wanted, argumentFile, StandardCopyOption.REPLACE_EXISTING);
        Process training = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(), "@" + argumentFile)
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("training.log").toFile())
                .start();
        if (!training.waitFor(TRAINING_LIMIT_SECONDS, TimeUnit.SECONDS)) {
            training.descendants().forEach(ProcessHandle::destroyForcibly);
            training.destroyForcibly();
        }
        if (!Files.exists(cache)) {
            System.out.println("lab: no ahead-of-time cache for the guest, which is slower so: see "
                    + folder.resolve("training.log"));
            return new GuestClasses(classPath, List.of());
        }
        return new GuestClasses(classPath, use);
    }

    private static FileTime newestIn(Path path) throws IOException {
        FileTime newest = FileTime.fromMillis(0);
        try (Stream<Path> files = Files.walk(path)) {
            for (Path file : files.toList()) {
                newest = later(newest, Files.getLastModifiedTime(file));
            }
        }
        return newest;
    }

    private static FileTime later(FileTime one, FileTime other) {
        return one.compareTo(other) < 0 ? other : one;
    }

    private static void jar(Path classes, Path jar) throws IOException {
        StringWriter said = new StringWriter();
        int status = ToolProvider.findFirst("jar")
                .orElseThrow()
                .run(
                        new PrintWriter(said),
                        new PrintWriter(said),
                        "--create",
                        "--no-compress",
                        "--file=" + jar,
                        "-C",
                        classes.toString(),
                        ".");
        if (status != 0) {
            throw new IOException("jar of " + classes + " failed: " + said);
        }
    }
}
