package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The Java that the documents show compiles against what is built, with the imports that it shows. */
class SnippetsTest {
    static final List<String> DOCUMENTS = List.of(
            "README.md",
            "docs/recipes.md",
            "docs/guide.md",
            "docs/fleet.md",
            "docs/running.md",
            "docs/kubernetes.md",
            "docs/rpc.md",
            "docs/frameworks.md",
            "docs/moving.md",
            "docs/samples.md",
            "docs/observability.md");

    private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);

    /** What a snippet may take for granted: its imports, this, the statements. */
    private static final String FRAME = """
            %s
            class Snippet {
                static org.verbena.api.RdmaChannel channel;
                static io.netty.buffer.ByteBuf message;
                static io.micrometer.core.instrument.MeterRegistry registry;
                static io.grpc.BindableService service;
                static org.apache.arrow.memory.BufferAllocator memory;
                static org.apache.arrow.flight.FlightProducer producer;
                static java.util.concurrent.ExecutorService executor;
                static java.io.File certificate;
                static java.io.File privateKey;
                static java.io.File authorities;
                static byte[] secret;
                static java.io.File folder;
                static org.apache.ratis.protocol.RaftGroupId groupId;
                static org.apache.ratis.statemachine.StateMachine machine;
                static org.verbena.api.MessageHandler handler;
                %s
                static void run() throws Exception {
            %s
                }
            }
            """;

    /** What the compiler says of a snippet, by its package. */
    private static Map<String, List<String>> errors;

    /** All of them at once, each in a package of its own: the compiler starts and reads the libraries once. */
    @BeforeAll
    static void compileAll(@TempDir Path out) throws IOException {
        DiagnosticCollector<JavaFileObject> said = new DiagnosticCollector<>();
        List<JavaFileObject> sources = snippets()
                .map(snippet -> source(snippet.file(), snippet.source()))
                .toList();
        ToolProvider.getSystemJavaCompiler()
                .getTask(null, null, said, options(out), null, sources)
                .call();
        errors = said.getDiagnostics().stream()
                .filter(diagnostic -> diagnostic.getKind() == Diagnostic.Kind.ERROR)
                .collect(Collectors.groupingBy(
                        error -> error.getSource() == null
                                ? "no source"
                                : Path.of(error.getSource().getName())
                                        .getParent()
                                        .getFileName()
                                        .toString(),
                        Collectors.mapping(Object::toString, Collectors.toList())));
    }

    static Stream<Snippet> snippets() throws IOException {
        List<Snippet> all = new ArrayList<>();
        for (String document : DOCUMENTS) {
            String text = Files.readString(root().resolve(document));
            Matcher block = BLOCK.matcher(text);
            while (block.find()) {
                long line = text.substring(0, block.start()).lines().count() + 1;
                all.add(new Snippet("snippet" + all.size(), document + ":" + line, block.group(1)));
            }
        }
        assertThat(all).hasSizeGreaterThan(5);
        return all.stream();
    }

    /** The project's folder. A guest of the lab runs elsewhere and has its host's {@code lab.folder}. */
    static Path root() {
        String lab = System.getProperty("lab.folder");
        if (lab != null) {
            return Path.of(lab).resolve("../..").normalize();
        }
        Path here = Path.of("").toAbsolutePath();
        return Files.exists(here.resolve("it/lab")) ? here : here.getParent();
    }

    /** Compiles one file into a folder; a failure has the compiler's messages. */
    static void compile(Path folder, String fileName, String code) throws IOException {
        compile(folder, Map.of(fileName, code));
    }

    /** Compiles files that know each other, by their names. */
    static void compile(Path folder, Map<String, String> files) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter errors = new StringWriter();
        List<JavaFileObject> sources = files.entrySet().stream()
                .map(file -> source(file.getKey(), file.getValue()))
                .toList();
        boolean compiled = compiler.getTask(errors, null, null, options(folder), null, sources)
                .call();
        assertThat(compiled).as(errors.toString()).isTrue();
    }

    private static List<String> options(Path folder) throws IOException {
        return List.of(
                "-d",
                Files.createDirectories(folder).toString(),
                "-cp",
                System.getProperty("java.class.path"),
                "-proc:none",
                "-Xmaxerrs",
                "1000");
    }

    private static JavaFileObject source(String file, String code) {
        return new SimpleJavaFileObject(URI.create("string:///" + file), JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                return code;
            }
        };
    }

    @ParameterizedTest
    @MethodSource("snippets")
    void compiles(Snippet snippet) {
        assertThat(errors.getOrDefault(snippet.folder(), List.of())).isEmpty();
    }

    /** What the compiler says of no snippet is an error as well, and so is a syntax error, which hides other errors. */
    @Test
    void nothingElseIsWrong() throws IOException {
        assertThat(errors.keySet()).isSubsetOf(snippets().map(Snippet::folder).toList());
    }

    record Snippet(String folder, String place, String code) {
        private static final Pattern WHOLE = Pattern.compile("^public (?:final )?class (\\w+)", Pattern.MULTILINE);

        String file() {
            Matcher whole = WHOLE.matcher(code);
            return folder + "/" + (whole.find() ? whole.group(1) : "Snippet") + ".java";
        }

        /** A whole class, or statements in a frame. */
        String source() {
            if (WHOLE.matcher(code).find()) {
                return "package " + folder + ";\n" + code;
            }
            return "package " + folder + ";\n"
                    + FRAME.formatted(
                            lines(true),
                            code.contains("RdmaEventLoopGroup group =")
                                    ? ""
                                    : "static org.verbena.api.RdmaEventLoopGroup group;",
                            lines(false));
        }

        String lines(boolean imports) {
            return code.lines()
                    .filter(line -> line.startsWith("import ") == imports)
                    .collect(Collectors.joining("\n"));
        }

        @Override
        public String toString() {
            return place;
        }
    }
}
