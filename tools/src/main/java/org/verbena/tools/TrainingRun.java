package org.verbena.tools;

import java.io.PrintWriter;

/**
 * The build runs this to fill the JVM's ahead-of-time cache, from which the {@code verbena} command starts: the help of
 * every command, and both ends of a conversation. Classes that it does not reach, for lack of a device or a network,
 * are loaded from their jars.
 */
final class TrainingRun {
    /** The time for each line of the demonstration: long enough to load its classes. */
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
