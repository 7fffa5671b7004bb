package org.verbena.tools.interop.endpoint;

import java.io.PrintWriter;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.AddressInfo;
import org.verbena.cm.Cm;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.PortSpace;
import org.verbena.cm.sync.SynchronousId;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.PortNumber;
import org.verbena.samples.command.ServerSignals;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * A Java version of rdma-core's {@code rdma_server}: serves one {@link RdmaClientCommand}, or one of C's, and ends.
 *
 * <p>Source: rdma_server(1), rdma_get_request(3)
 */
@Command(
        name = "rdma-server",
        description = "Waits for a message of 16 bytes and sends one, like rdma_server(1), on the raw bindings.")
public final class RdmaServerCommand implements Callable<Integer> {
    private static final int BACKLOG = 4;

    /** How long to wait before checking whether the thread was interrupted. */
    private static final int SLEEP_MILLIS = 500;

    @Option(names = "-s", paramLabel = "ADDR", description = "The address to listen on; by default any.")
    private @Nullable String address;

    @Option(
            names = "-p",
            paramLabel = "PORT",
            defaultValue = "7471",
            converter = PortNumber.class,
            description = "Port; 0 for any free one (${DEFAULT-VALUE}).")
    private int port;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        out.println("rdma_server: start");
        AddressInfo own = Cm.addressInfo(address, "" + port, AddressInfo.Hints.passive(PortSpace.TCP))
                .getFirst();
        try (SynchronousId listener = SynchronousId.of(own)) {
            listener.id().listen(BACKLOG);
            ServerSignals.endWithZero();
            out.println("rdma-server listens on "
                    + Objects.requireNonNull(listener.id().localAddress()));
            out.flush();
            try (SynchronousId id = nextRequest(listener);
                    MessageExchange exchange = new MessageExchange(id.id())) {
                id.accept(ConnectionParameters.DEFAULT);
                exchange.awaitMessage();
                exchange.send();
                id.disconnect();
            }
        }
        out.println("rdma_server: end 0");
        return CommandLine.ExitCode.OK;
    }

    private static SynchronousId nextRequest(SynchronousId listener) {
        while (!Thread.interrupted()) {
            SynchronousId id = listener.request(SLEEP_MILLIS);
            if (id != null) {
                return id;
            }
        }
        throw new CommandFailure("interrupted while waiting for a client");
    }
}
