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
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The Java that the documents show compiles against what is built. */
class SnippetsTest {
    private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);

    /** What a snippet may take for granted. */
    private static final String FRAME = """
            import static java.nio.charset.StandardCharsets.UTF_8;
            import io.grpc.BindableService;
            import io.grpc.ManagedChannel;
            import io.grpc.Server;
            import io.grpc.netty.*;
            import io.netty.bootstrap.*;
            import io.netty.buffer.*;
            import io.netty.channel.*;
            import io.netty.handler.ssl.*;
            import java.io.File;
            import java.lang.foreign.*;
            import java.util.*;
            import io.micrometer.core.instrument.MeterRegistry;
            import org.verbena.api.*;
            import org.verbena.api.metrics.*;
            import org.verbena.grpc.*;
            import org.verbena.transport.protocol.*;
            import org.verbena.transport.spi.*;
            import org.verbena.transport.spi.MemoryDomain.Access;

            class Snippet {
                static RdmaChannel channel;
                static ByteBuf message;
                static MeterRegistry registry;
                static BindableService service;
                static File certificate;
                static File privateKey;
                static File authorities;
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
        for (String document : List.of("README.md", "docs/guide.md", "docs/rpc.md", "docs/observability.md")) {
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

    @ParameterizedTest
    @MethodSource("snippets")
    void compiles(Snippet snippet) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter errors = new StringWriter();
        JavaFileObject source =
                new SimpleJavaFileObject(URI.create("string:///Snippet.java"), JavaFileObject.Kind.SOURCE) {
                    @Override
                    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                        return FRAME.formatted(
                                snippet.code().contains("RdmaEventLoopGroup group")
                                        ? ""
                                        : "static RdmaEventLoopGroup group;",
                                snippet.code());
                    }
                };
        List<String> options =
                List.of("-d", out.toString(), "-cp", System.getProperty("java.class.path"), "-proc:none");
        boolean compiled = compiler.getTask(errors, null, null, options, null, List.of(source))
                .call();
        assertThat(compiled).as(snippet + ": " + errors).isTrue();
    }

    record Snippet(String place, String code) {
        @Override
        public String toString() {
            return place;
        }
    }
}
