package org.verbena.tools.perf;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** A mixin: lets a C program measure the same after each test and size. */
final class PerfAgainst {
    /** How often a program measures whose figures are not all finite. */
    private static final int MEASUREMENTS = 5;

    @Option(
            names = "--against",
            paramLabel = "TOOL",
            description =
                    "After each test and size, measure the same with a C program, between a client and a server of"
                            + " its own, and print the ratio: perftest, qperf or ucx. The server needs --with TOOL.")
    private @Nullable PerfTool tool;

    @Spec(Spec.Target.MIXEE)
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandSpec spec;

    private int failures;

    boolean isOn() {
        return tool != null;
    }

    /** The exit code, if nothing else fails: 1 if a comparison was possible and failed. */
    int exitCode() {
        return failures == 0 ? CommandLine.ExitCode.OK : CommandLine.ExitCode.SOFTWARE;
    }

    /**
     * Checks what will be measured, before the first test.
     *
     * @throws ParameterException the program can measure none of it
     * @throws CommandFailure it is not installed here
     */
    void check(List<ToolRun> runs, double ratePerSecond, boolean hasDevice) {
        PerfTool it = tool;
        if (it == null) {
            return;
        }
        String reason = null;
        boolean fits = false;
        for (ToolRun run : runs) {
            String unfit = it.unfit(run, ratePerSecond, hasDevice);
            if (unfit == null) {
                fits = true;
                it.command(run, ToolProcess.path(), 1, "");
            } else {
                reason = unfit;
            }
        }
        if (!fits) {
            throw new ParameterException(spec.commandLine(), "--against " + it + ": " + reason);
        }
    }

    /** Lets the program measure what perf has measured; null if it is not wanted. */
    @Nullable Compared compare(PerfConnection connection, PerfTest test, PerfFigures mine, double seconds, boolean hasDevice)
            throws InterruptedException {
        PerfTool it = tool;
        if (it == null) {
            return null;
        }
        ToolRun run = ToolRun.of(test, mine, seconds);
        String unfit = it.unfit(run, mine.ratePerSecond(), hasDevice);
        if (unfit != null) {
            return Compared.failed(it, null, unfit);
        }
        try {
            InetSocketAddress server = connection.client().channel().remoteAddress();
            if (server == null) {
                throw new CommandFailure("the connection has ended");
            }
            for (int left = MEASUREMENTS; left > 0; left--) {
                int port = connection.startTool(it, run);
                try {
                    ToolFigures its = new ToolProcess(it, run, hasDevice).measure(server.getAddress(), port);
                    if (its.areFinite()) {
                        return Compared.of(it, run, mine, its);
                    }
                } finally {
                    connection.endTool();
                }
            }
            throw new CommandFailure(
                    it.program(run) + " has printed inf or nan for a figure each time: is the machine's clock steady?");
        } catch (CommandFailure | IOException e) {
            failures++;
            return Compared.failed(it, it.program(run), String.valueOf(e.getMessage()));
        }
    }
}
