package org.verbena.samples.command;

import org.verbena.transport.provider.ProviderChoice;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** A mixin: the options of every command that connects or listens. */
public final class ConnectionOptions {
    @Option(
            names = "--host",
            paramLabel = "ADDR",
            defaultValue = "127.0.0.1",
            description = "The name or address to connect to or to listen on; 0.0.0.0 for all (${DEFAULT-VALUE}).")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    public String host;

    @Option(
            names = {"-p", "--port"},
            paramLabel = "N",
            defaultValue = "7471",
            converter = PortNumber.class,
            description = "Port (${DEFAULT-VALUE}).")
    private int port;

    @Option(
            names = "--provider",
            paramLabel = "auto|verbs|soft|shm|ladder",
            description =
                    "verbs: RDMA devices; soft: iWARP in Java; shm: shared memory on this host; auto: verbs where a device serves the address, else soft (auto);"
                            + " ladder: clients of messages, such as echo-client, use verbs if their server does, else"
                            + " soft. Servers of messages, such as echo-server, listen with several where a set is named:"
                            + " verbs+soft, or all.")
    public String provider = ProviderChoice.configured();

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    Verbosity verbosity;

    @Spec(Spec.Target.MIXEE)
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandSpec spec;

    /** The port to listen on; 0 takes any free one. */
    public int listenPort() {
        return port;
    }

    /** The port to connect to. Wrong usage if it is 0, on which no server listens. */
    public int remotePort() {
        if (port == 0) {
            throw new ParameterException(spec.commandLine(), "--port must be 1 or more to connect to, not 0");
        }
        return port;
    }
}
