package org.verbena.tools.command;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.Context;
import org.verbena.verbs.Device;
import org.verbena.verbs.Verbs;
import picocli.CommandLine.Option;

/** A mixin: the device option of commands on the raw bindings. */
public final class DeviceOption {
    @Option(
            names = {"-d", "--ib-dev"},
            paramLabel = "DEVICE",
            description = "The device; by default the first.")
    private @Nullable String name;

    /** Opens it, or reports why there is none. */
    public Context open() {
        if (name != null) {
            return Verbs.device(name).open();
        }
        List<Device> devices = Verbs.devices();
        if (devices.isEmpty()) {
            Throwable cause = Verbs.unavailabilityCause();
            throw new CommandFailure(cause == null ? "there is no RDMA device" : String.valueOf(cause.getMessage()));
        }
        return devices.getFirst().open();
    }
}
