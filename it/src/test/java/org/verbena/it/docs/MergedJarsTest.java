package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * All of Verbena packed into one, with its services files lost or overwritten, as tools do that do not merge them: the
 * providers are found all the same.
 */
@Timeout(240)
class MergedJarsTest {
    private static final String SERVICES = "META-INF/services/org.verbena.transport.spi.RdmaProvider";

    private static final String PROGRAM = """
            import org.verbena.api.MessageHandler;
            import org.verbena.api.RdmaClient;
            import org.verbena.api.RdmaServer;
            import org.verbena.transport.provider.ProviderChoice;

            public class Merged {
                public static void main(String[] args) throws Exception {
                    ProviderChoice.installed().forEach(provider -> System.out.println("found " + provider.name()));
                    MessageHandler echo = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));
                    try (RdmaServer server = RdmaServer.builder().provider("soft").bind("127.0.0.1", 0, echo);
                            RdmaClient client = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port())) {
                        System.out.println("echo " + client.request(new byte[7]).get().length);
                    }
                }
            }
            """;

    @TempDir
    private Path folder;

    /** The last file wins; then none is left. */
    @Test
    void findAllProvidersThoughServicesFilesAreLost() throws Exception {
        merge();
        assertThat(Files.readAllLines(merged().resolve(SERVICES))).hasSize(1);
        assertThat(run()).contains("found verbs", "found soft", "echo 7");
        Files.delete(merged().resolve(SERVICES));
        assertThat(run()).contains("found verbs", "found soft", "echo 7");
    }

    private Path merged() {
        return folder.resolve("merged");
    }

    private static Stream<Path> classPath() {
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(Path::of)
                .filter(Files::exists);
    }

    private static boolean isVerbenas(Path entry) {
        Path root = SnippetsTest.root();
        return entry.startsWith(root) && !root.relativize(entry).toString().contains("test");
    }

    private void merge() throws IOException {
        for (Path entry : classPath().filter(MergedJarsTest::isVerbenas).toList()) {
            if (Files.isDirectory(entry)) {
                copy(entry);
            } else {
                try (FileSystem jar = FileSystems.newFileSystem(entry)) {
                    copy(jar.getPath("/"));
                }
            }
        }
        SnippetsTest.compile(merged(), "Merged.java", PROGRAM);
    }

    private void copy(Path from) throws IOException {
        try (Stream<Path> files = Files.walk(from)) {
            for (Path file : files.filter(Files::isRegularFile)
                    .filter(file -> !file.endsWith("module-info.class")) // one jar is no module
                    .toList()) {
                Path to = merged().resolve(from.relativize(file).toString());
                Files.createDirectories(to.getParent());
                Files.copy(file, to, StandardCopyOption.REPLACE_EXISTING);
            }
        }
    }

    private List<String> run() throws Exception {
        StringBuilder classPath = new StringBuilder(merged().toString());
        classPath()
                .filter(entry -> !isVerbenas(entry) && !entry.startsWith(SnippetsTest.root()))
                .forEach(entry -> classPath.append(File.pathSeparator).append(entry));
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin/java").toString(),
                "-XX:TieredStopAtLevel=1",
                "--enable-native-access=ALL-UNNAMED",
                "-classpath",
                classPath.toString(),
                "Merged"));
        Path output = folder.resolve("output");
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        try {
            assertThat(process.waitFor(100, TimeUnit.SECONDS)).isTrue();
        } finally {
            process.destroyForcibly();
        }
        assertThat(process.exitValue()).as(Files.readString(output)).isZero();
        return Files.readAllLines(output);
    }
}
