package org.verbena.tools.interop.tutorial;

import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.PortNumber;
import org.verbena.samples.command.ServerSignals;
import org.verbena.verbs.NativeRdmaException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The server of {@link TutorialClient}, and of the C client of that tutorial. */
@Command(
        name = "tutorial-server",
        description = "The server of the tutorial \"Building an RDMA-capable application with IB verbs\".")
public final class TutorialServer implements Callable<Integer> {
    private static final Logger LOG = LoggerFactory.getLogger(TutorialServer.class);

    /** As in C. */
    private static final int BACKLOG = 10;

    /** Each takes a queue pair, 2 KiB of locked memory and two entries of the completion queue. */
    private static final int MAX_CLIENTS = 64;

    @Option(names = "-s", paramLabel = "ADDR", description = "The address to listen on; by default any.")
    private @Nullable String address;

    @Option(
            names = "-p",
            paramLabel = "PORT",
            defaultValue = "0",
            converter = PortNumber.class,
            description = "Port; 0 for any free one (${DEFAULT-VALUE}).")
    private int port;

    @Option(
            names = "-n",
            paramLabel = "CLIENTS",
            defaultValue = "0",
            description = "End after so many clients; 0 to go on (${DEFAULT-VALUE}).")
    private int clients;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    private int ended;

    @Override
    public Integer call() throws InterruptedException {
        if (clients < 0) {
            throw new ParameterException(spec.commandLine(), "Invalid number of clients " + clients);
        }
        InetSocketAddress own = address == null ? new InetSocketAddress(port) : new InetSocketAddress(address, port);
        if (own.isUnresolved()) {
            throw new CommandFailure("no address is known for " + address);
        }
        PrintWriter out = spec.commandLine().getOut();
        try (EventChannel events = EventChannel.open();
                CmId listener = CmId.create(events, PortSpace.TCP);
                TutorialContext context = new TutorialContext(MAX_CLIENTS, false, out)) {
            listener.bind(own);
            listener.listen(BACKLOG);
            ServerSignals.endWithZero();
            out.println("listening on port "
                    + Objects.requireNonNull(listener.localAddress()).getPort() + ".");
            out.flush();
            while (clients == 0 || ended < clients) {
                onEvent(context.nextEvent(events), context, out);
                out.flush();
            }
        }
        return CommandLine.ExitCode.OK;
    }

    private void onEvent(CmEvent event, TutorialContext context, PrintWriter out) throws InterruptedException {
        CmId id = event.id();
        TutorialConnection connection = (TutorialConnection) id.attachment();
        switch (event.type()) {
            case CONNECT_REQUEST -> {
                out.println("received connection request.");
                answer(id, context);
            }
            case ESTABLISHED -> {
                out.println("connected. posting send...");
                Objects.requireNonNull(connection)
                        .send("message from the server, process "
                                + ProcessHandle.current().pid());
            }
            default -> {
                if (connection == null) {
                    throw event.toException("listening");
                }
                end(connection, event, context);
                out.println("peer disconnected.");
            }
        }
    }

    private static void answer(CmId id, TutorialContext context) {
        if (context.isFull()) {
            LOG.warn("A client was refused: there are {}", MAX_CLIENTS);
            id.close();
            return;
        }
        TutorialConnection connection = null;
        try {
            connection = context.connection(id);
            id.accept(ConnectionParameters.DEFAULT);
        } catch (NativeRdmaException | CommandFailure refused) {
            LOG.warn("A client was lost: {}", refused.getMessage());
            if (connection != null) {
                context.close(connection);
            }
            id.close();
        }
    }

    /** A client's failure does not end the server. */
    private void end(TutorialConnection connection, CmEvent event, TutorialContext context)
            throws InterruptedException {
        ended++;
        try {
            context.end(connection);
        } catch (NativeRdmaException | CommandFailure failure) {
            LOG.warn("A client was lost ({}): {}", event.describe(), failure.getMessage());
        }
    }
}
