package org.verbena.samples.command;

import java.util.Collection;
import java.util.List;
import java.util.function.Predicate;
import picocli.CommandLine;
import picocli.CommandLine.ParseResult;

/** The error messages of commands: one line, which says what to do if there is something to do. */
final class Complaints {
    private final List<String> names;
    private final Predicate<Exception> needsNoStackTrace;

    /**
     * Prepares them.
     *
     * @param names of all commands
     * @param needsNoStackTrace whether a failure's message is all that a user needs
     */
    Complaints(List<String> names, Predicate<Exception> needsNoStackTrace) {
        this.names = names;
        this.needsNoStackTrace = needsNoStackTrace;
    }

    /** Prints one line for wrong usage, which names the help; without any argument, it lists all commands as well. */
    int refuse(CommandLine.ParameterException wrong, String[] args) {
        CommandLine command = wrong.getCommandLine();
        String path = command.getCommandSpec().qualifiedName();
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
        if (args.length == 0) {
            command.usage(command.getErr());
        }
        return CommandLine.ExitCode.USAGE;
    }

    /** Prints one line for failures that a user can act on, and a stack trace as well for others or with {@code -v}. */
    int explain(Exception failure, CommandLine command, ParseResult parsed) {
        boolean ours = needsNoStackTrace.test(failure);
        String name = withoutRoot(command.getCommandSpec().qualifiedName());
        command.getErr().println(name + ": " + (ours ? failure.getMessage() : failure.toString()));
        if (!ours || Verbosity.isRaised()) {
            failure.printStackTrace(command.getErr());
        }
        return CommandLine.ExitCode.SOFTWARE;
    }

    private static String withoutRoot(String path) {
        return path.substring(path.indexOf(' ') + 1);
    }
}
