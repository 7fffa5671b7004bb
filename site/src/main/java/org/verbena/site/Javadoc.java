package org.verbena.site;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jsoup.Jsoup;
import org.jsoup.nodes.Element;

/** The Javadoc of all published modules, by the JDK's own tool. */
final class Javadoc {
    /** Each published module and its folder. */
    private static final Map<String, String> MODULES = new TreeMap<>(Map.ofEntries(
            Map.entry("org.verbena.verbs", "verbs"),
            Map.entry("org.verbena.verbs.packet", "verbs-packet"),
            Map.entry("org.verbena.cm", "cm"),
            Map.entry("org.verbena.transport", "transport/core"),
            Map.entry("org.verbena.transport.verbs", "transport/verbs"),
            Map.entry("org.verbena.transport.soft", "transport/soft"),
            Map.entry("org.verbena.api", "api"),
            Map.entry("org.verbena.testing", "testing"),
            Map.entry("org.verbena.grpc", "adapters/grpc"),
            Map.entry("org.verbena.jgroups", "adapters/jgroups"),
            Map.entry("org.verbena.reactor", "adapters/reactor"),
            Map.entry("org.verbena.rsocket", "adapters/rsocket"),
            Map.entry("org.verbena.doctor", "doctor"),
            Map.entry("org.verbena.sockets", "adapters/sockets"),
            Map.entry("org.verbena.vertx", "adapters/vertx")));

    /** In every page's bar, which is blue. */
    private static final String HOME = "<a style=\"color: #fff\" href=\"{@docRoot}/../index.html\">Documentation</a>";

    private final Path repository;
    private final Path out;
    private final String version;

    Javadoc(Path repository, Path out, String version) {
        this.repository = repository;
        this.out = out;
        this.version = version;
    }

    /** Writes it, and adds every type to the search. */
    void write(Search search) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(
                "-d", out.toString(), "-quiet", "-notimestamp", "-Xdoclint:all,-missing", "-encoding", "UTF-8"));
        arguments.addAll(List.of("-windowtitle", "Verbena " + version, "-doctitle", "Verbena " + version));
        arguments.addAll(List.of("-header", HOME));
        arguments.addAll(List.of("--module-path", libraries()));
        MODULES.forEach((module, folder) -> arguments.addAll(
                List.of("--module-source-path", module + "=" + repository.resolve(folder + "/src/main/java"))));
        arguments.addAll(List.of("--module", String.join(",", MODULES.keySet())));

        ToolProvider javadoc = ToolProvider.findFirst("javadoc").orElseThrow();
        int status = javadoc.run(System.out, System.err, arguments.toArray(String[]::new));
        if (status != 0) {
            throw new IOException("javadoc ended with " + status);
        }
        addTypes(search);
    }

    private static String libraries() {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator, -1))
                .filter(element -> element.endsWith(".jar"))
                .collect(Collectors.joining(File.pathSeparator));
    }

    private void addTypes(Search search) throws IOException {
        for (String module : MODULES.keySet()) {
            Path folder = out.resolve(module);
            if (!Files.isDirectory(folder)) {
                continue; // exports nothing
            }
            try (Stream<Path> files = Files.walk(folder)) {
                files.filter(file -> file.getFileName().toString().matches("[A-Z][\\w.]*\\.html"))
                        .sorted()
                        .forEach(file -> addType(search, folder, file));
            }
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
