package org.verbena.samples;

import java.io.PrintWriter;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.Descriptors;
import org.verbena.verbs.AsyncEvent;
import org.verbena.verbs.Context;
import org.verbena.verbs.Device;
import org.verbena.verbs.Verbs;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Prints a device's asynchronous events as they come, as ibv_asyncwatch(1) does. */
@Command(
        name = "asyncwatch",
        description = "Prints a device's asynchronous events as they come, as ibv_asyncwatch(1) does.")
final class AsyncWatch implements Callable<Integer> {
    /** How long to sleep before looking whether the thread was interrupted. */
    private static final int SLEEP_MILLIS = 500;

    @Option(
            names = {"-d", "--ib-dev"},
            paramLabel = "DEVICE",
            description = "The device; without it the first.")
    private @Nullable String deviceName;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() {
        Throwable cause = Verbs.unavailabilityCause();
        if (cause != null) {
            throw new CommandFailure("no RDMA device can be used: " + cause.getMessage());
        }
        PrintWriter out = spec.commandLine().getOut();
        List<Device> devices = Verbs.devices();
        Device device = deviceName == null ? devices.getFirst() : Verbs.device(deviceName);
        try (Context context = device.open()) {
            ServerSignals.endWithZero();
            out.println(device.name() + ": async event FD " + context.asyncFd());
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
