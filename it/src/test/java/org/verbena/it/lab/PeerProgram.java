package org.verbena.it.lab;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.verbena.transport.spi.Patience;

/**
 * A program that a test talks with, such as C's {@code rping}: its output is kept, every wait has a limit and says what
 * the program had printed when the limit was passed, and closing kills it.
 *
 * <pre>{@code
 * try (PeerProgram server = PeerProgram.start("rping", "-s", "-a", device.address(), "-p", "7174", "-C", "3")) {
 *     server.awaitListening(7174);
 *     ...
 *     assertThat(server.awaitExit(Patience.LIMIT)).isZero();
 * }
 * }</pre>
 */
public final class PeerProgram implements AutoCloseable {
    /** Long for a program in the guest to come up, and yet nobody likes to wait longer. */
    private static final Duration START_LIMIT = Patience.LIMIT;

    private final List<String> command;
    private final Process process;
    private final Thread reader;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    /** Guarded by the lock; written by the reader. */
    private final List<String> lines = new ArrayList<>();
    /** Guarded by the lock; written by the reader. */
    private boolean ended;

    private PeerProgram(List<String> command, Process process) {
        this.command = command;
        this.process = process;
        this.reader = Thread.ofPlatform().daemon().name("output of " + command).start(this::read);
    }

    /**
     * Starts a program; its output comes line by line, standard error among it.
     *
     * @param command the program and its arguments
     */
    public static PeerProgram start(String... command) {
        return start(List.of(command));
    }

    /**
     * Starts a program; its output comes line by line, standard error among it.
     *
     * @param command the program and its arguments
     */
    public static PeerProgram start(List<String> command) {
        List<String> lineBuffered = new ArrayList<>(List.of("stdbuf", "-oL", "-eL"));
        lineBuffered.addAll(command);
        try {
            Process process =
                    new ProcessBuilder(lineBuffered).redirectErrorStream(true).start();
            process.getOutputStream().close();
            return new PeerProgram(List.copyOf(command), process);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * Runs a program to its end and returns its output.
     *
     * @param limit how long it may take
     * @param command the program and its arguments
     * @throws AssertionError if it fails or takes longer
     */
    public static String run(Duration limit, String... command) {
        try (PeerProgram program = start(command)) {
            int status = program.awaitExit(limit);
            if (status != 0) {
                throw new AssertionError(program.describe("ended with status " + status));
            }
            return program.output();
        }
    }

    /**
     * Starts a Java program with this JVM's class path and flags.
     *
     * @param mainClass its class
     * @param arguments its arguments
     */
    public static PeerProgram startJava(String mainClass, String... arguments) {
        return start(javaCommand(mainClass, arguments));
    }

    /**
     * What starts a Java program with this JVM's class path and flags, for those who put something in front of it.
     *
     * @param mainClass its class
     * @param arguments its arguments
     */
    public static List<String> javaCommand(String mainClass, String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + "/bin/java");
        java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(flag -> !flag.startsWith("-agentlib") && !flag.startsWith("-javaagent"))
                .forEach(command::add);
        String programFlag = System.getProperty("verbena.test.programFlag");
        if (programFlag != null) {
            command.add(programFlag);
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), mainClass));
        command.addAll(List.of(arguments));
        return command;
    }

    /** The process, for what is not here. */
    public Process process() {
        return process;
    }

    /** The process id. */
    public long pid() {
        return process.pid();
    }

    /** What it has printed so far. */
    public String output() {
        lock.lock();
        try {
            return String.join("\n", lines);
        } finally {
            lock.unlock();
        }
    }

    /** The lines it has printed so far. */
    public List<String> lines() {
        lock.lock();
        try {
            return List.copyOf(lines);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits until some rdma_cm listener of this program has the port.
     *
     * @param port the port
     * @throws AssertionError if that does not happen in time, or the program ends
     */
    public void awaitListening(int port) {
        awaitListening(port, START_LIMIT);
    }

    /**
     * As {@link #awaitListening(int)}, with a limit of its own.
     *
     * @param port the port
     * @param limit how long to wait
     */
    public void awaitListening(int port, Duration limit) {
        // "link rxe0/- cm-idn 0 state LISTEN ps TCP pid 210 comm rping src-addr 10.77.0.1:7174": bound to an address,
        // the listener is its device's; bound to any, it is on each device. The pid is that of the thread that made
        // it, which in a JVM is another than the process's.
        Pattern listening = Pattern.compile("state LISTEN .*pid (\\d+) .*:" + port + "\\b");
        Path threads = Path.of("/proc", String.valueOf(pid()), "task");
        await(
                "listen on port " + port,
                limit,
                () -> listening
                        .matcher(capture("rdma", "resource", "show", "cm_id"))
                        .results()
                        .anyMatch(found -> Files.exists(threads.resolve(found.group(1)))));
    }

    /**
     * Waits for a line of its output.
     *
     * @param regex what the line has in it
     * @param limit how long to wait
     * @return the line
     * @throws AssertionError if it does not come in time
     */
    public String awaitLine(String regex, Duration limit) {
        Pattern pattern = Pattern.compile(regex);
        long deadline = System.nanoTime() + limit.toNanos();
        lock.lock();
        try {
            int next = 0;
            while (true) {
                for (; next < lines.size(); next++) {
                    if (pattern.matcher(lines.get(next)).find()) {
                        return lines.get(next);
                    }
                }
                long leftNanos = deadline - System.nanoTime();
                if (ended || leftNanos <= 0) {
                    throw new AssertionError(
                            describe((ended ? "ended" : "ran for " + limit) + " without a line with " + regex));
                }
                changed.awaitNanos(leftNanos);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits until it ends.
     *
     * @param limit how long to wait
     * @return its exit status; 128 + the signal if one ended it; 0 also for an {@code rping} that met its own race
     * @throws AssertionError if it runs longer
     */
    public int awaitExit(Duration limit) {
        try {
            if (!process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new AssertionError(describe("still runs after " + limit));
            }
            reader.join(Duration.ofSeconds(5));
            return metItsOwnRace() ? 0 : process.exitValue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
    }

    /**
     * C's rping closes its event channel, as the last thing it does, while its other thread may be about to wait for an
     * event; that thread then ends the process with -1. Whatever fails before that is printed, and not by this line.
     */
    private boolean metItsOwnRace() {
        return command.getFirst().equals("rping")
                && process.exitValue() == 255
                && output().stripTrailing().endsWith("rdma_get_cm_event: Bad file descriptor")
                && output().lines()
                        .allMatch(line ->
                                line.matches(".*ping data: .*|client DISCONNECT EVENT.*|rdma_get_cm_event: .*"));
    }

    /** Kills it as a crash would, with SIGKILL. */
    public void kill() {
        process.destroyForcibly();
    }

    /** Asks it to end, with SIGTERM. What it prints on its way out is kept, which Process.destroy() would cut off. */
    public void terminate() {
        process.toHandle().destroy();
    }

    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
            reader.join(Duration.ofSeconds(5));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void read() {
        try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                lock.lock();
                try {
                    lines.add(line);
                    changed.signalAll();
                } finally {
                    lock.unlock();
                }
            }
        } catch (IOException e) {
            // The pipe of a killed program may break; what came before it is kept.
        } finally {
            lock.lock();
            try {
                ended = true;
                changed.signalAll();
            } finally {
                lock.unlock();
            }
        }
    }

    private void await(String what, Duration limit, BooleanSupplier condition) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (!process.isAlive()) {
                throw new AssertionError(describe("ended with status " + process.exitValue() + " and did not " + what));
            }
            if (System.nanoTime() - deadline > 0) {
                throw new AssertionError(describe("did not " + what + " in " + limit));
            }
            try {
                process.waitFor(50, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new AssertionError("interrupted", e);
            }
        }
    }

    static String capture(String... command) {
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private String describe(String what) {
        return String.join(" ", command) + " " + what + "; it printed:\n" + output();
    }

    @Override
    public String toString() {
        return String.join(" ", command) + " (pid " + pid() + ")";
    }
}
