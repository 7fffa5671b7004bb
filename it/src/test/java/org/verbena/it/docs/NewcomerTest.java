package org.verbena.it.docs;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A newcomer with the pages and Maven: an empty folder, and a Maven repository that has nothing of Verbena but what an
 * install puts there. What is not Verbena's comes from the repository of this build, and from Maven Central if it is
 * not there.
 *
 * <p>It starts Maven several times, and what it proves changes with the project files and with what the pages show. So
 * it runs when {@code it/newcomer.sha256} has another digest of these, and with {@code -Dlab=full}; when it has passed
 * it writes theirs there, which is part of the change. {@link QuickstartTest} runs the same program in every build.
 */
@Timeout(300)
class NewcomerTest {
    private static final Pattern FILE =
            Pattern.compile("`(pom\\.xml|\\S+\\.java)`:?\n+```(?:xml|java)\n(.*?)```", Pattern.DOTALL);
    private static final Pattern RUN = Pattern.compile("    (mvn [^\n]*exec:exec)\n+It prints:\n+    ([^\n]+)\n");
    private static final Pattern SHADE =
            Pattern.compile("```xml\n(<plugin>\n[^`]*<artifactId>maven-shade-plugin.*?)```", Pattern.DOTALL);

    private static final Path ROOT = SnippetsTest.root();

    /** Of what it last passed with. */
    private static final Path PASSED = ROOT.resolve("it/newcomer.sha256");

    private static final boolean FULL = "full".equals(System.getProperty("lab"));

    /** Kept between builds, so that what it had to download is downloaded once. Verbena is installed anew each time. */
    private static final Path REPOSITORY = ROOT.resolve("it/target/newcomer");

    private static String readme;
    private static String running;
    private static String digest;
    private static int passed;
    private static Path settings;

    @TempDir
    private static Path shared;

    @TempDir
    private Path folder;

    @BeforeAll
    static void install() throws IOException {
        readme = Files.readString(ROOT.resolve("README.md"));
        running = Files.readString(ROOT.resolve("docs/running.md"));
        digest = digest();
        if (isKnownToPass()) {
            return;
        }
        settings = Files.writeString(shared.resolve("settings.xml"), """
                <settings>
                  <profiles>
                    <profile>
                      <id>this-machine</id>
                      <repositories>%s</repositories>
                      <pluginRepositories>%s</pluginRepositories>
                    </profile>
                  </profiles>
                  <activeProfiles><activeProfile>this-machine</activeProfile></activeProfiles>
                </settings>
                """.formatted(
                        ofThisBuild("repository"), ofThisBuild("pluginRepository")));
        Path verbena = REPOSITORY.resolve("org/verbena");
        deleteAll(verbena);
        Pom parent = Pom.of(ROOT.resolve("pom.xml"));
        String version = parent.get("version");
        install(verbena, ROOT, "verbena-parent", version, true);
        for (String module : parent.all("modules/module")) {
            Pom pom = Pom.of(ROOT.resolve(module).resolve("pom.xml"));
            if (isPublished(pom)) {
                install(
                        verbena,
                        ROOT.resolve(module),
                        pom.get("artifactId"),
                        version,
                        pom.get("packaging").equals("pom"));
            }
        }
    }

    private static boolean isKnownToPass() throws IOException {
        return !FULL && hasPassed();
    }

    private static boolean hasPassed() throws IOException {
        return Files.exists(PASSED) && Files.readString(PASSED).strip().equals(digest);
    }

    @BeforeEach
    void skipWhatIsKnown() throws IOException {
        assumeFalse(isKnownToPass(), "it has passed with these project files and pages; -Dlab=full runs it again");
    }

    /** Writes down with what all have passed. */
    @AfterAll
    static void remember() throws IOException {
        if (passed == 2 && !hasPassed()) {
            Files.writeString(PASSED, digest + "\n");
        }
    }

    /** Of the project files of what is published, their lists of providers, and what the pages show. */
    private static String digest() throws IOException {
        MessageDigest digest;
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
        List<Path> files = new ArrayList<>(List.of(ROOT.resolve("pom.xml")));
        for (String module : Pom.of(ROOT.resolve("pom.xml")).all("modules/module")) {
            Path pom = ROOT.resolve(module).resolve("pom.xml");
            if (!isPublished(Pom.of(pom))) {
                continue;
            }
            files.add(pom);
            Path services = ROOT.resolve(module).resolve("src/main/resources/META-INF/services");
            if (Files.exists(services)) {
                try (Stream<Path> found = Files.list(services)) {
                    found.sorted().forEach(files::add);
                }
            }
        }
        for (Path file : files) {
            digest.update(ROOT.relativize(file).toString().getBytes(UTF_8));
            digest.update(Files.readAllBytes(file));
        }
        for (Pattern shown : List.of(FILE, RUN)) {
            shown.matcher(readme)
                    .results()
                    .forEach(part -> digest.update(part.group().getBytes(UTF_8)));
        }
        digest.update(find(SHADE, running).group().getBytes(UTF_8));
        return HexFormat.of().formatHex(digest.digest());
    }

    private static boolean isPublished(Pom pom) {
        return pom.get("properties/maven.deploy.skip").isEmpty();
    }

    private static String ofThisBuild(String element) {
        String local = System.getProperty("localRepository", System.getProperty("user.home") + "/.m2/repository");
        return """
                <%s>
                  <id>this-machine</id>
                  <url>%s</url>
                  <releases><checksumPolicy>ignore</checksumPolicy></releases>
                  <snapshots><enabled>false</enabled></snapshots>
                </%s>
                """.formatted(element, Path.of(local).toUri(), element);
    }

    /** What {@code mvn install} puts there. */
    private static void install(Path verbena, Path module, String artifact, String version, boolean pomOnly)
            throws IOException {
        Path target = Files.createDirectories(verbena.resolve(artifact).resolve(version));
        Files.copy(module.resolve("pom.xml"), target.resolve(artifact + "-" + version + ".pom"));
        if (pomOnly) {
            return;
        }
        Path built = onClassPath(module.resolve("target"));
        Path jar = target.resolve(artifact + "-" + version + ".jar");
        if (Files.isDirectory(built)) {
            jar(built, jar);
        } else {
            Files.copy(built, jar);
        }
    }

    /** What this build has of a module: its jar, or its classes where it has not been packed. */
    private static Path onClassPath(Path target) {
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(Path::of)
                .filter(entry -> entry.startsWith(target)
                        && !target.relativize(entry).toString().matches("test-classes|.*-tests\\.jar"))
                .findFirst()
                .orElseThrow(() -> new AssertionError(target + " is not on the class path"));
    }

    private static void jar(Path classes, Path jar) throws IOException {
        try (OutputStream out = Files.newOutputStream(jar);
                JarOutputStream entries = new JarOutputStream(out);
                Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                entries.putNextEntry(new JarEntry(classes.relativize(file).toString()));
                Files.copy(file, entries);
            }
        }
    }

    private static void deleteAll(Path folder) throws IOException {
        if (Files.exists(folder)) {
            try (Stream<Path> all = Files.walk(folder)) {
                for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(path);
                }
            }
        }
    }

    @Test
    void runsTheQuickstart() throws Exception {
        copyTheFiles("");
        MatchResult run = find(RUN, readme);
        assertThat(mvn(run.group(1))).isEqualTo(run.group(2) + "\n");
        passed++;
    }

    @Test
    void packsItIntoOneJar() throws Exception {
        copyTheFiles(find(SHADE, running).group(1));
        mvn("mvn -q package");
        Path jar = folder.resolve("target/hello-1.0.jar");
        Path errors = folder.resolve("errors");
        assertThat(run(
                        errors,
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin/java")
                                        .toString(),
                                "--sun-misc-unsafe-memory-access=allow",
                                "-jar",
                                jar.toString())))
                .isEqualTo(find(RUN, readme).group(2) + "\n");
        assertThat(Files.readString(errors)).contains("RDMA provider soft").doesNotContain("WARNING");
        passed++;
    }

    /** The files of the quickstart, with one more plugin. */
    private void copyTheFiles(String plugin) throws IOException {
        Matcher file = FILE.matcher(readme);
        int files = 0;
        while (file.find()) {
            Path path = folder.resolve(file.group(1));
            Files.createDirectories(path.getParent());
            Files.writeString(path, file.group(2).replace("</plugins>", plugin + "</plugins>"));
            files++;
        }
        assertThat(files).isEqualTo(2);
    }

    /** Runs a command of the page with this build's Maven and JDK, and that repository. */
    private String mvn(String command) throws Exception {
        String home = System.getProperty("maven.home");
        assumeThat(home).as("started by Maven").isNotNull();
        List<String> words = new ArrayList<>(List.of(command.split(" ")));
        words.set(0, Path.of(home, "bin/mvn").toString());
        words.addAll(List.of("-B", "-ntp", "-gs", settings.toString(), "-Dmaven.repo.local=" + REPOSITORY));
        return run(folder.resolve("errors"), words);
    }

    /** What a command printed; it must succeed. */
    private String run(Path errors, List<String> command) throws Exception {
        Path output = folder.resolve("output");
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectOutput(output.toFile())
                .redirectError(errors.toFile());
        builder.environment()
                .keySet()
                .removeAll(List.of("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_PROJECTBASEDIR"));
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        builder.environment().put("MAVEN_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
        Process process = builder.start();
        try {
            assertThat(process.waitFor(280, TimeUnit.SECONDS)).isTrue();
        } finally {
            process.destroyForcibly();
        }
        assertThat(process.exitValue())
                .as("%s\n%s%s", command, Files.readString(output), Files.readString(errors))
                .isZero();
        return Files.readString(output).replaceAll("\u001b\\[\\d*m", ""); // Maven resets colours that it has not set
    }

    private static MatchResult find(Pattern pattern, String page) {
        Matcher matcher = pattern.matcher(page);
        assertThat(matcher.find()).as("the page has " + pattern).isTrue();
        return matcher.toMatchResult();
    }
}
