package org.verbena.samples.command;

import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** A mixin for clients: how much to send. */
public final class TrafficOptions {
    @Option(names = "--count", paramLabel = "N", defaultValue = "10000", description = "Messages (${DEFAULT-VALUE}).")
    public int count;

    @Option(
            names = "--size",
            paramLabel = "BYTES",
            defaultValue = "64",
            converter = ByteSize.class,
            description = "Message size in bytes; suffixes k, m (${DEFAULT-VALUE}).")
    public int sizeBytes;

    @Option(
            names = "--window",
            paramLabel = "N",
            defaultValue = "1",
            description = "Messages in flight at once (${DEFAULT-VALUE}).")
    public int window;

    @Spec(Spec.Target.MIXEE)
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandSpec spec;

    /** Checks the ranges. */
    public void check() {
        if (count < 1 || window < 1 || sizeBytes < 0) {
            throw new CommandLine.ParameterException(
                    spec.commandLine(),
                    "--count and --window must be 1 or more, --size 0 or more; they are " + count + ", " + window + ", "
                            + sizeBytes);
        }
    }
}
