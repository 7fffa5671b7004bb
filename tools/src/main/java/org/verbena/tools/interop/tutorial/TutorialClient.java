package org.verbena.tools.interop.tutorial;

import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.PortNumber;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/**
 * The client of the tutorial "Building an RDMA-capable application with IB verbs", and a client for its server: one
 * message each way, with connection events on one thread and completions on another.
 *
 * <pre>{@code
 *   client                                            server
 *   rdma_resolve_addr                                 rdma_bind_addr, rdma_listen
 *   ADDR_RESOLVED: makes the queue pair,
 *     posts a receive, rdma_resolve_route
 *   ROUTE_RESOLVED: rdma_connect        ------->      CONNECT_REQUEST: makes the queue pair,
 *                                                       posts a receive, rdma_accept
 *   ESTABLISHED: posts a send           <------>      ESTABLISHED: posts a send
 *   two completions: rdma_disconnect    ------->      DISCONNECTED: destroys what it made
 *   DISCONNECTED: destroys what it made
 * }</pre>
 */
@Command(
        name = "tutorial-client",
        description = "The client of the tutorial \"Building an RDMA-capable application with IB verbs\".")
public final class TutorialClient implements Callable<Integer> {
    /** For the address and for the route, as in C. */
    private static final int RESOLVE_MILLIS = 500;

    @Parameters(index = "0", paramLabel = "HOST", description = "The server, a name or an address.")
    private String host = "";

    @Parameters(index = "1", paramLabel = "PORT", converter = PortNumber.class, description = "Its port.")
    private int port;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        if (port == 0) {
            throw new ParameterException(spec.commandLine(), "The client needs the server's port, from 1 to 65535");
        }
        InetSocketAddress server = new InetSocketAddress(host, port);
        if (server.isUnresolved()) {
            throw new CommandFailure("no address is known for " + host);
        }
        PrintWriter out = spec.commandLine().getOut();
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.TCP);
                TutorialContext context = new TutorialContext(1, true, out)) {
            id.resolveAddress(null, server, RESOLVE_MILLIS);
            while (onEvent(context.nextEvent(events), context, out)) {
                out.flush();
            }
        }
        out.flush();
        return CommandLine.ExitCode.OK;
    }

    /** False when that was the last one. */
    private boolean onEvent(CmEvent event, TutorialContext context, PrintWriter out) throws InterruptedException {
        CmId id = event.id();
        switch (event.type()) {
            case ADDR_RESOLVED -> {
                out.println("address resolved.");
                context.connection(id);
                id.resolveRoute(RESOLVE_MILLIS);
            }
            case ROUTE_RESOLVED -> {
                out.println("route resolved.");
                id.connect(ConnectionParameters.DEFAULT);
            }
            case ESTABLISHED -> {
                out.println("connected. posting send...");
                of(id).send("message from the client, process "
                        + ProcessHandle.current().pid());
            }
            case DISCONNECTED -> {
                context.end(of(id));
                out.println("disconnected.");
                return false;
            }
            default -> throw event.toException("connecting to " + host + ":" + port);
        }
        return true;
    }

    private static TutorialConnection of(CmId id) {
        return (TutorialConnection) Objects.requireNonNull(id.attachment());
    }
}
