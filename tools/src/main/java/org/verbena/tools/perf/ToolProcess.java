package org.verbena.tools.perf;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;

/**
 * The process of a C program that measures.
 *
 * @param tool the set of the program
 * @param run what to measure to measure
 * @param hasDevice whether perf uses an RDMA device, which the program is to use as well
 */
record ToolProcess(PerfTool tool, ToolRun run, boolean hasDevice) {
    /** The delay for a server that has just started and does not listen yet. */
    private static final int TRIES = 12;

    private static final long PAUSE_MILLIS = 250;

    /** A client that fails after this time had reached its server, and fails for another reason. */
    private static final long TRIES_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** The time limit: this multiple of perf's time, plus this many seconds. */
    private static final int SLOWER = 10;

    private static final int SLOWER_SECONDS = 20;

    /** The folders of programs. */
    static String path() {
        String path = System.getenv("PATH");
        return path == null ? "/usr/bin" : path;
    }

    /**
     * Starts it.
     *
     * @param host the server that a client connects to; null for a server
     * @param output where its output goes
     * @throws CommandFailure it is not installed
     * @throws IOException it cannot be started
     */
    Process start(int port, @Nullable String host, ProcessBuilder.Redirect output) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(tool.command(run, path(), port, host));
        Map<String, String> environment = builder.environment();
        tool.environment(hasDevice).forEach(environment::putIfAbsent);
        return builder.redirectInput(
                        ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()))
                .redirectErrorStream(true)
                .redirectOutput(output)
                .start();
    }

    /**
     * Runs the client to its end.
     *
     * @throws CommandFailure it failed or printed no figures
     */
    ToolFigures measure(InetAddress server, int port) throws IOException, InterruptedException {
        Path output = Files.createTempFile("verbena-perf", ".txt");
        try {
            long triesEndNanos = System.nanoTime() + TRIES_NANOS;
            for (int left = TRIES; ; left--) {
                int exitCode = run(server, port, output);
                String printed = Files.readString(output, StandardCharsets.ISO_8859_1);
                if (exitCode == 0) {
                    return tool.figures(run, printed);
                }
                if (left == 1 || System.nanoTime() - triesEndNanos > 0) {
                    throw new CommandFailure(tool.program(run) + " ended with " + exitCode + ": " + printed.strip());
                }
                Thread.sleep(PAUSE_MILLIS);
            }
        } finally {
            Files.delete(output);
        }
    }

    private int run(InetAddress server, int port, Path output) throws IOException, InterruptedException {
        Process client = start(port, server.getHostAddress(), ProcessBuilder.Redirect.to(output.toFile()));
        try {
            if (!client.waitFor((long) SLOWER * run.seconds() + SLOWER_SECONDS, TimeUnit.SECONDS)) {
                throw new CommandFailure(tool.program(run) + " has not ended in time");
            }
            return client.exitValue();
        } finally {
            client.destroyForcibly();
        }
    }
}
