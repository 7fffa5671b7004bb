package org.verbena.samples.command;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.CompletionLoopOptions;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** A mixin for commands that measure: how an event loop waits. */
public final class LoopOptions {
    @Option(
            names = "--spin",
            paramLabel = "MICROS",
            description =
                    "How long an idle event loop polls before it blocks, in microseconds; 0 blocks immediately. By default the loop adapts, up to 500.")
    private @Nullable Integer spinMicros;

    @Spec(Spec.Target.MIXEE)
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandSpec spec;

    /** These options, and defaults for the rest. */
    public CompletionLoopOptions completionLoop() {
        CompletionLoopOptions defaults = CompletionLoopOptions.DEFAULTS;
        if (spinMicros == null) {
            return defaults;
        }
        if (spinMicros < 0) {
            throw new CommandLine.ParameterException(
                    spec.commandLine(), "--spin must be 0 or more; it is " + spinMicros);
        }
        return new CompletionLoopOptions(
                TimeUnit.MICROSECONDS.toNanos(spinMicros),
                defaults.maxCompletionsPerTurn(),
                defaults.completionQueueDepth());
    }
}
