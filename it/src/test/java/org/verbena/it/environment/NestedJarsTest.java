package org.verbena.it.environment;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarInputStream;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Spring Boot's jar: the libraries are jars in it, which its own class loader reads, and the manifest has the flag. */
@Timeout(120)
class NestedJarsTest {
    private static final Path LOADER = ChildJvm.root().resolve("it/target/environment/spring-boot-loader.jar");

    @TempDir
    private Path folder;

    @Test
    void softAndShmEcho() throws Exception {
        ChildJvm jvm = new ChildJvm();
        Path packed = folder.resolve("application.jar");
        Manifest manifest = new Manifest();
        Attributes attributes = manifest.getMainAttributes();
        attributes.put(Attributes.Name.MANIFEST_VERSION, "1.0");
        attributes.put(Attributes.Name.MAIN_CLASS, "org.springframework.boot.loader.launch.JarLauncher");
        attributes.putValue("Start-Class", Echo.class.getName());
        attributes.putValue("Spring-Boot-Classes", "BOOT-INF/classes/");
        attributes.putValue("Spring-Boot-Lib", "BOOT-INF/lib/");
        attributes.putValue("Enable-Native-Access", "ALL-UNNAMED");
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(packed), manifest)) {
            try (JarInputStream loader = new JarInputStream(Files.newInputStream(LOADER))) {
                for (JarEntry entry = loader.getNextJarEntry(); entry != null; entry = loader.getNextJarEntry()) {
                    if (entry.getName().endsWith(".class") && !entry.getName().endsWith("module-info.class")) {
                        out.putNextEntry(new JarEntry(entry.getName()));
                        loader.transferTo(out);
                    }
                }
            }
            for (String directory : List.of("BOOT-INF/", "BOOT-INF/classes/", "BOOT-INF/lib/")) {
                out.putNextEntry(new JarEntry(directory)); // where the loader looks for the rest
            }
            String program = Echo.class.getName().replace('.', '/') + ".class";
            out.putNextEntry(new JarEntry("BOOT-INF/classes/" + program));
            Files.copy(ChildJvm.classesOf(Echo.class).resolve(program), out);
            int number = 0;
            for (Path library : jvm.modulePath()) {
                store(out, "BOOT-INF/lib/" + number++ + ".jar", jarOf(library));
            }
        }
        ChildJvm.run(
                        List.of(
                                ChildJvm.JAVA.toString(),
                                "-XX:TieredStopAtLevel=1",
                                "--illegal-native-access=deny",
                                "-jar",
                                packed.toString(),
                                "soft",
                                "shm"),
                        null)
                .succeeded("soft echoes", "shm echoes");
    }

    /** Spring Boot reads only what is not compressed. */
    private static void store(JarOutputStream out, String name, byte[] content) throws IOException {
        CRC32 crc = new CRC32();
        crc.update(content);
        JarEntry entry = new JarEntry(name);
        entry.setMethod(JarEntry.STORED);
        entry.setSize(content.length);
        entry.setCrc(crc.getValue());
        out.putNextEntry(entry);
        out.write(content);
    }

    /** A module that was compiled and not packaged is a folder. */
    private static byte[] jarOf(Path library) throws IOException {
        if (!Files.isDirectory(library)) {
            return Files.readAllBytes(library);
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (JarOutputStream out = new JarOutputStream((OutputStream) bytes);
                Stream<Path> files = Files.walk(library)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                out.putNextEntry(new JarEntry(library.relativize(file).toString()));
                Files.copy(file, out);
            }
        }
        return bytes.toByteArray();
    }
}
