package org.verbena.tools;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.AutoComplete;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** Prints the script with which a shell completes commands and options. */
@Command(
        name = "completion",
        description = "Prints the script with which bash and zsh complete commands and options.",
        footer = "%nUse it by:  source <(verbena completion)")
final class Completion implements Callable<Integer> {
    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        out.print(AutoComplete.bash("verbena", Main.commandLineOfAllCommands()));
        out.flush();
        return CommandLine.ExitCode.OK;
    }
}
