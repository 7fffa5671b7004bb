package org.verbena.tools.interop.pingpong;

import org.jspecify.annotations.Nullable;
import org.verbena.cm.QueuePairPath;
import org.verbena.samples.command.PortNumber;
import org.verbena.verbs.Context;
import org.verbena.verbs.device.Mtu;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** A mixin: the options that all kinds of ping-pong have. */
final class PingPongOptions {
    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ByHandOptions byHand;

    @Option(
            names = {"-p", "--port"},
            defaultValue = "18515",
            converter = PortNumber.class,
            description = "TCP port to exchange addresses on (${DEFAULT-VALUE}).")
    int tcpPort;

    @Option(
            names = {"-l", "--sl"},
            paramLabel = "LEVEL",
            defaultValue = "0",
            description = "Service level (${DEFAULT-VALUE}).")
    private int serviceLevel;

    @Option(
            names = {"-e", "--events"},
            description = "Sleep until completions arrive; by default it polls.")
    boolean events;

    /** Opens the device, or reports why there is none. */
    Context open() {
        return byHand.open();
    }

    /**
     * Refuses values that are out of range.
     *
     * @param host the server to connect to; null for the server, which may take any free port
     */
    void check(CommandSpec spec, @Nullable String host) {
        requireRange(spec, "port", tcpPort, host == null ? 0 : 1, 65535);
        requireRange(spec, "ib-port", byHand.devicePort, 1, 255);
        requireRange(spec, "sl", serviceLevel, 0, 15);
    }

    /** How queue pairs are connected. */
    QueuePairPath path(Mtu mtu, int hopLimit) {
        return new QueuePairPath(byHand.devicePort, byHand.gidIndex, mtu, serviceLevel, hopLimit);
    }

    static void requireRange(CommandSpec spec, String name, int value, int min, int max) {
        if (value < min || value > max) {
            throw new ParameterException(
                    spec.commandLine(),
                    "Invalid " + name + " " + value + " (valid range is " + min + " to " + max + ")");
        }
    }
}
