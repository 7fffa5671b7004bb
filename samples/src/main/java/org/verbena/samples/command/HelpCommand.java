package org.verbena.samples.command;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** {@code help COMMAND} is short for {@code COMMAND --help}. */
@Command(description = "Shows the help of a command.")
final class HelpCommand implements Runnable {
    static final String NAME = "help";

    @Parameters(arity = "0..1", paramLabel = "COMMAND", description = "The command.")
    private @Nullable String name;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public void run() {
        CommandLine root = spec.commandLine().getParent();
        CommandLine shown = name == null ? root : root.getSubcommands().get(name);
        if (shown == null) {
            throw new CommandLine.ParameterException(root, "there is no command '" + name + "'");
        }
        shown.usage(root.getOut());
    }
}
