package org.verbena.samples.command;

import picocli.CommandLine;

/** Runs a command. */
public final class Execution {
    private Execution() {}

    /**
     * Runs a command.
     *
     * @param line of {@link RootCommand#commandLineFor}
     * @param args the same
     * @return its exit code; that of a failure if what it has printed could not be written
     */
    public static int run(CommandLine line, String... args) {
        int code = line.execute(args);
        line.getOut().flush();
        if (code == CommandLine.ExitCode.OK && System.out.checkError()) {
            line.getErr().println("verbena: standard output could not be written");
            return CommandLine.ExitCode.SOFTWARE;
        }
        return code;
    }
}
