package org.verbena.tools;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.verbena.samples.Samples;
import org.verbena.samples.command.Execution;
import org.verbena.samples.command.RootCommand;
import org.verbena.tools.devices.AsyncWatch;
import org.verbena.tools.devices.Devices;
import org.verbena.tools.devices.DoctorCommand;
import org.verbena.tools.interop.endpoint.RdmaClientCommand;
import org.verbena.tools.interop.endpoint.RdmaServerCommand;
import org.verbena.tools.interop.pingpong.PingPong;
import org.verbena.tools.interop.pingpong.RdmaRc;
import org.verbena.tools.interop.rping.Rping;
import org.verbena.tools.interop.tutorial.TutorialClient;
import org.verbena.tools.interop.tutorial.TutorialServer;
import org.verbena.tools.perf.Perf;
import org.verbena.tools.stat.Stat;
import org.verbena.verbs.NativeRdmaException;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/**
 * The {@code verbena} command. Exit codes: 0 success, 1 failure, 2 wrong usage. Results go to standard output, logs and
 * errors to standard error.
 */
@Command(name = "verbena", description = "Asynchronous RDMA messaging for the JVM.")
public final class Main extends RootCommand {
    /** All commands, in the groups that the help has. */
    static final Map<String, List<String>> GROUPS = groups();

    /** All commands, as the help has them. */
    static final List<String> COMMANDS =
            GROUPS.values().stream().flatMap(List::stream).toList();

    private static Map<String, List<String>> groups() {
        Map<String, List<String>> groups = new LinkedHashMap<>();
        groups.put("To begin with", List.of("demo", "devices", "doctor", "perf", "stat", "relay", "completion"));
        groups.putAll(Samples.GROUPS);
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

    private Main() {
        super(GROUPS);
    }

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
        return Execution.run(commandLine(args), args);
    }

    /**
     * Creates the command line that these arguments need.
     *
     * @param args a command and its options
     * @return a new command line, which has not run
     */
    public static CommandLine commandLine(String... args) {
        return new Main().commandLineFor(args);
    }

    /** As {@link #commandLine}, with all commands, for completion, which needs all options. */
    static CommandLine commandLineOfAllCommands() {
        return new Main().commandLineOfAll();
    }

    /** A switch, because it loads only the requested class. */
    @Override
    protected Class<?> command(String name) {
        return switch (name) {
            case "demo" -> Demo.class;
            case "devices" -> Devices.class;
            case "doctor" -> DoctorCommand.class;
            case "perf" -> Perf.class;
            case "stat" -> Stat.class;
            case "relay" -> Relay.class;
            case "completion" -> Completion.class;
            case "rping" -> Rping.class;
            case "pingpong" -> PingPong.class;
            case "rdma-rc" -> RdmaRc.class;
            case "rdma-server" -> RdmaServerCommand.class;
            case "rdma-client" -> RdmaClientCommand.class;
            case "tutorial-server" -> TutorialServer.class;
            case "tutorial-client" -> TutorialClient.class;
            case "asyncwatch" -> AsyncWatch.class;
            default -> Samples.named(name);
        };
    }

    @Override
    protected boolean needsNoStackTrace(Exception failure) {
        return failure instanceof NativeRdmaException || super.needsNoStackTrace(failure);
    }
}
