package org.verbena.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Other JVMs with the class path of this one: how they start, what they say, and how they end. */
public final class JavaProcess {
    /** What a process begins its line with that could not do its part. */
    public static final String FAILED = "FAILED ";

    private static final int SECONDS_TO_END = 5;

    private JavaProcess() {}

    /**
     * The command line of another JVM.
     *
     * @param flags the JVM's
     * @param main the class that it runs
     * @param arguments of that class
     * @return words that {@link #start} takes, perhaps behind others
     */
    public static List<String> command(List<String> flags, Class<?> main, String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(flags);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(arguments));
        return command;
    }

    /**
     * What this JVM's programs are allowed, without its heap, its compilers and its log, followed by other flags.
     *
     * @param flags the other ones
     * @return all of them
     */
    public static List<String> permissionsAnd(String... flags) {
        List<String> all = new ArrayList<>(ManagementFactory.getRuntimeMXBean().getInputArguments());
        all.removeIf(flag -> !flag.startsWith("--") && !flag.startsWith("-Dio.netty"));
        all.addAll(List.of(flags));
        return all;
    }

    /**
     * Starts a process; its errors are seen here.
     *
     * @param command of {@link #command}
     * @return the process, to be ended
     * @throws IOException it cannot be started
     */
    public static Process start(List<String> command) throws IOException {
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    /**
     * Waits for a line.
     *
     * @param process prints it
     * @param start how the line begins
     * @return the rest of it
     * @throws IOException the process ended without it, or said why it failed
     */
    @SuppressWarnings("resource") // the process's own
    public static String awaitLine(Process process, String start) throws IOException {
        BufferedReader output = process.inputReader();
        for (String line; (line = output.readLine()) != null; ) {
            if (line.startsWith(start)) {
                return line.substring(start.length());
            }
            if (line.startsWith(FAILED)) {
                throw new IOException(line);
            }
        }
        throw new IOException("a process ended and did not say \"" + start + "\"");
    }

    /**
     * Ends a process that ends with its input, or is killed if it does not.
     *
     * @param process null if it was not started
     * @throws IOException its input cannot be closed
     * @throws InterruptedException while waiting for its end
     */
    public static void end(@Nullable Process process) throws IOException, InterruptedException {
        if (process == null) {
            return;
        }
        process.getOutputStream().close();
        if (!process.waitFor(SECONDS_TO_END, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor();
        }
    }
}
