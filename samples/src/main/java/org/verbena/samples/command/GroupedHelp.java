package org.verbena.samples.command;

import static picocli.CommandLine.Model.UsageMessageSpec.SECTION_KEY_COMMAND_LIST;
import static picocli.CommandLine.Model.UsageMessageSpec.SECTION_KEY_COMMAND_LIST_HEADING;
import static picocli.CommandLine.Model.UsageMessageSpec.SECTION_KEY_SYNOPSIS;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/**
 * The help of a command that consists of others: it lists them in groups, including commands that have not been built.
 */
final class GroupedHelp {
    private final Map<String, List<String>> groups;
    private final Function<String, Class<?>> commands;

    /**
     * Prepares it.
     *
     * @param groups the names of all commands, in the groups and the order that the help has
     * @param commands finds a command's class
     */
    GroupedHelp(Map<String, List<String>> groups, Function<String, Class<?>> commands) {
        this.groups = groups;
        this.commands = commands;
    }

    /** Makes it the help of a command line. */
    void show(CommandLine root) {
        root.getHelpSectionMap().put(SECTION_KEY_SYNOPSIS, GroupedHelp::synopsis);
        root.getHelpSectionMap().put(SECTION_KEY_COMMAND_LIST_HEADING, help -> "");
        root.getHelpSectionMap().put(SECTION_KEY_COMMAND_LIST, this::list);
    }

    /** Shows the command's place even if no command has been built. */
    private static String synopsis(CommandLine.Help help) {
        String synopsis = help.synopsis(help.synopsisHeadingLength());
        return help.subcommands().isEmpty()
                ? synopsis.stripTrailing() + " "
                        + help.commandSpec().usageMessage().synopsisSubcommandLabel() + System.lineSeparator()
                : synopsis;
    }

    private String list(CommandLine.Help help) {
        int nameColumns = 2
                + groups.values().stream()
                        .flatMap(Collection::stream)
                        .mapToInt(String::length)
                        .max()
                        .orElse(0);
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
                        name, commands.apply(name).getAnnotation(Command.class).description()[0]);
            }
            text.append(table);
        });
        return text.toString();
    }
}
