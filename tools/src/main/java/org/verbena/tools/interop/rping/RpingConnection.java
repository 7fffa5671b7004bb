package org.verbena.tools.interop.rping;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.Descriptors;
import org.verbena.cm.EventChannel;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.CompletionChannel;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;

/**
 * One rping connection, of either side: its queue pair and its memory. It belongs to one thread, which sleeps on two
 * descriptors: connection events and completions.
 *
 * <p>Memory, for a size of S: 16 bytes to receive into, 16 to send from, S bytes that the peer's pings are written to
 * or read from, and on the client S more in which the pings start.
 */
final class RpingConnection implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RpingConnection.class);

    /** As in C. There is never more than one ping under way: a read or write and two sends. */
    private static final QueuePairCapabilities QUEUES = new QueuePairCapabilities(16, 2, 1, 1, 0);

    private static final int COMPLETION_ENTRIES = 32;

    /** As in C: one read or write at a time, and unlimited retries to a peer that is slow to post its receive. */
    private static final ConnectionParameters PARAMETERS =
            ConnectionParameters.DEFAULT.withReads(1, 1).withRetries(7, ConnectionParameters.RNR_RETRY_FOREVER);

    static final int ADVERTISEMENT_BYTES = 16;

    private static final ValueLayout.OfLong BE64 = ValueLayout.JAVA_LONG.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfInt BE32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.BIG_ENDIAN);

    private static final Set<AccessFlag> PEER_MAY_ALL =
            Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE);

    /** The ids of work requests. */
    private static final long RECEIVE_ID = 1;

    private static final long SEND_ID = 2;
    private static final long READ_ID = 3;
    private static final long WRITE_ID = 4;

    /** How long to sleep before checking whether the thread was interrupted. */
    private static final int SLEEP_MILLIS = 500;

    /** How long after its queue pair broke down a connection may take to be reported as disconnected. */
    private static final long BREAKDOWN_NANOS = 3_000_000_000L;

    private final String side;
    private final EventChannel events;
    private final CmId id;
    private final Deque<AutoCloseable> resources = new ArrayDeque<>();
    private final CompletionChannel completionChannel;
    private final CompletionQueue completions;
    private final QueuePair queuePair;

    /** Whether the queue pair is the program's, and not one of librdmacm. */
    private final boolean ownQueuePair;

    private final WorkCompletions polled = new WorkCompletions(COMPLETION_ENTRIES);

    /** Receives the peer's messages. */
    private final MemoryRegion received;

    /** Messages to the peer are sent from here. */
    private final MemoryRegion sent;

    /** Data read from or written to the peer; on the client, the server writes here. */
    private final MemoryRegion data;

    private boolean connected;
    private boolean disconnected;
    private long brokeDownNanos;
    private @Nullable RuntimeException failure;
    private int messagesReceived;
    private int transfersDone;

    /**
     * Makes queue pair and memory, and posts the receive for the peer's first message.
     *
     * @param side for messages: client or server
     * @param events the id's
     * @param id bound to its device
     * @param sizeBytes of the data region
     * @param ownQueuePair whether the queue pair is made and modified here, and not by librdmacm
     */
    RpingConnection(String side, EventChannel events, CmId id, int sizeBytes, boolean ownQueuePair) {
        this.side = side;
        this.ownQueuePair = ownQueuePair;
        this.events = events;
        this.id = id;
        resources.push(polled);
        try {
            Context device = Objects.requireNonNull(id.device(), "the id is not bound to a device");
            ProtectionDomain domain = own(device.allocateProtectionDomain());
            completionChannel = own(device.createCompletionChannel());
            completions = own(device.createCompletionQueue(COMPLETION_ENTRIES, completionChannel, 0));
            completions.requestNotify(false);
            QueuePairOptions options = QueuePairOptions.reliable(completions, QUEUES);
            queuePair = own(ownQueuePair ? domain.createQueuePair(options) : id.createQueuePair(domain, options));
            if (ownQueuePair) {
                requireConnectableByHand(device);
                modifyTo(QueuePairState.INIT);
            }
            Arena arena = Arena.ofShared();
            resources.push(arena);
            received = own(domain.registerMemory(arena.allocate(ADVERTISEMENT_BYTES), Set.of(AccessFlag.LOCAL_WRITE)));
            sent = own(domain.registerMemory(arena.allocate(ADVERTISEMENT_BYTES), Set.of()));
            data = own(domain.registerMemory(arena.allocate(sizeBytes), PEER_MAY_ALL));
            postReceive();
        } catch (RuntimeException refused) {
            close();
            throw refused;
        }
    }

    private static void requireConnectableByHand(Context device) {
        if (device.device().transportType() == TransportType.IWARP) {
            throw new CommandFailure(
                    device.device().name() + " is iWARP: the kernel connects its queue pairs. Leave out -q");
        }
    }

    /** Takes a queue pair of the program's own through states, with the attributes from the connection manager. */
    private void modifyTo(QueuePairState... states) {
        for (QueuePairState state : states) {
            queuePair.modify(id.queuePairAttributes(state));
        }
    }

    /** Remembers what to close, last made first. */
    private <T extends AutoCloseable> T own(T resource) {
        resources.push(resource);
        return resource;
    }

    /** More memory that the peer may read and write. */
    MemoryRegion register(MemorySegment segment) {
        return own(queuePair.domain().registerMemory(segment, PEER_MAY_ALL));
    }

    MemoryRegion data() {
        return data;
    }

    // Waiting

    /** Connects to the server. */
    void connect() {
        id.connect(ownQueuePair ? PARAMETERS.withQueuePair(queuePair.number(), false) : PARAMETERS);
        awaitConnected();
    }

    /** Accepts the client. */
    void accept() {
        if (ownQueuePair) {
            modifyTo(QueuePairState.RTR, QueuePairState.RTS);
            id.accept(ConnectionParameters.DEFAULT.withReads(1, 1).withQueuePair(queuePair.number(), false));
        } else {
            id.accept(ConnectionParameters.DEFAULT);
        }
        awaitConnected();
    }

    private void awaitConnected() {
        // The peer's first message may overtake the event.
        await("connecting", () -> connected || messagesReceived > 0);
    }

    /** Waits for the next message; false if the peer disconnected instead. */
    boolean awaitMessage() {
        await("waiting for the peer's message", () -> messagesReceived > 0 || disconnected);
        if (messagesReceived == 0) {
            return false;
        }
        messagesReceived--;
        postReceive();
        return true;
    }

    private void awaitTransfer(String what) {
        await(what, () -> transfersDone > 0);
        transfersDone--;
    }

    /** Ends the connection, or sees the peer end it. */
    void disconnect() {
        if (!disconnected) {
            id.disconnect();
            await("disconnecting", () -> disconnected);
        }
    }

    private void await(String what, BooleanSupplier condition) {
        while (!condition.getAsBoolean()) {
            if (failure != null) {
                throw failure;
            }
            if (disconnected) {
                throw new CommandFailure(side + ": the peer disconnected while " + what);
            }
            if (brokeDownNanos != 0 && System.nanoTime() - brokeDownNanos > BREAKDOWN_NANOS) {
                throw new CommandFailure(side + ": the queue pair went into its error state while " + what);
            }
            if (Thread.interrupted()) {
                throw new CommandFailure(side + ": interrupted while " + what);
            }
            int ready = Descriptors.awaitReadable(SLEEP_MILLIS, events.descriptor(), completionChannel.fd());
            if ((ready & 2) != 0) {
                onCompletionEvents();
            }
            if ((ready & 1) != 0) {
                onConnectionEvents(what);
            }
        }
    }

    private void onConnectionEvents(String what) {
        for (CmEvent event = events.tryGet(); event != null; event = events.tryGet()) {
            LOG.debug("{}: {} on {}", side, event.describe(), event.id());
            if (event.type() == CmEventType.CONNECT_REQUEST) {
                // This server serves one client, and rejects others instead of ignoring them.
                event.id().close();
            } else if (event.type() == CmEventType.CONNECT_RESPONSE) {
                // Only with a queue pair that librdmacm does not know.
                modifyTo(QueuePairState.INIT, QueuePairState.RTR, QueuePairState.RTS);
                id.establish();
                connected = true;
            } else if (event.type() == CmEventType.ESTABLISHED) {
                connected = true;
            } else if (event.type() == CmEventType.DISCONNECTED) {
                disconnected = true;
            } else if (event.type().isError() && failure == null) {
                failure = event.toException(side + " " + what);
            }
        }
    }

    /** Arms before it polls: a completion that arrives in between causes the next event. */
    private void onCompletionEvents() {
        while (completionChannel.tryGetEvent() != null) {
            // There is only one queue on the channel.
        }
        completions.requestNotify(false);
        while (completions.poll(polled) > 0) {
            for (int i = 0; i < polled.count(); i++) {
                onCompletion(i);
            }
        }
    }

    private void onCompletion(int i) {
        if (!polled.isSuccess(i)) {
            LOG.debug("{}: {}", side, polled.describe(i));
            if (polled.status(i) == CompletionStatus.WR_FLUSH_ERR) {
                // A consequence of an error or a disconnect, which has the cause.
                brokeDownNanos = brokeDownNanos == 0 ? System.nanoTime() : brokeDownNanos;
            } else if (failure == null) {
                failure = new CommandFailure(side + ": " + polled.describe(i));
            }
            return;
        }
        switch ((int) polled.workRequestId(i)) {
            case (int) RECEIVE_ID -> {
                if (polled.lengthBytes(i) != ADVERTISEMENT_BYTES) {
                    failure = new CommandFailure(side + ": the peer sent " + polled.lengthBytes(i)
                            + " bytes instead of " + ADVERTISEMENT_BYTES + "; is it rping?");
                } else {
                    messagesReceived++;
                }
            }
            case (int) READ_ID, (int) WRITE_ID -> transfersDone++;
            default -> LOG.trace("{}: sent", side);
        }
    }

    // Operations

    private void postReceive() {
        queuePair
                .receiveQueue()
                .receive(RECEIVE_ID)
                .sge(received, 0, ADVERTISEMENT_BYTES)
                .flush();
    }

    /** Advertises a region to the peer. */
    void sendAdvertisement(MemoryRegion region) {
        MemorySegment message = sent.segment();
        message.set(BE64, 0, region.address());
        message.set(BE32, 8, region.remoteKey());
        message.set(BE32, 12, (int) region.lengthBytes());
        sendMessage();
    }

    /** Lets the peer continue: the content does not matter, the arrival does. */
    void sendGoAhead() {
        sendMessage();
    }

    private void sendMessage() {
        queuePair
                .sendQueue()
                .send(SEND_ID, SendFlags.SIGNALED)
                .sge(sent, 0, ADVERTISEMENT_BYTES)
                .flush();
    }

    /** What the peer's last message advertises. */
    Advertisement advertisement() {
        MemorySegment message = received.segment();
        Advertisement advertised = new Advertisement(message.get(BE64, 0), message.get(BE32, 8), message.get(BE32, 12));
        LOG.debug("{}: the peer announced {}", side, advertised);
        return advertised;
    }

    /** A buffer of the peer. */
    record Advertisement(long address, int remoteKey, int lengthBytes) {}

    /** Reads the peer's buffer into {@link #data()}. */
    void read(Advertisement from) {
        if (from.lengthBytes() < 0 || from.lengthBytes() > data.lengthBytes()) {
            throw new CommandFailure(side + ": the peer's pings have " + from.lengthBytes()
                    + " bytes, and this side's buffer " + data.lengthBytes() + ": give both the same -S");
        }
        queuePair
                .sendQueue()
                .read(READ_ID, SendFlags.SIGNALED, from.address(), from.remoteKey())
                .sge(data, 0, from.lengthBytes())
                .flush();
        awaitTransfer("reading the peer's ping");
    }

    /** Writes the start of {@link #data()} to the peer's buffer. */
    void write(Advertisement to, int lengthBytes) {
        queuePair
                .sendQueue()
                .write(WRITE_ID, SendFlags.SIGNALED, to.address(), to.remoteKey())
                .sge(data, 0, lengthBytes)
                .flush();
        awaitTransfer("writing to the peer");
    }

    /** Closes everything except the id. */
    @Override
    public void close() {
        RuntimeException first = null;
        while (!resources.isEmpty()) {
            try {
                resources.pop().close();
            } catch (Exception refused) {
                if (first == null) {
                    first = refused instanceof RuntimeException unchecked
                            ? unchecked
                            : new CommandFailure("close", refused);
                }
            }
        }
        if (first != null) {
            throw first;
        }
    }
}
