package org.verbena.tools.perf;

import picocli.CommandLine;
import picocli.CommandLine.Command;

/** Measures latency and bandwidth between two machines, as the programs of perftest do. */
@Command(
        name = "perf",
        description = "Measures latency and bandwidth between two machines, as perftest does.",
        subcommands = {PerfServer.class, PerfClient.class})
public final class Perf implements Runnable {
    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "choose server or client");
    }
}
