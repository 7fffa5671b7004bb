package org.verbena.tools.interop.rping;

import java.io.PrintWriter;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.samples.command.CommandFailure;
import org.verbena.tools.interop.rping.RpingConnection.Advertisement;
import org.verbena.verbs.NativeRdmaException;

/** The server's side of {@link Rping}. */
public final class RpingServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RpingServer.class);

    /** As in C. */
    private static final int BACKLOG = 3;

    /** How long to wait for an event before checking whether the thread was interrupted. */
    private static final int SLEEP_MILLIS = 500;

    private final InetSocketAddress address;
    private final int sizeBytes;
    private final boolean ownQueuePair;
    private final PrintWriter out;
    private final boolean printing;
    private final EventChannel events;
    private final CmId listener;

    /**
     * Prepares; {@link #listen} begins.
     *
     * @param address where to listen
     * @param sizeBytes of the largest ping
     * @param ownQueuePair whether the queue pair is made and modified here, and not by librdmacm
     * @param out for the pings
     * @param printing whether to print them
     */
    public RpingServer(
            InetSocketAddress address, int sizeBytes, boolean ownQueuePair, PrintWriter out, boolean printing) {
        this.address = address;
        this.sizeBytes = sizeBytes;
        this.ownQueuePair = ownQueuePair;
        this.out = out;
        this.printing = printing;
        this.events = EventChannel.open();
        try {
            this.listener = CmId.create(events, PortSpace.TCP);
        } catch (RuntimeException refused) {
            events.close();
            throw refused;
        }
    }

    /** Begins to listen. */
    public void listen() {
        listener.bind(address);
        listener.listen(BACKLOG);
    }

    /**
     * Returns the address it listens on.
     *
     * @return with the selected port if any free one was requested
     */
    public InetSocketAddress localAddress() {
        return Objects.requireNonNullElse(listener.localAddress(), address);
    }

    /** Serves one client until it disconnects. */
    public void serveOne() {
        try (CmId client = nextRequest()) {
            serve(events, client);
        }
    }

    /** Serves all clients until the thread is interrupted, each on a thread and an event channel of its own. */
    public void serveAll() {
        while (true) {
            CmId client = nextRequest();
            Thread.ofPlatform().name("rping-" + client).daemon().start(() -> serveAlone(client));
        }
    }

    private void serveAlone(CmId client) {
        try (EventChannel own = EventChannel.open();
                client) {
            // Events of this client must not wake the others.
            client.migrate(own);
            serve(own, client);
        } catch (NativeRdmaException | CommandFailure failure) {
            LOG.warn("A client was lost: {}", failure.getMessage());
        }
    }

    private CmId nextRequest() {
        while (!Thread.interrupted()) {
            CmEvent event = events.get(SLEEP_MILLIS);
            if (event != null && event.type() == CmEventType.CONNECT_REQUEST) {
                return event.id();
            }
            if (event != null && event.type().isError()) {
                throw event.toException("listening on " + address);
            }
        }
        throw new CommandFailure("server: interrupted while waiting for a client");
    }

    private void serve(EventChannel channel, CmId client) {
        try (RpingConnection connection = new RpingConnection("server", channel, client, sizeBytes, ownQueuePair)) {
            connection.accept();
            while (connection.awaitMessage()) {
                connection.read(connection.advertisement());
                String ping = connection.data().segment().getString(0, StandardCharsets.US_ASCII);
                if (printing) {
                    out.println("server ping data: " + ping);
                }
                connection.sendGoAhead();
                if (!connection.awaitMessage()) {
                    throw new CommandFailure("server: the client disconnected during a ping");
                }
                Advertisement sink = connection.advertisement();
                connection.write(sink, textLength(connection.data().segment()) + 1);
                connection.sendGoAhead();
            }
        }
    }

    private static int textLength(MemorySegment text) {
        int length = 0;
        while (text.get(ValueLayout.JAVA_BYTE, length) != 0) {
            length++;
        }
        return length;
    }

    @Override
    public void close() {
        listener.close();
        events.close();
    }
}
