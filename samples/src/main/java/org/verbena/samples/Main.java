package org.verbena.samples;

import static picocli.CommandLine.Model.UsageMessageSpec.SECTION_KEY_COMMAND_LIST;
import static picocli.CommandLine.Model.UsageMessageSpec.SECTION_KEY_COMMAND_LIST_HEADING;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.Verbosity;
import org.verbena.samples.devices.AsyncWatch;
import org.verbena.samples.devices.Devices;
import org.verbena.samples.devices.DoctorCommand;
import org.verbena.samples.echo.EchoClient;
import org.verbena.samples.echo.EchoServer;
import org.verbena.samples.echo.NettyEchoClient;
import org.verbena.samples.echo.NettyEchoServer;
import org.verbena.samples.endpoint.RdmaClientCommand;
import org.verbena.samples.endpoint.RdmaServerCommand;
import org.verbena.samples.files.RecvFile;
import org.verbena.samples.files.SendFile;
import org.verbena.samples.grpc.GrpcClient;
import org.verbena.samples.grpc.GrpcServer;
import org.verbena.samples.http.HttpClient;
import org.verbena.samples.http.HttpServer;
import org.verbena.samples.kv.KvClient;
import org.verbena.samples.kv.KvServer;
import org.verbena.samples.perf.Perf;
import org.verbena.samples.pingpong.PingPong;
import org.verbena.samples.pingpong.RdmaRc;
import org.verbena.samples.rping.Rping;
import org.verbena.samples.stat.Stat;
import org.verbena.samples.table.TableClient;
import org.verbena.samples.table.TableServer;
import org.verbena.samples.tutorial.TutorialClient;
import org.verbena.samples.tutorial.TutorialServer;
import org.verbena.transport.spi.RdmaException;
import org.verbena.verbs.NativeRdmaException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.ScopeType;

/**
 * The {@code verbena} command. Exit codes: 0 success, 1 failure, 2 wrong usage. Results go to standard output, logs and
 * errors to standard error.
 */
@Command(
        name = "verbena",
        description = "Asynchronous RDMA messaging for the JVM.",
        versionProvider = Version.class,
        scope = ScopeType.INHERIT,
        usageHelpAutoWidth = true,
        synopsisSubcommandLabel = "COMMAND",
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {"0:success", "1:failure", "2:wrong usage"})
public final class Main implements Runnable {
    /** All commands, in the groups that the help has. */
    static final Map<String, List<String>> GROUPS = groups();

    /** All commands, as the help has them. */
    static final List<String> COMMANDS =
            GROUPS.values().stream().flatMap(List::stream).toList();

    private static Map<String, List<String>> groups() {
        Map<String, List<String>> groups = new LinkedHashMap<>();
        groups.put("To begin with", List.of("demo", "devices", "doctor", "perf", "stat", "completion"));
        groups.put(
                "Messages and one-sided operations",
                List.of("echo-server", "echo-client", "table-server", "table-client"));
        groups.put("Files and values", List.of("recv-file", "send-file", "kv-server", "kv-client"));
        groups.put(
                "Netty, gRPC and HTTP",
                List.of(
                        "netty-echo-server",
                        "netty-echo-client",
                        "grpc-server",
                        "grpc-client",
                        "http-server",
                        "http-client"));
        groups.put(
                "The raw bindings",
                List.of(
                        "rping",
                        "pingpong",
                        "rdma-rc",
                        "rdma-server",
                        "rdma-client",
                        "tutorial-server",
                        "tutorial-client",
                        "asyncwatch"));
        return Collections.unmodifiableMap(groups);
    }

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

    private Main() {}

    /**
     * Runs a command and ends the JVM with its exit code.
     *
     * @param args a command and its options
     */
    public static void main(String[] args) {
        System.exit(run(args));
    }

    /**
     * Runs a command.
     *
     * @param args a command and its options
     * @return its exit code: 0 success, 1 failure, 2 wrong usage
     */
    public static int run(String... args) {
        return commandLine(args).execute(args);
    }

    /**
     * Creates the command line that these arguments need. Each command's model costs time and loads classes: if the
     * first argument names a command, only that one is built; {@code --version} alone needs none. Everything else, such
     * as help and wrong usage at this level, gets all commands.
     */
    public static CommandLine commandLine(String... args) {
        CommandLine root = new CommandLine(new Main());
        if (args.length > 0 && COMMANDS.contains(args[0])) {
            root.addSubcommand(args[0], command(args[0]));
        } else if (args.length != 1 || !args[0].equals("--version")) {
            COMMANDS.forEach(name -> root.addSubcommand(name, command(name)));
        }
        root.getHelpSectionMap().put(SECTION_KEY_COMMAND_LIST_HEADING, help -> "");
        root.getHelpSectionMap().put(SECTION_KEY_COMMAND_LIST, Main::commandGroups);
        return root.setExecutionStrategy(Main::execute)
                .setExecutionExceptionHandler(Main::explain)
                .setParameterExceptionHandler(Main::refuse)
                .setCaseInsensitiveEnumValuesAllowed(true);
    }

    /** A switch, because it loads no class but the one asked for. */
    private static Class<?> command(String name) {
        return switch (name) {
            case "demo" -> Demo.class;
            case "devices" -> Devices.class;
            case "doctor" -> DoctorCommand.class;
            case "perf" -> Perf.class;
            case "stat" -> Stat.class;
            case "completion" -> Completion.class;
            case "echo-server" -> EchoServer.class;
            case "echo-client" -> EchoClient.class;
            case "netty-echo-server" -> NettyEchoServer.class;
            case "netty-echo-client" -> NettyEchoClient.class;
            case "table-server" -> TableServer.class;
            case "table-client" -> TableClient.class;
            case "send-file" -> SendFile.class;
            case "recv-file" -> RecvFile.class;
            case "kv-server" -> KvServer.class;
            case "kv-client" -> KvClient.class;
            case "grpc-server" -> GrpcServer.class;
            case "grpc-client" -> GrpcClient.class;
            case "http-server" -> HttpServer.class;
            case "http-client" -> HttpClient.class;
            case "rping" -> Rping.class;
            case "pingpong" -> PingPong.class;
            case "rdma-rc" -> RdmaRc.class;
            case "rdma-server" -> RdmaServerCommand.class;
            case "rdma-client" -> RdmaClientCommand.class;
            case "tutorial-server" -> TutorialServer.class;
            case "tutorial-client" -> TutorialClient.class;
            case "asyncwatch" -> AsyncWatch.class;
            default -> throw new IllegalArgumentException(name);
        };
    }

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "choose a command");
    }

    /** The commands, group by group. */
    private static String commandGroups(CommandLine.Help help) {
        Map<String, CommandLine.Help> commands = help.subcommands();
        int nameColumns = 2 + COMMANDS.stream().mapToInt(String::length).max().orElse(0);
        int columns = help.commandSpec().usageMessage().width();
        StringBuilder text = new StringBuilder();
        GROUPS.forEach((group, names) -> {
            text.append(String.format("%n%s:%n", group));
            CommandLine.Help.TextTable table = CommandLine.Help.TextTable.forColumns(
                    help.colorScheme(),
                    new CommandLine.Help.Column(nameColumns, 2, CommandLine.Help.Column.Overflow.SPAN),
                    new CommandLine.Help.Column(columns - nameColumns, 2, CommandLine.Help.Column.Overflow.WRAP));
            for (String name : names) {
                CommandLine.Help command = commands.get(name);
                if (command != null) {
                    table.addRowValues(
                            name, command.commandSpec().usageMessage().description()[0]);
                }
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
    private static int refuse(CommandLine.ParameterException wrong, String[] args) {
        CommandLine command = wrong.getCommandLine();
        String path = command.getCommandSpec().qualifiedName();
        if (args.length == 0) {
            command.usage(command.getErr());
        }
        String what = String.valueOf(wrong.getMessage());
        if (wrong instanceof CommandLine.UnmatchedArgumentException unmatched
                && !unmatched.getUnmatched().isEmpty()) {
            String first = unmatched.getUnmatched().getFirst();
            if (!first.startsWith("-") && !command.getSubcommands().isEmpty()) {
                what = "there is no command '" + first + "'";
            }
            List<String> similar = unmatched.getSuggestions();
            what += similar.isEmpty() ? "" : "; did you mean " + String.join(" or ", similar) + "?";
        }
        command.getErr().println(path.replaceFirst("^verbena ", "") + ": " + what + " (see " + path + " --help)");
        return CommandLine.ExitCode.USAGE;
    }

    /**
     * Prints one line for failures that a user can do something about, and a stack trace as well for others or with
     * {@code -v}.
     */
    private static int explain(Exception failure, CommandLine command, ParseResult parsed) {
        boolean ours = failure instanceof RdmaException
                || failure instanceof NativeRdmaException
                || failure instanceof UnsupportedOperationException
                || failure instanceof CommandFailure
                || failure instanceof java.io.IOException;
        String name = command.getCommandSpec().qualifiedName().replaceFirst("^verbena ", "");
        command.getErr().println(name + ": " + (ours ? failure.getMessage() : failure.toString()));
        if (!ours || Verbosity.isRaised()) {
            failure.printStackTrace(command.getErr());
        }
        return CommandLine.ExitCode.SOFTWARE;
    }
}
