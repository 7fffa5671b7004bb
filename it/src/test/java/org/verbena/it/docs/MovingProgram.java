package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;

/** The programs of docs/moving.md, in its order; each says hello to a server and waits for the answer. */
public enum MovingProgram {
    DISNI("DisniClient", "ask"),
    BINDINGS("Snippet", "run"),
    CHANNEL_API("Snippet", "run");

    private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);

    private final String className;
    private final String method;

    MovingProgram(String className, String method) {
        this.className = className;
        this.method = method;
    }

    /** A program that is compiled. */
    public interface Compiled {
        /** Runs it. */
        void run() throws Exception;
    }

    /**
     * Compiles it as it stands on the page, but for the server's address.
     *
     * @param folder for its classes
     * @param host of the server, an address
     * @param port of the server
     */
    public Compiled compile(Path folder, String host, int port) throws IOException {
        String code = code().replace("7471", String.valueOf(port)).replace("\"host\"", '"' + host + '"');
        SnippetsTest.Snippet program = new SnippetsTest.Snippet("moving", "docs/moving.md", code);
        assertThat(program.file()).isEqualTo("moving/" + className + ".java");
        SnippetsTest.compile(folder, className + ".java", program.source());
        return () -> run(folder, host);
    }

    private void run(Path folder, String host) throws Exception {
        try (URLClassLoader loader = new URLClassLoader(
                new URL[] {folder.toUri().toURL()}, getClass().getClassLoader())) {
            Class<?> compiled = loader.loadClass("moving." + className);
            Method run = this == DISNI
                    ? compiled.getDeclaredMethod(method, String.class)
                    : compiled.getDeclaredMethod(method);
            run.setAccessible(true);
            run.invoke(null, this == DISNI ? new Object[] {host} : new Object[0]);
        }
    }

    private String code() throws IOException {
        List<String> blocks = BLOCK.matcher(Files.readString(SnippetsTest.root().resolve("docs/moving.md")))
                .results()
                .map(block -> block.group(1))
                .toList();
        assertThat(blocks).hasSameSizeAs(values());
        return blocks.get(ordinal());
    }
}
