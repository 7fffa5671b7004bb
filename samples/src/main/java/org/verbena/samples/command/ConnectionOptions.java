package org.verbena.samples.command;

import org.verbena.transport.ProviderChoice;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

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
    public int port;

    @Option(
            names = "--provider",
            paramLabel = "auto|verbs|soft",
            description =
                    "verbs: RDMA devices; soft: iWARP in Java; auto: verbs where a device serves the address, else soft (auto).")
    public String provider = ProviderChoice.configured();

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    Verbosity verbosity;
}
