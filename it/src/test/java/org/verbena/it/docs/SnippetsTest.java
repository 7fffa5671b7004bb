package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The Java that the documents show compiles against what is built, with the imports that it shows. */
class SnippetsTest {
    static final List<String> DOCUMENTS = List.of(
            "README.md",
            "docs/guide.md",
            "docs/fleet.md",
            "docs/running.md",
            "docs/rpc.md",
            "docs/frameworks.md",
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
                static org.verbena.api.MessageHandler handler;
                %s
                static void run() throws Exception {
            %s
                }
            }
            """;

    @TempDir
    private Path out;

    static Stream<Snippet> snippets() throws IOException {
        List<Snippet> all = new ArrayList<>();
        for (String document : DOCUMENTS) {
            String text = Files.readString(root().resolve(document));
            Matcher block = BLOCK.matcher(text);
            while (block.find()) {
                long line = text.substring(0, block.start()).lines().count() + 1;
                all.add(new Snippet(document + ":" + line, block.group(1)));
            }
        }
        assertThat(all).hasSizeGreaterThan(5);
        return all.stream();
    }

    static Path root() {
        Path here = Path.of("").toAbsolutePath();
        return Files.exists(here.resolve("it/lab")) ? here : here.getParent();
    }

    /** Compiles one file into a folder; a failure has the compiler's messages. */
    static void compile(Path folder, String fileName, String code) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter errors = new StringWriter();
        JavaFileObject source =
                new SimpleJavaFileObject(URI.create("string:///" + fileName), JavaFileObject.Kind.SOURCE) {
                    @Override
                    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                        return code;
                    }
                };
        List<String> options = List.of(
                "-d",
                Files.createDirectories(folder).toString(),
                "-cp",
                System.getProperty("java.class.path"),
                "-proc:none");
        boolean compiled = compiler.getTask(errors, null, null, options, null, List.of(source))
                .call();
        assertThat(compiled).as(errors.toString()).isTrue();
    }

    @ParameterizedTest
    @MethodSource("snippets")
    void compiles(Snippet snippet) throws IOException {
        Matcher whole = Pattern.compile("^public (?:final )?class (\\w+)", Pattern.MULTILINE)
                .matcher(snippet.code());
        if (whole.find()) {
            compile(out, whole.group(1) + ".java", snippet.code());
            return;
        }
        compile(
                out,
                "Snippet.java",
                FRAME.formatted(
                        snippet.lines(true),
                        snippet.code().contains("RdmaEventLoopGroup group =")
                                ? ""
                                : "static org.verbena.api.RdmaEventLoopGroup group;",
                        snippet.lines(false)));
    }

    record Snippet(String place, String code) {
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
