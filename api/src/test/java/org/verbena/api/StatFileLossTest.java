package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.spi.ChildJvm;
import org.verbena.transport.spi.Patience;

/** Whatever happens to the file that {@code verbena stat} reads, a process with traffic goes on and says so once. */
@Timeout(240)
class StatFileLossTest {
    private static final String OFF = "verbena stat does not see this process any more";
    private static final String NEVER_ON = "verbena stat will not see this process";

    private final List<Process> started = new ArrayList<>();

    @TempDir
    private Path runtime;

    /** Requests until there is a file named "end"; fails at the first that does. */
    static final class Traffic {
        private Traffic() {}

        public static void main(String... arguments) throws Exception {
            if (arguments.length > 1) {
                Thread.currentThread().interrupt(); // as the thread of a pool that is being shut down
            }
            Path end = Path.of(arguments[0], "end");
            RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1);
            System.out.println("interrupted: " + Thread.interrupted());
            MessageHandler echo = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));
            try (RdmaServer server = RdmaServer.builder().provider("soft").bind("127.0.0.1", 0, echo);
                    RdmaClient client = RdmaClient.builder().provider("soft").connect("127.0.0.1", server.port())) {
                long last = System.nanoTime() + TimeUnit.MINUTES.toNanos(4); // should nobody be left who says "end"
                do {
                    assertThat(client.request(new byte[100]).get(60, TimeUnit.SECONDS))
                            .hasSize(100);
                } while (!Files.exists(end) && System.nanoTime() < last);
            }
            System.out.println("answered all");
            group.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
        }
    }

    /** All of Verbena twice in one process, as in a container of web applications, both with traffic. */
    static final class TwoLoaders {
        private TwoLoaders() {}

        public static void main(String... arguments) throws Exception {
            List<URL> path = new ArrayList<>();
            for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
                path.add(Path.of(entry).toUri().toURL());
            }
            List<URLClassLoader> loaders = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                URLClassLoader loader =
                        new URLClassLoader(path.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
                loaders.add(loader);
                Method main =
                        Class.forName(Traffic.class.getName(), true, loader).getDeclaredMethod("main", String[].class);
                main.setAccessible(true);
                main.invoke(null, (Object) arguments);
            }
            for (URLClassLoader loader : loaders) {
                loader.close();
            }
        }
    }

    private Process start(List<String> prefix, String... more) throws IOException {
        return start(Traffic.class, prefix, more);
    }

    private Process start(Class<?> main, List<String> prefix, String... more) throws IOException {
        Path logging = Files.writeString(runtime.resolve("logback.xml"), """
                <configuration>
                  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
                    <encoder><pattern>%level %msg%n</pattern></encoder>
                  </appender>
                  <root level="INFO"><appender-ref ref="out"/></root>
                </configuration>
                """);
        List<String> arguments = new ArrayList<>(List.of(runtime.toString()));
        arguments.addAll(List.of(more));
        List<String> command = new ArrayList<>(prefix);
        command.addAll(ChildJvm.command(
                List.of("-Dlogback.configurationFile=" + logging), main, arguments.toArray(String[]::new)));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("XDG_RUNTIME_DIR", runtime.toString());
        Process process = builder.start();
        started.add(process);
        return process;
    }

    @AfterEach
    void nothingIsLeftRunning() {
        started.forEach(Process::destroyForcibly);
    }

    private String end(Process process) throws Exception {
        Files.writeString(runtime.resolve("end"), "");
        String output = process.inputReader().lines().collect(Collectors.joining("\n"));
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).as(output).isTrue();
        assertThat(output).contains("answered all");
        return output;
    }

    private Path file(Process process) {
        return runtime.resolve("verbena").resolve(Long.toString(process.pid()));
    }

    /** Whether so many bytes were written into it: all of it is. */
    private static boolean isWritten(Path file) {
        try {
            return Files.exists(file) && Files.size(file) > 500_000;
        } catch (IOException gone) {
            return false;
        }
    }

    private static void truncate(Path file) throws IOException {
        FileChannel.open(file, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)
                .close();
    }

    @Test
    void cutToNothing() throws Exception {
        Process process = start(List.of());
        Path file = file(process);
        Patience.until("there is a file", () -> isWritten(file));
        truncate(file);
        Patience.until("the rest of it is removed", () -> !Files.exists(file));
        assertThat(end(process)).containsOnlyOnce(OFF).containsOnlyOnce("was cut to"); // a write may be under way
    }

    @Test
    void removedWithItsDirectory() throws Exception {
        Process process = start(List.of());
        Path file = file(process);
        Patience.until("there is a file", () -> isWritten(file));
        Files.delete(file);
        Files.delete(file.getParent());
        String line = process.inputReader().readLine();
        while (line != null && !line.contains(OFF)) {
            line = process.inputReader().readLine();
        }
        assertThat(line).contains("was removed");
        assertThat(end(process)).doesNotContain(OFF);
    }

    @Test
    void noDirectoryCanBeMade() throws Exception {
        Files.writeString(runtime.resolve("verbena"), "in its place");
        assertThat(end(start(List.of()))).containsOnlyOnce(NEVER_ON).doesNotContain(OFF);
    }

    /** A limit on the length of files is as good as a disk that is full. */
    @Test
    void noRoomForIt() throws Exception {
        Process process = start(List.of("sh", "-c", "ulimit -f 16; exec \"$@\"", "sh"));
        assertThat(end(process)).containsOnlyOnce(NEVER_ON);
        assertThat(file(process)).doesNotExist();
    }

    @Test
    void madeThoughTheFirstThreadIsInterrupted() throws Exception {
        Process process = start(List.of(), "interrupted");
        Path file = file(process);
        Patience.until("there is a file", () -> isWritten(file));
        assertThat(end(process)).contains("interrupted: true").doesNotContain(NEVER_ON, OFF);
        assertThat(file).doesNotExist();
    }

    @Test
    void ofTheFirstOfTwoClassLoaders() throws Exception {
        Files.writeString(runtime.resolve("end"), "");
        Process process = start(TwoLoaders.class, List.of());
        String output = end(process);
        assertThat(output.lines().filter("answered all"::equals)).hasSize(2);
        assertThat(output).containsOnlyOnce(NEVER_ON).containsOnlyOnce("another class loader of this process");
    }

    @Test
    void withoutAPlaceToWriteTo() throws Exception {
        Path nowhere = runtime.resolve("logback.xml").resolve("nowhere"); // no directory can be made in a file
        Process process = start(List.of(
                "env",
                "-u",
                "XDG_RUNTIME_DIR",
                "HOME=" + nowhere,
                "JAVA_TOOL_OPTIONS=-Djava.io.tmpdir=" + nowhere + " -Duser.home=" + nowhere));
        assertThat(end(process)).containsOnlyOnce(NEVER_ON);
    }
}
