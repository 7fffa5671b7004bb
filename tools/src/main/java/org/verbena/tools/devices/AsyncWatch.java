package org.verbena.tools.devices;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.verbena.cm.Descriptors;
import org.verbena.samples.command.ServerSignals;
import org.verbena.tools.command.DeviceOption;
import org.verbena.verbs.AsyncEvent;
import org.verbena.verbs.Context;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Prints a device's asynchronous events as they occur, like ibv_asyncwatch(1). */
@Command(
        name = "asyncwatch",
        description = "Prints a device's asynchronous events as they occur, like ibv_asyncwatch(1).")
public final class AsyncWatch implements Callable<Integer> {
    /** How long to sleep before checking whether the thread was interrupted. */
    private static final int SLEEP_MILLIS = 500;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private DeviceOption device;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        try (Context context = device.open()) {
            ServerSignals.endWithZero();
            out.println(context.device().name() + ": async event FD " + context.asyncFd());
            out.flush();
            while (!Thread.interrupted()) {
                if (Descriptors.awaitReadable(SLEEP_MILLIS, context.asyncFd()) != 0) {
                    AsyncEvent event = context.tryGetAsyncEvent();
                    if (event != null) {
                        out.println("  " + event);
                        out.flush();
                    }
                }
            }
        }
        return CommandLine.ExitCode.OK;
    }
}
