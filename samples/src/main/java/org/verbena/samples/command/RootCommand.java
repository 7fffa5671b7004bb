package org.verbena.samples.command;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.verbena.transport.RdmaException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.ScopeType;

/**
 * A command that consists of others. Exit codes: 0 success, 1 failure, 2 wrong usage. Results go to standard output,
 * logs and errors to standard error.
 */
@Command(
        versionProvider = Version.class,
        scope = ScopeType.INHERIT,
        usageHelpAutoWidth = true,
        synopsisSubcommandLabel = "COMMAND",
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {"0:success", "1:failure", "2:wrong usage"})
public abstract class RootCommand implements Runnable {
    private final Map<String, List<String>> groups;
    private final List<String> names;

    // Not picocli's standard pair: that takes -V, which rping has.
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            scope = ScopeType.INHERIT,
            description = "Show this help.")
    @SuppressWarnings("UnusedVariable") // picocli acts on it
    private boolean helpWanted;

    @Option(names = "--version", versionHelp = true, scope = ScopeType.INHERIT, description = "Show the version.")
    @SuppressWarnings("UnusedVariable") // picocli acts on it
    private boolean versionWanted;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    /**
     * Creates it.
     *
     * @param groups the names of all commands, in the groups and the order that the help has
     */
    protected RootCommand(Map<String, List<String>> groups) {
        this.groups = groups;
        names = groups.values().stream().flatMap(List::stream).toList();
    }

    /**
     * Finds a command.
     *
     * @param name one of the names
     * @return its class; no other command's is loaded
     */
    protected abstract Class<?> command(String name);

    /**
     * Creates the command line that these arguments need. Each command's model costs time and loads classes: only the
     * command that they name is built, if any.
     *
     * @param args a command and its options
     * @return a new command line, which has not run
     */
    public final CommandLine commandLineFor(String... args) {
        CommandLine root = new CommandLine(this);
        boolean isHelp = args.length > 0 && args[0].equals(HelpCommand.NAME);
        if (isHelp) {
            root.addSubcommand(HelpCommand.NAME, new HelpCommand());
        }
        // The options before the command's name have no values.
        Stream.of(args)
                .skip(isHelp ? 1 : 0)
                .filter(arg -> !arg.startsWith("-"))
                .findFirst()
                .filter(names::contains)
                .ifPresent(name -> root.addSubcommand(name, command(name)));
        return framed(root);
    }

    /**
     * Creates a command line that has all commands.
     *
     * @return a new command line, which has not run
     */
    public final CommandLine commandLineOfAll() {
        CommandLine root = new CommandLine(this);
        names.forEach(name -> root.addSubcommand(name, command(name)));
        return framed(root);
    }

    private CommandLine framed(CommandLine root) {
        new GroupedHelp(groups, this::command).show(root);
        Complaints complaints = new Complaints(names, this::needsNoStackTrace);
        return root.setExecutionStrategy(RootCommand::execute)
                .setExecutionExceptionHandler(complaints::explain)
                .setParameterExceptionHandler(complaints::refuse)
                .setCaseInsensitiveEnumValuesAllowed(true);
    }

    @Override
    public final void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "choose a command");
    }

    /** An unknown command is an error even with {@code --help}, which picocli would accept. */
    private static int execute(ParseResult parsed) {
        for (ParseResult level = parsed; level != null; level = level.subcommand()) {
            List<String> unmatched = level.unmatched();
            if (!unmatched.isEmpty()) {
                throw new CommandLine.UnmatchedArgumentException(
                        level.commandSpec().commandLine(), unmatched);
            }
        }
        return new CommandLine.RunLast().execute(parsed);
    }

    /**
     * Whether a failure's message is all that a user needs. Others are printed with their stack traces.
     *
     * @param failure what a command has thrown
     */
    protected boolean needsNoStackTrace(Exception failure) {
        return failure instanceof RdmaException
                || failure instanceof UnsupportedOperationException
                || failure instanceof CommandFailure
                || failure instanceof IOException;
    }
}
