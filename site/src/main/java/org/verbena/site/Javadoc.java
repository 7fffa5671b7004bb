package org.verbena.site;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jsoup.Jsoup;
import org.jsoup.nodes.Element;

/**
 * The Javadoc of all published modules, by the JDK's own tool. The modules are those of the root {@code pom.xml}; an
 * artifact that is no module of Java's has pages of its own.
 */
final class Javadoc {
    private static final Pattern MODULE = Pattern.compile("<module>(.*?)</module>");
    private static final Pattern ARTIFACT = Pattern.compile("</parent>\\s*<artifactId>(.*?)</artifactId>");
    private static final Pattern DECLARATION = Pattern.compile("module ([\\w.]+) \\{");

    /** Libraries of artifacts that are no modules; some of these have packages of others in them. */
    private static final Pattern NO_MODULES = Pattern.compile("/(ratis|disni)-[^/]*$");

    /** Which two modules a program needs, before the list of all. */
    private static final String OVERVIEW = """
            <html><body>Programs use <a href="org.verbena.api/module-summary.html">org.verbena.api</a>, whose package
            <a href="org.verbena.api/org/verbena/api/package-summary.html">org.verbena.api</a> has clients, servers and
            channels, and the types of
            <a href="org.verbena.transport/org/verbena/transport/package-summary.html">org.verbena.transport</a> that
            these name. Adapters put other libraries on it. The rest is for those who write a provider, or call
            libibverbs and librdmacm themselves.</body></html>
            """;

    /** In every page's bar, which is blue. */
    private static final String HOME = "<a style=\"color: #fff\" href=\"{@docRoot}/../index.html\">Documentation</a>";

    private final Path out;
    private final String version;

    /** Java's modules that export something, and their folders. */
    private final Map<String, Path> modules = new TreeMap<>();

    /** Published artifacts that are no modules, and their folders. */
    private final Map<String, Path> artifacts = new TreeMap<>();

    Javadoc(Path repository, Path out, String version) throws IOException {
        this.out = out;
        this.version = version;
        for (String name : all(MODULE, Files.readString(repository.resolve("pom.xml")))) {
            Path folder = repository.resolve(name);
            String pom = Files.readString(folder.resolve("pom.xml"));
            Path declaration = folder.resolve("src/main/java/module-info.java");
            if (pom.contains("<maven.deploy.skip>true") || !Files.isDirectory(folder.resolve("src/main/java"))) {
                continue;
            }
            if (!Files.exists(declaration)) {
                artifacts.put(all(ARTIFACT, pom).getFirst(), folder);
            } else if (Files.readString(declaration).contains("exports ")) {
                modules.put(all(DECLARATION, Files.readString(declaration)).getFirst(), folder);
            }
        }
    }

    private static List<String> all(Pattern pattern, String text) {
        return pattern.matcher(text).results().map(found -> found.group(1)).toList();
    }

    /** Writes it, and adds every type to the search. */
    void write(Search search) throws IOException {
        Path overview = Files.writeString(Files.createTempFile("overview", ".html"), OVERVIEW);
        List<String> arguments = new ArrayList<>(List.of("-overview", overview.toString()));
        arguments.addAll(List.of(
                "--module-path", libraries(jar -> !NO_MODULES.matcher(jar).find())));
        for (Map.Entry<String, Path> module : modules.entrySet()) {
            arguments.addAll(List.of("--module-source-path", module.getKey() + "=" + sources(module.getValue())));
        }
        arguments.addAll(List.of("--module", String.join(",", modules.keySet())));
        run(out, arguments);
        Files.delete(overview);
        for (String module : modules.keySet()) {
            addTypes(search, out.resolve(module));
        }
        Path all = Files.createTempDirectory("sources");
        for (Path folder : concat(modules.values(), artifacts.values())) {
            for (String sources : sources(folder).split(File.pathSeparator, -1)) {
                copyWithoutModules(Path.of(sources), all);
            }
        }
        for (String artifact : artifacts.keySet()) {
            Path folder = out.resolve(artifact);
            String name = "org.verbena." + artifact.replace("verbena-", "");
            run(
                    folder,
                    List.of(
                            "--class-path",
                            libraries(jar -> true),
                            "--source-path",
                            all.toString(),
                            "-subpackages",
                            name));
            addTypes(search, folder);
        }
    }

    private static List<Path> concat(Collection<Path> some, Collection<Path> others) {
        return Stream.concat(some.stream(), others.stream()).toList();
    }

    private static void copyWithoutModules(Path from, Path to) throws IOException {
        try (Stream<Path> files = Files.walk(from)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                Path copy = to.resolve(from.relativize(file).toString());
                if (!file.endsWith("module-info.java")) {
                    Files.createDirectories(copy.getParent());
                    Files.copy(file, copy, StandardCopyOption.REPLACE_EXISTING);
                }
            }
        }
    }

    private void run(Path folder, List<String> more) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(
                "-d", folder.toString(), "-quiet", "-notimestamp", "-Xdoclint:all,-missing", "-encoding", "UTF-8"));
        arguments.addAll(List.of("-windowtitle", "Verbena " + version, "-doctitle", "Verbena " + version));
        arguments.addAll(List.of("-header", folder.equals(out) ? HOME : HOME.replace("/../", "/../../")));
        arguments.addAll(more);
        ToolProvider javadoc = ToolProvider.findFirst("javadoc").orElseThrow();
        int status = javadoc.run(System.out, System.err, arguments.toArray(String[]::new));
        if (status != 0) {
            throw new IOException("javadoc ended with " + status);
        }
    }

    /** The sources of a module: its build makes those of C's structs and functions, and this makes them again. */
    private static String sources(Path folder) {
        Path written = folder.resolve("src/main/java");
        Path tables = folder.resolve("src/bindings");
        if (!Files.isDirectory(tables)) {
            return written.toString();
        }
        try {
            Path generated = Files.createTempDirectory("bindings");
            Process process = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin/java").toString(),
                            folder.resolveSibling("verbs/src/bindings/Bindings.java")
                                    .toString(),
                            tables.toString(),
                            generated.toString())
                    .inheritIO()
                    .start();
            if (process.waitFor() != 0) {
                throw new IOException(tables + " cannot be read");
            }
            return written + File.pathSeparator + generated;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String libraries(Predicate<String> wanted) {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator, -1))
                .filter(element -> element.endsWith(".jar") && wanted.test(element))
                .collect(Collectors.joining(File.pathSeparator));
    }

    private void addTypes(Search search, Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            files.filter(file -> file.getFileName().toString().matches("[A-Z][\\w.]*\\.html"))
                    .sorted()
                    .forEach(file -> addType(search, folder, file));
        }
    }

    private void addType(Search search, Path moduleFolder, Path file) {
        try {
            Element description =
                    Jsoup.parse(Files.readString(file)).selectFirst("section.class-description div.block");
            String name = file.getFileName().toString().replaceFirst("\\.html$", "");
            Path packageFolder = moduleFolder.relativize(file.getParent());
            search.add(
                    name,
                    packageFolder.toString().replace(File.separatorChar, '.'),
                    "api/" + out.relativize(file).toString().replace(File.separatorChar, '/'),
                    description == null ? "" : description.text());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
