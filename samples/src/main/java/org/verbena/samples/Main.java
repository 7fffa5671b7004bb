package org.verbena.samples;

import org.verbena.transport.spi.RdmaException;
import org.verbena.verbs.NativeRdmaException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.ScopeType;

/**
 * The {@code verbena} command. Exit codes: 0 fine, 1 failed, 2 wrong usage. Results go to standard output, logs and complaints to
 * standard error.
 */
@Command(
        name = "verbena",
        description = "Asynchronous RDMA messaging for the JVM.",
        versionProvider = Version.class,
        scope = ScopeType.INHERIT,
        usageHelpAutoWidth = true,
        synopsisSubcommandLabel = "COMMAND",
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {"0:fine", "1:failed", "2:wrong usage"},
        subcommands = {
            Demo.class,
            Devices.class,
            EchoServer.class,
            EchoClient.class,
            NettyEchoServer.class,
            NettyEchoClient.class,
            TableServer.class,
            TableClient.class,
            SendFile.class,
            RecvFile.class,
            KvServer.class,
            KvClient.class,
            GrpcServer.class,
            GrpcClient.class,
            HttpServer.class,
            HttpClient.class,
            Rping.class,
            PingPong.class,
            RdmaRc.class,
            AsyncWatch.class
        })
public final class Main implements Runnable {
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
     * @return its exit code: 0 fine, 1 failed, 2 wrong usage
     */
    public static int run(String... args) {
        return commandLine().execute(args);
    }

    static CommandLine commandLine() {
        return new CommandLine(new Main())
                .setExecutionExceptionHandler(Main::explain)
                .setCaseInsensitiveEnumValuesAllowed(true);
    }

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "Which command?");
    }

    /** One line for what the user can mend; a stack trace as well for what only a programmer can, or if asked for details. */
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
