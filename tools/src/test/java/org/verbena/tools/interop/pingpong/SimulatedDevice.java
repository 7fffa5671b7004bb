package org.verbena.tools.interop.pingpong;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;
import org.verbena.tools.VerbenaProcess;
import org.verbena.transport.spi.Patience;

/**
 * The simulated device of {@code src/test/c/simulated_ibverbs.c}, and processes that talk over it: Java's
 * {@code pingpong} and C's programs. Closing ends them all.
 */
final class SimulatedDevice implements AutoCloseable {
    static final String NAME = "sim0";
    static final String LOCALHOST = "127.0.0.1";

    /** All sides poll: on a busy machine, where they take turns, it takes them minutes. */
    private static final int LIMIT_SECONDS = 180;

    private final Path directory;
    private final List<Side> sides = new ArrayList<>();

    /** A process and what it printed. */
    record Side(String name, Process process, Path output) {
        String text() throws IOException {
            return Files.readString(output);
        }

        boolean hasFailed() {
            return !process.isAlive() && process.exitValue() != 0;
        }

        int awaitExit() throws InterruptedException, IOException {
            assertThat(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS))
                    .as(text())
                    .isTrue();
            return process.exitValue();
        }
    }

    /**
     * Uses what {@link #compile} has made.
     *
     * @param directory where the library is, and what processes print
     */
    SimulatedDevice(Path directory) {
        this.directory = directory;
    }

    /** Compiles the library into a directory; skips the test where it cannot. */
    static void compile(Path directory) throws Exception {
        Assumptions.assumeTrue(
                Files.exists(Path.of("/usr/include/infiniband/verbs.h")), "libibverbs-dev is not installed");
        Path messages = directory.resolve("gcc");
        Process gcc;
        try {
            gcc = new ProcessBuilder(
                            "gcc",
                            "-shared",
                            "-fPIC",
                            "-Wall",
                            "-Werror",
                            "-o",
                            library(directory).toString(),
                            "src/test/c/simulated_ibverbs.c",
                            "-lpthread")
                    .redirectErrorStream(true)
                    .redirectOutput(messages.toFile())
                    .start();
        } catch (IOException missing) {
            Assumptions.abort("gcc is not installed");
            return;
        }
        assertThat(gcc.waitFor()).as(Files.readString(messages)).isZero();
    }

    private static Path library(Path directory) {
        return directory.resolve("libibverbs.so.1");
    }

    private Side start(String name, String lacking, ProcessBuilder builder) throws IOException {
        Path output = directory.resolve("output" + System.nanoTime());
        builder.environment().put("SIMULATED_LACKS", lacking);
        Side side = new Side(
                name,
                builder.redirectErrorStream(true)
                        .redirectOutput(output.toFile())
                        .start(),
                output);
        sides.add(side);
        return side;
    }

    /** Starts {@code verbena pingpong} on it. */
    Side java(String kind, String... arguments) throws IOException {
        return javaLacking("", kind, arguments);
    }

    /** Starts {@code verbena pingpong} on one that lacks something. */
    Side javaLacking(String lacking, String kind, String... arguments) throws IOException {
        List<String> words = new ArrayList<>(List.of("pingpong", kind));
        words.addAll(List.of(arguments));
        List<String> command = VerbenaProcess.commandLine(words.toArray(String[]::new));
        command.add(1, "-Dorg.verbena.verbs.library=" + library(directory));
        return start("Java's side", lacking, new ProcessBuilder(command));
    }

    /** Starts C's program on it. */
    Side c(String kind, String... arguments) throws IOException {
        return cLacking("", kind, arguments);
    }

    /** Starts C's program on one that lacks something. */
    Side cLacking(String lacking, String kind, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of("ibv_" + kind + "_pingpong"));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("LD_LIBRARY_PATH", directory.toString());
        try {
            return start("C's side", lacking, builder);
        } catch (IOException missing) {
            return Assumptions.abort(command.getFirst() + " of ibverbs-utils is not installed");
        }
    }

    /** All processes, in the order in which they were started. */
    List<Side> sides() {
        return sides;
    }

    /**
     * A port that nobody has, below those that the system gives to programs that ask for any: one of those could be
     * another program's by the time a server has started.
     */
    static String freePort() throws IOException {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(20_000, 32_000);
            try (ServerSocket socket = new ServerSocket(port)) {
                return String.valueOf(socket.getLocalPort());
            } catch (BindException taken) {
                continue; // another one
            }
        }
    }

    /** Options that a test has in one string, behind others. */
    static String[] with(String options, String... others) {
        List<String> all = new ArrayList<>(List.of(others));
        if (!options.isEmpty()) {
            all.addAll(List.of(options.split(" ")));
        }
        return all.toArray(String[]::new);
    }

    /** Asks the kernel: to connect would be to be a client. */
    static void awaitListener(Side server, String port) throws Exception {
        Pattern wanted = Pattern.compile("^ *\\d+: \\w+:%04X \\w+:0000 0A ".formatted(Integer.parseInt(port)));
        Patience.until(
                "a listener",
                () -> isListed("tcp", wanted)
                        || isListed("tcp6", wanted)
                        || !server.process().isAlive());
        assertThat(server.process().isAlive())
                .as("the server lives; it printed %s", server.text())
                .isTrue();
    }

    private static boolean isListed(String table, Pattern wanted) {
        try (var lines = Files.lines(Path.of("/proc/net", table))) {
            return lines.anyMatch(line -> wanted.matcher(line).find());
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    /** Waits until all processes have ended, and well. */
    void awaitSuccess() throws Exception {
        CompletableFuture<Void> failed = new CompletableFuture<>();
        List<CompletableFuture<Void>> ends = new ArrayList<>();
        for (Side side : sides) {
            ends.add(side.process().onExit().thenAccept(ended -> {
                if (side.hasFailed()) {
                    failed.complete(null);
                }
            }));
        }
        CompletableFuture.anyOf(failed, CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)))
                .completeOnTimeout(null, LIMIT_SECONDS, TimeUnit.SECONDS)
                .join();
        StringBuilder printed = new StringBuilder();
        for (Side side : sides) {
            printed.append(side.name())
                    .append(
                            side.process().isAlive()
                                    ? ", still running"
                                    : ", ended with " + side.process().exitValue())
                    .append(":\n")
                    .append(side.text());
        }
        for (Side side : sides) {
            assertThat(side.process().isAlive()).as("%s", printed).isFalse();
            assertThat(side.process().exitValue()).as("%s", printed).isZero();
        }
    }

    @Override
    public void close() {
        sides.forEach(side -> side.process().destroyForcibly());
    }
}
