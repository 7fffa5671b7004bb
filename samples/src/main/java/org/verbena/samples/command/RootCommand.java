package org.verbena.samples.command;

import static picocli.CommandLine.Model.UsageMessageSpec.SECTION_KEY_COMMAND_LIST;
import static picocli.CommandLine.Model.UsageMessageSpec.SECTION_KEY_COMMAND_LIST_HEADING;
import static picocli.CommandLine.Model.UsageMessageSpec.SECTION_KEY_SYNOPSIS;

import java.io.IOException;
import java.util.Collection;
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
        // The options before the command's name have no values.
        Stream.of(args)
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
        root.getHelpSectionMap().put(SECTION_KEY_SYNOPSIS, RootCommand::synopsis);
        root.getHelpSectionMap().put(SECTION_KEY_COMMAND_LIST_HEADING, help -> "");
        root.getHelpSectionMap().put(SECTION_KEY_COMMAND_LIST, this::commandGroups);
        return root.setExecutionStrategy(RootCommand::execute)
                .setExecutionExceptionHandler(this::explain)
                .setParameterExceptionHandler(this::refuse)
                .setCaseInsensitiveEnumValuesAllowed(true);
    }

    /** Names the command's place also where no command has been built. */
    private static String synopsis(CommandLine.Help help) {
        String synopsis = help.synopsis(help.synopsisHeadingLength());
        return help.subcommands().isEmpty()
                ? synopsis.stripTrailing() + " "
                        + help.commandSpec().usageMessage().synopsisSubcommandLabel() + System.lineSeparator()
                : synopsis;
    }

    @Override
    public final void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "choose a command");
    }

    /** The commands, group by group. */
    private String commandGroups(CommandLine.Help help) {
        int nameColumns = 2 + names.stream().mapToInt(String::length).max().orElse(0);
        int columns = help.commandSpec().usageMessage().width();
        StringBuilder text = new StringBuilder();
        groups.forEach((group, members) -> {
            text.append(String.format("%n%s:%n", group));
            CommandLine.Help.TextTable table = CommandLine.Help.TextTable.forColumns(
                    help.colorScheme(),
                    new CommandLine.Help.Column(nameColumns, 2, CommandLine.Help.Column.Overflow.SPAN),
                    new CommandLine.Help.Column(columns - nameColumns, 2, CommandLine.Help.Column.Overflow.WRAP));
            for (String name : members) {
                table.addRowValues(
                        name, command(name).getAnnotation(Command.class).description()[0]);
            }
            text.append(table);
        });
        return text.toString();
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

    /** Prints one line for wrong usage, which names the help; without any argument, all commands are listed first. */
    private int refuse(CommandLine.ParameterException wrong, String[] args) {
        CommandLine command = wrong.getCommandLine();
        String path = command.getCommandSpec().qualifiedName();
        if (args.length == 0) {
            command.usage(command.getErr());
        }
        String what = String.valueOf(wrong.getMessage());
        if (wrong instanceof CommandLine.UnmatchedArgumentException unmatched
                && !unmatched.getUnmatched().isEmpty()) {
            String first = unmatched.getUnmatched().getFirst();
            Collection<String> possible;
            if (first.startsWith("-")) {
                possible = command.getCommandSpec().optionsMap().keySet();
            } else {
                possible = command.getParent() == null
                        ? names
                        : command.getSubcommands().keySet();
                what = possible.isEmpty() ? what : "there is no command '" + first + "'";
            }
            List<String> similar = SimilarNames.of(first, possible);
            what += similar.isEmpty() ? "" : "; did you mean " + String.join(" or ", similar) + "?";
        }
        command.getErr().println(withoutRoot(path) + ": " + what + " (see " + path + " --help)");
        return CommandLine.ExitCode.USAGE;
    }

    /**
     * Prints one line for failures that a user can do something about, and a stack trace as well for others or with
     * {@code -v}.
     */
    private int explain(Exception failure, CommandLine command, ParseResult parsed) {
        boolean ours = needsNoStackTrace(failure);
        String name = withoutRoot(command.getCommandSpec().qualifiedName());
        command.getErr().println(name + ": " + (ours ? failure.getMessage() : failure.toString()));
        if (!ours || Verbosity.isRaised()) {
            failure.printStackTrace(command.getErr());
        }
        return CommandLine.ExitCode.SOFTWARE;
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

    private static String withoutRoot(String path) {
        return path.substring(path.indexOf(' ') + 1);
    }
}
