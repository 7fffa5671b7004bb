package org.verbena.tools.interop.rping;

import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmId;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.MemoryRegion;

/** The client's side of {@link Rping}. */
public final class RpingClient {
    /** As in C. */
    private static final int RESOLVE_MILLIS = 2000;

    /** The ASCII characters that pings are filled with. */
    private static final int FIRST_CHARACTER = 'A';

    private static final int LAST_CHARACTER = 'z';

    private final @Nullable InetSocketAddress source;
    private final InetSocketAddress server;
    private final int sizeBytes;
    private final int count;
    private final boolean validating;
    private final boolean ownQueuePair;
    private final PrintWriter out;
    private final boolean printing;

    /**
     * Prepares; {@link #run} does it.
     *
     * @param source the local address; null for the one that the routing table selects
     * @param server its address
     * @param sizeBytes of a ping
     * @param count how many pings; 0 for no limit
     * @param validating whether to verify the data that come back
     * @param ownQueuePair whether the queue pair is made and modified here, and not by librdmacm
     * @param out for the pings
     * @param printing whether to print them
     */
    public RpingClient(
            @Nullable InetSocketAddress source,
            InetSocketAddress server,
            int sizeBytes,
            int count,
            boolean validating,
            boolean ownQueuePair,
            PrintWriter out,
            boolean printing) {
        this.source = source;
        this.server = server;
        this.sizeBytes = sizeBytes;
        this.count = count;
        this.validating = validating;
        this.ownQueuePair = ownQueuePair;
        this.out = out;
        this.printing = printing;
    }

    /** Connects, pings and disconnects. */
    public void run() {
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.TCP)) {
            id.resolveAddress(source, server, RESOLVE_MILLIS);
            expect(events, CmEventType.ADDR_RESOLVED, "finding " + server);
            id.resolveRoute(RESOLVE_MILLIS);
            expect(events, CmEventType.ROUTE_RESOLVED, "finding the route to " + server);
            try (Arena arena = Arena.ofShared();
                    RpingConnection connection = new RpingConnection("client", events, id, sizeBytes, ownQueuePair)) {
                connection.connect();
                ping(connection, connection.register(arena.allocate(sizeBytes)));
                connection.disconnect();
            }
        }
    }

    /** The kernel keeps the timeout, so this ends. */
    private static void expect(EventChannel events, CmEventType expected, String step) {
        CmEvent event = events.get(-1);
        if (event == null || event.type() != expected) {
            throw event == null ? new CommandFailure(step + ": no event came") : event.toException(step);
        }
    }

    private void ping(RpingConnection connection, MemoryRegion start) {
        int firstCharacter = FIRST_CHARACTER;
        for (int ping = 0; count == 0 || ping < count; ping++) {
            fill(start.segment(), ping, firstCharacter);
            firstCharacter = following(firstCharacter);

            connection.sendAdvertisement(start);
            requireGoAhead(connection);
            connection.sendAdvertisement(connection.data());
            requireGoAhead(connection);

            MemorySegment echo = connection.data().segment();
            long mismatch = validating ? start.segment().mismatch(echo) : -1;
            if (mismatch >= 0) {
                throw new CommandFailure("client: ping " + ping + " came back changed from byte " + mismatch + " on");
            }
            if (printing) {
                out.println("ping data: " + echo.getString(0, StandardCharsets.US_ASCII));
            }
        }
    }

    private static void requireGoAhead(RpingConnection connection) {
        if (!connection.awaitMessage()) {
            throw new CommandFailure("client: the server disconnected during a ping");
        }
    }

    private static int following(int character) {
        return character == LAST_CHARACTER ? FIRST_CHARACTER : character + 1;
    }

    private static void fill(MemorySegment buffer, int ping, int firstCharacter) {
        byte[] text = ("rdma-ping-" + ping + ": ").getBytes(StandardCharsets.US_ASCII);
        MemorySegment.copy(text, 0, buffer, ValueLayout.JAVA_BYTE, 0, text.length);
        int character = firstCharacter;
        for (long i = text.length; i < buffer.byteSize(); i++) {
            buffer.set(ValueLayout.JAVA_BYTE, i, (byte) character);
            character = following(character);
        }
        buffer.set(ValueLayout.JAVA_BYTE, buffer.byteSize() - 1, (byte) 0);
    }
}
