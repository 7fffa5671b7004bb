package org.verbena.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The script {@code verbena} in a tree of its own, with a JDK and a Maven that only tell how they were called. */
@Timeout(240)
class LauncherTest {
    private static final int JAVA_STATUS = 7;

    @TempDir
    Path folder;

    private Path launcher;
    private Path jvms;
    private Path source;
    private final Map<String, String> environment = new TreeMap<>();

    @BeforeEach
    void layOut() throws IOException {
        Path root = Files.createDirectories(folder.resolve("tree with a space"));
        launcher = root.resolve("verbena");
        Files.copy(Path.of(System.getProperty("launcher")), launcher);
        executable(launcher, Files.readString(launcher));
        source = root.resolve("tools/src/main/java/Main.java");
        Files.createDirectories(source.getParent());
        Files.writeString(source, "");
        Files.writeString(root.resolve("pom.xml"), "");
        jvms = Files.createDirectories(folder.resolve("jvms"));
        Path bin = Files.createDirectories(folder.resolve("bin"));
        executable(bin.resolve("mvn"), """
                #!/bin/sh
                echo "mvn $*" | tee -a '%s'
                printf '\\033[m' && echo '[INFO] Building Verbena verbs 0.1.0-SNAPSHOT                             [2/8]'
                echo '[WARNING] a warning' && echo '[ERROR] a failure'
                echo
                [ ! -e '%s' ] || exit 1
                mkdir -p tools/target && cd tools/target || exit 1
                echo jar >verbena.jar && echo --flag >verbena.args && date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ >verbena.built
                """.formatted(folder.resolve("built"), folder.resolve("broken")));
        environment.put("PATH", bin + ":/usr/bin:/bin");
        environment.put("VERBENA_JVM_FOLDER", jvms.toString());
        Instant old = Instant.now().minus(1, ChronoUnit.HOURS);
        for (Path input : List.of(source, root.resolve("pom.xml"))) {
            Files.setLastModifiedTime(input, FileTime.from(old));
        }
        for (Path parent = source.getParent(); !parent.equals(root); parent = parent.getParent()) {
            Files.setLastModifiedTime(parent, FileTime.from(old));
        }
    }

    @Test
    void passesArgumentsAndExitStatusOn() throws Exception {
        jdk("jdk-25", "25.0.3");
        Outcome outcome = run(launcher, "echo-client", "two words", "--count=3");
        assertThat(outcome.status()).isEqualTo(JAVA_STATUS);
        assertThat(outcome.output())
                .contains("<@" + launcher.resolveSibling("tools/target/verbena.args") + ">")
                .endsWith("<-jar><" + launcher.resolveSibling("tools/target/verbena.jar")
                        + "><echo-client><two words><--count=3>\n");
    }

    @Test
    void buildsOnceAndAgainWhenASourceIsNewer() throws Exception {
        jdk("jdk-25", "25");
        assertThat(run(launcher).errors()).contains("mvn ").contains("-pl tools -am");
        assertThat(run(launcher).errors()).isEmpty();
        Files.setLastModifiedTime(source, FileTime.from(Instant.now().plusSeconds(5)));
        assertThat(run(launcher).errors()).contains("mvn ");
    }

    @Test
    void failsWhenTheBuildDoes() throws Exception {
        jdk("jdk-25", "25");
        Files.createFile(folder.resolve("broken"));
        Outcome outcome = run(launcher);
        assertThat(outcome.status()).isEqualTo(1);
        assertThat(outcome.errors()).contains("verbena: the build failed");
        assertThat(outcome.output()).isEmpty();
    }

    @Test
    void tellsHowFarTheBuildIs() throws Exception {
        jdk("jdk-25", "25");
        assertThat(run(launcher).errors().lines())
                .contains("verbena: 2/8 Verbena verbs", "[ERROR] a failure")
                .noneMatch(line -> line.contains("INFO") || line.contains("WARNING"));
    }

    /** Maven builds the jar, and no cache; a distribution has none either. */
    @Test
    void theFirstStartMakesTheCache() throws Exception {
        jdkWithCache();
        Path cache = launcher.resolveSibling("tools/target/verbena.aot");
        run(launcher);
        Files.delete(cache);
        assertThat(run(launcher, "demo").errors())
                .isEqualTo("verbena: preparing faster starts, once: this takes 10 to 20 s\n");
        assertThat(cache).hasContent("cache");
        Outcome second = run(launcher, "demo");
        assertThat(second.errors()).isEmpty();
        assertThat(second.output()).contains("<-XX:AOTCache=" + cache + ">").endsWith("<demo>");
    }

    @Test
    void triesOnceToMakeACacheThatCannotBe() throws Exception {
        jdk("jdk-25", "25");
        assertThat(run(launcher).errors()).contains("preparing faster starts");
        Outcome second = run(launcher);
        assertThat(second.errors()).isEmpty();
        assertThat(second.output()).doesNotContain("AOT");
    }

    private void jdkWithCache() throws IOException {
        jdk("jdk-25", "25");
        executable(jvms.resolve("jdk-25/bin/java"), """
                #!/bin/sh
                printf '<%s>' "$@"
                for argument; do
                  case $argument in -XX:AOTCacheOutput=*) sleep 0.01 && echo cache >"${argument#*=}" ;; esac
                done
                """);
    }

    @Test
    void startsFromTheCacheThatItsBuildMade() throws Exception {
        jdkWithCache();
        Path cache = launcher.resolveSibling("tools/target/verbena.aot");
        assertThat(run(launcher, "demo").output())
                .contains("<-XX:AOTCache=" + cache + ">")
                .endsWith("<demo>");
        assertThat(cache).hasContent("cache");
        assertThat(cache.resolveSibling("verbena.aot.new")).doesNotExist();
    }

    @Test
    void startsWithoutACacheThatIsOlderThanTheJar() throws Exception {
        jdk("jdk-25", "25");
        assertThat(run(launcher).output()).doesNotContain("AOT");
        Path cache = Files.writeString(launcher.resolveSibling("tools/target/verbena.aot"), "of another build");
        Files.setLastModifiedTime(cache, FileTime.from(Instant.now().minus(1, ChronoUnit.HOURS)));
        assertThat(run(launcher).output()).doesNotContain("AOT");
    }

    /** Its jar is not written again then. */
    @Test
    void makesAnotherCacheWhenABuildChangedOnlyALibrary() throws Exception {
        jdkWithCache();
        Path built = launcher.resolveSibling("tools/target/verbena.built");
        assertThat(run(launcher).errors()).contains("preparing faster starts");
        assertThat(run(launcher).errors()).isEmpty();
        Path cache = launcher.resolveSibling("tools/target/verbena.aot");
        FileTime made = Files.getLastModifiedTime(cache);
        Files.setLastModifiedTime(built, FileTime.from(made.toInstant().plusMillis(1)));
        assertThat(run(launcher).errors()).isEqualTo("verbena: preparing faster starts, once: this takes 10 to 20 s\n");
        assertThat(Files.getLastModifiedTime(cache)).isGreaterThan(made);
    }

    /** A JVM that is given both ends with an error. */
    @Test
    void startsWithoutTheCacheBesideFlagsThatExcludeIt() throws Exception {
        jdkWithCache();
        run(launcher);
        for (String flag : List.of("-Xshare:off", "-XX:AOTMode=off", "-XX:SharedArchiveFile=a.jsa")) {
            environment.put("VERBENA_JAVA_OPTS", "-Xmx1g " + flag);
            assertThat(run(launcher).output()).contains("<" + flag + ">").doesNotContain("AOTCache");
        }
        environment.put("VERBENA_JAVA_OPTS", "-Xmx1g");
        assertThat(run(launcher).output()).contains("AOTCache");
    }

    @Test
    void worksThroughASymbolicLink() throws Exception {
        jdk("jdk-25", "25");
        Path link = Files.createSymbolicLink(folder.resolve("link"), launcher);
        assertThat(run(link, "demo").output()).contains("<demo>");
    }

    @Test
    void runsWhatADistributionHasAndBuildsNothing() throws Exception {
        jdk("jdk-25", "25");
        Path root = Files.createDirectories(folder.resolve("a distribution"));
        Path bin = Files.createDirectories(root.resolve("bin")).resolve("verbena");
        executable(bin, Files.readString(launcher));
        Files.writeString(root.resolve("verbena.jar"), "");
        Files.writeString(root.resolve("verbena.args"), "");
        Outcome outcome = run(bin, "demo");
        assertThat(outcome.errors()).isEqualTo("verbena: preparing faster starts, once: this takes 10 to 20 s\n");
        assertThat(outcome.output())
                .isEqualTo("jdk-25 <@" + root.resolve("verbena.args") + "><-jar><" + root.resolve("verbena.jar")
                        + "><demo>\n");
    }

    @Test
    void prefersJavaHome() throws Exception {
        jdk("jdk-25", "25");
        environment.put("JAVA_HOME", jdk("jdk-26", "26.0.1").toString());
        assertThat(run(launcher).output()).startsWith("jdk-26 ");
    }

    @Test
    void passesOverJdksThatAreTooOld() throws Exception {
        environment.put("JAVA_HOME", jdk("jdk-17", "17.0.9").toString());
        jdk("jdk-8", "1.8.0_292");
        environment.put("JAVA25_HOME", jdk("jdk-25", "25.0.3").toString());
        assertThat(run(launcher).output()).startsWith("jdk-25 ");
    }

    @Test
    void saysWhatToInstallWithoutAJdk() throws Exception {
        jdk("jdk-17", "17.0.9");
        environment.put("PATH", folder.resolve("bin") + ":" + toolsWithoutJava());
        Outcome outcome = run(launcher);
        assertThat(outcome.status()).isEqualTo(1);
        assertThat(outcome.errors())
                .contains("no JDK 25 or newer")
                .contains("JAVA_HOME")
                .contains(jvms.toString());
    }

    @Test
    void addsTheUsersFlags() throws Exception {
        jdk("jdk-25", "25");
        environment.put("VERBENA_JAVA_OPTS", "-Xmx1g -Da=b");
        assertThat(run(launcher).output()).contains("<-Xmx1g><-Da=b><-jar>");
    }

    /** A JDK that prints its name and its arguments. */
    private Path jdk(String name, String version) throws IOException {
        Path home = jvms.resolve(name);
        Files.createDirectories(home.resolve("bin"));
        Files.writeString(home.resolve("release"), "IMPLEMENTOR=\"Nobody\"\nJAVA_VERSION=\"" + version + "\"\n");
        executable(home.resolve("bin/java"), """
                #!/bin/sh
                printf '%s '
                printf '<%%s>' "$@"
                echo
                exit %d
                """.formatted(name, JAVA_STATUS));
        return home;
    }

    private Path toolsWithoutJava() throws IOException {
        Path tools = Files.createDirectories(folder.resolve("tools"));
        for (String tool : List.of("bash", "dirname", "readlink", "sed", "find", "cat", "flock", "date", "mkdir")) {
            Path real = Path.of("/usr/bin", tool);
            Files.createSymbolicLink(tools.resolve(tool), Files.exists(real) ? real : Path.of("/bin", tool));
        }
        return tools;
    }

    private static void executable(Path file, String script) throws IOException {
        Files.writeString(file, script);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    private record Outcome(int status, String output, String errors) {}

    private Outcome run(Path program, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(program.toString()));
        command.addAll(List.of(arguments));
        Path output = folder.resolve("output");
        Path errors = folder.resolve("errors");
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectOutput(output.toFile())
                .redirectError(errors.toFile());
        builder.environment().clear();
        builder.environment().putAll(environment);
        Process process = builder.start();
        assertThat(process.waitFor(Duration.ofSeconds(100).toMillis(), TimeUnit.MILLISECONDS))
                .isTrue();
        return new Outcome(
                process.exitValue(),
                Files.readString(output, StandardCharsets.UTF_8),
                Files.readString(errors, StandardCharsets.UTF_8));
    }
}
