package org.verbena.samples;

import java.io.PrintWriter;

/**
 * What the build runs to fill the JVM's ahead-of-time cache, from which the {@code verbena} command starts: the help of every command, and both
 * ends of a conversation. What fails here, for lack of a device or of a network, is not in the cache and is loaded from its jar.
 */
final class TrainingRun {
    /** So long for each line of the demonstration: long enough to load its classes. */
    private static final String EACH_MILLIS = "20";

    private TrainingRun() {}

    /**
     * Prints nothing.
     *
     * @param args none
     */
    public static void main(String[] args) {
        run("--version");
        run("--help");
        Main.COMMANDS.forEach(command -> run(command, "--help"));
        run("devices");
        run("rping", "-c", "-a", "127.0.0.1");
        run("demo", "-v", "--provider", "soft", "--millis", EACH_MILLIS);
        System.exit(0);
    }

    private static void run(String... args) {
        PrintWriter nowhere = new PrintWriter(PrintWriter.nullWriter());
        Main.commandLine(args).setOut(nowhere).setErr(nowhere).execute(args);
    }
}
