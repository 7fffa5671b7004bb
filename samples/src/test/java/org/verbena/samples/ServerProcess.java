package org.verbena.samples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A server's process, which has said that it listens. The tests of the {@code verbena} command use it too. */
public final class ServerProcess implements AutoCloseable {
    private static final Pattern PORT = Pattern.compile(":(\\d+) \\(soft\\)");

    /** For a JVM to end on a busy machine. */
    private static final long LIMIT_SECONDS = 60;

    private final Process process;
    private final BufferedReader out;
    public final int port;

    public ServerProcess(String... command) throws IOException {
        this(new ProcessBuilder(commandLine(command)));
    }

    public ServerProcess(ProcessBuilder builder) throws IOException {
        process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
        out = process.inputReader(StandardCharsets.UTF_8);
        String line = out.readLine();
        assertThat(line).as("the server's line").isNotNull().contains("listens on");
        Matcher found = PORT.matcher(line);
        assertThat(found.find()).as(line).isTrue();
        port = Integer.parseInt(found.group(1));
    }

    /** A JVM of its own that runs a sample. */
    public static List<String> commandLine(String... command) {
        return commandLine(Samples.class, command);
    }

    /** A JVM of its own that runs a program. Runs are short: one compiler and a simple collector are enough. */
    public static List<String> commandLine(Class<?> program, String... command) {
        List<String> all = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-cp",
                System.getProperty("java.class.path"),
                program.getName()));
        all.addAll(List.of(command));
        return all;
    }

    /** The next line that it prints. */
    public String readLine() throws IOException {
        return out.readLine();
    }

    public long pid() {
        return process.pid();
    }

    /** SIGTERM is the way to stop a server. */
    public void stop() throws InterruptedException {
        process.destroy();
        assertThat(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isZero();
    }

    /** SIGKILL. */
    public void kill() throws InterruptedException {
        process.destroyForcibly();
        assertThat(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)).isTrue();
    }

    public List<String> awaitEnd() throws InterruptedException {
        List<String> lines = out.lines().toList();
        assertThat(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isZero();
        return lines;
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
