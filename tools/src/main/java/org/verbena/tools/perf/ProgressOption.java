package org.verbena.tools.perf;

import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBarBuilder;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** A mixin: whether to show how far a command is, on standard error. */
final class ProgressOption {
    private static final int BAR_COLUMNS = 100;
    private static final int BAR_UPDATE_MILLIS = 200;

    @Option(
            names = "--progress",
            negatable = true,
            description = "Show a progress bar or not; by default only in a terminal.")
    private @Nullable Boolean progress;

    /**
     * A bar to complete and build, or null if none is wanted.
     *
     * @param name of the task; at most 30 columns, since figures take about 50 of 100
     * @param max the value at which the bar is full
     */
    @SuppressWarnings("SystemConsoleNull") // from 25 on it may be null again
    @Nullable ProgressBarBuilder bar(String name, long max) {
        boolean terminal = System.console() != null && System.console().isTerminal();
        if (progress == null ? !terminal : !progress) {
            return null;
        }
        return new ProgressBarBuilder()
                .setTaskName(name)
                .setInitialMax(max)
                .setUpdateIntervalMillis(BAR_UPDATE_MILLIS)
                .setConsumer(new ConsoleProgressBarConsumer(System.err, BAR_COLUMNS));
    }
}
