package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The distribution, unpacked into a folder that has nothing else, far from the sources. */
@Timeout(180)
class DistributionTest {
    /** Where the build puts it. */
    private static final Path BUILT = Path.of(System.getProperty("distribution"));

    /** Unpacked once: its first start prepares later ones, which takes longer than these. */
    @TempDir
    private static Path folder;

    private static Path root;

    /** Before the first start leaves a cache beside them. */
    private static List<String> unpackedFiles;

    @BeforeAll
    static void unpack() throws Exception {
        Outcome unpacked = run(List.of("tar", "-xzf", archive("tar.gz").toString(), "-C", folder.toString()));
        assertThat(unpacked.status()).as(unpacked.errors()).isZero();
        try (Stream<Path> inside = Files.list(folder)) {
            root = inside.filter(found -> found.getFileName().toString().startsWith("verbena-"))
                    .findFirst()
                    .orElseThrow();
        }
        unpackedFiles = files(root);
    }

    private static Path archive(String format) throws IOException {
        if (Files.isDirectory(BUILT)) {
            try (DirectoryStream<Path> found = Files.newDirectoryStream(BUILT, "verbena-*." + format)) {
                for (Path archive : found) {
                    return archive;
                }
            }
        }
        return Assumptions.abort("there is no distribution in " + BUILT + ": mvn package makes it");
    }

    /** Every day {@code OutputTest} runs it. */
    @Tag("full")
    @Test
    void theDemoRuns() throws Exception {
        Outcome demo = verbena("demo", "--provider", "soft", "--millis", "20");
        assertThat(demo.errors()).isIn("", "verbena: preparing faster starts, once: this takes 10 to 20 s\n");
        assertThat(demo.status()).isZero();
        assertThat(demo.output()).contains("Verbena on soft", "Every reply and row was checked");
    }

    @Test
    void tellsItsVersionAndItsCommands() throws Exception {
        Outcome version = verbena("--version");
        assertThat(version.status()).isZero();
        assertThat(version.output()).startsWith(root.getFileName().toString().replaceFirst("-", " "));
        Outcome help = verbena("--help");
        assertThat(help.status()).isZero();
        assertThat(help.output()).contains("Usage: verbena ", "Files and values:", "echo-server");
        assertThat(verbena("nonsense", "--help").status()).isEqualTo(2);
    }

    @Test
    void bashCompletesItsCommands() throws Exception {
        Outcome completed = run(List.of(
                "/bin/bash",
                "--norc",
                "-c",
                """
                source "$1" || exit 1
                COMP_WORDS=(verbena pingp)
                COMP_CWORD=1
                _complete_verbena 2>/dev/null || exit 1
                printf '%s\\n' "${COMPREPLY[@]}"
                """,
                "bash",
                root.resolve("completion/verbena.bash").toString()));
        assertThat(completed.status()).as(completed.errors()).isZero();
        assertThat(completed.output().strip()).isEqualTo("pingpong");
    }

    @Test
    void hasDocumentsAndTheSameInTheZip() throws Exception {
        assertThat(root.resolve("README.md")).exists();
        assertThat(root.resolve("LICENSE")).exists();
        assertThat(root.resolve("docs/guide.md")).exists();
        URI zip = URI.create("jar:" + archive("zip").toUri());
        try (FileSystem unpacked = FileSystems.newFileSystem(zip, Map.of("enablePosixFileAttributes", true))) {
            Path inside = unpacked.getPath("/", root.getFileName().toString());
            assertThat(files(inside)).isEqualTo(unpackedFiles);
            assertThat(Files.getPosixFilePermissions(inside.resolve("bin/verbena")))
                    .contains(PosixFilePermission.OWNER_EXECUTE, PosixFilePermission.OTHERS_EXECUTE);
        }
    }

    private static List<String> files(Path top) throws IOException {
        try (Stream<Path> all = Files.walk(top)) {
            return all.filter(Files::isRegularFile)
                    .map(file -> top.relativize(file).toString())
                    .sorted()
                    .toList();
        }
    }

    private record Outcome(int status, String output, String errors) {}

    private static Outcome verbena(String... arguments) throws Exception {
        List<String> command =
                new ArrayList<>(List.of(root.resolve("bin/verbena").toString()));
        command.addAll(List.of(arguments));
        return run(command);
    }

    private static Outcome run(List<String> command) throws Exception {
        Path output = folder.resolve("output");
        Path errors = folder.resolve("errors");
        Path empty = Files.createDirectories(folder.resolve("empty"));
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(empty.toFile())
                .redirectOutput(output.toFile())
                .redirectError(errors.toFile());
        builder.environment().clear();
        builder.environment().put("PATH", "/usr/bin:/bin");
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        Process process = builder.start();
        assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
        return new Outcome(
                process.exitValue(),
                Files.readString(output, StandardCharsets.UTF_8),
                Files.readString(errors, StandardCharsets.UTF_8));
    }
}
