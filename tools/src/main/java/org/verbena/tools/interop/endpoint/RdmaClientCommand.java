package org.verbena.tools.interop.endpoint;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.verbena.cm.AddressInfo;
import org.verbena.cm.Cm;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.PortSpace;
import org.verbena.cm.sync.SynchronousId;
import org.verbena.samples.command.PortNumber;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/**
 * A Java version of rdma-core's {@code rdma_client}: one message each way by blocking calls, without events. The
 * shortest program on {@code org.verbena.cm}; it interoperates with C's {@code rdma_server}.
 *
 * <p>Source: rdma_client(1), rdma_create_ep(3)
 */
@Command(
        name = "rdma-client",
        description = "Sends a message of 16 bytes and waits for one, like rdma_client(1), on the raw bindings.")
public final class RdmaClientCommand implements Callable<Integer> {
    @Option(
            names = "-s",
            paramLabel = "HOST",
            defaultValue = "127.0.0.1",
            description = "The server, a name or an address (${DEFAULT-VALUE}).")
    private String server = "";

    @Option(
            names = "-p",
            paramLabel = "PORT",
            defaultValue = "7471",
            converter = PortNumber.class,
            description = "Its port (${DEFAULT-VALUE}).")
    private int port;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() {
        if (port == 0) {
            throw new ParameterException(spec.commandLine(), "The client needs the server's port: -p PORT");
        }
        PrintWriter out = spec.commandLine().getOut();
        out.println("rdma_client: start");
        AddressInfo found = Cm.addressInfo(server, "" + port, AddressInfo.Hints.active(PortSpace.TCP))
                .getFirst();
        try (SynchronousId id = SynchronousId.of(found);
                MessageExchange exchange = new MessageExchange(id.id())) {
            id.connect(ConnectionParameters.DEFAULT);
            exchange.send();
            exchange.awaitMessage();
            id.disconnect();
        }
        out.println("rdma_client: end 0");
        return CommandLine.ExitCode.OK;
    }
}
