package org.verbena.disni;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.queue.QueuePairType;

/** What DiSNI asks of librdmacm. Any thread, as with C. */
public final class Connections {
    /** What DiSNI's C library asks for, whatever the program does. */
    private static final int MAX_SGES = 4;

    /** C's answer for none. */
    private static final int NONE = -1;

    private final Handles handles;
    private final Devices devices;

    /**
     * Shares numbers with the calls of libibverbs.
     *
     * @param devices those calls
     */
    public Connections(Devices devices) {
        this.handles = devices.handles;
        this.devices = devices;
    }

    /** An id and the number of its queue pair. */
    private static final class Connection {
        final CmId id;
        volatile @Nullable Handle queuePair;

        Connection(CmId id) {
            this.id = id;
        }
    }

    private CmId id(long number) throws IOException {
        return connection(number).id;
    }

    private Connection connection(long number) throws IOException {
        return (Connection) handles.get(number, Connection.class).object;
    }

    private long add(CmId id) throws IOException {
        try {
            Handle handle = handles.add(new Connection(id));
            id.attach(handle);
            return handle.number;
        } catch (IOException tooMany) {
            id.close();
            throw tooMany;
        }
    }

    public long createEventChannel() throws IOException {
        return Calls.call("createEventChannel", () -> devices.add(EventChannel.open(), EventChannel::close));
    }

    public long createId(long channel) throws IOException {
        EventChannel events = (EventChannel) handles.get(channel, EventChannel.class).object;
        return Calls.call("createId", () -> add(CmId.create(events, PortSpace.TCP)));
    }

    public long createQueuePair(
            long id,
            long domain,
            long sendQueue,
            long receiveQueue,
            int type,
            int maxSendWrs,
            int maxReceiveWrs,
            int maxInlineBytes)
            throws IOException {
        Connection connection = connection(id);
        ProtectionDomain protection = (ProtectionDomain) handles.get(domain, ProtectionDomain.class).object;
        CompletionQueue sends = (CompletionQueue) handles.get(sendQueue, CompletionQueue.class).object;
        CompletionQueue receives = (CompletionQueue) handles.get(receiveQueue, CompletionQueue.class).object;
        return Calls.call("createQP", () -> {
            QueuePair made = connection.id.createQueuePair(
                    protection,
                    new QueuePairOptions(
                            QueuePairType.of(type),
                            sends,
                            receives,
                            null,
                            new QueuePairCapabilities(maxSendWrs, maxReceiveWrs, MAX_SGES, MAX_SGES, maxInlineBytes),
                            false));
            try {
                Handle handle = handles.add(made);
                connection.queuePair = handle;
                return handle.number;
            } catch (IOException tooMany) {
                made.close();
                throw tooMany;
            }
        });
    }

    public void bind(long id, long address) throws IOException {
        CmId bound = id(id);
        InetSocketAddress local = CallerMemory.readSocketAddress(address);
        Calls.run("bind", () -> bound.bind(local));
    }

    public void listen(long id, int backlog) throws IOException {
        CmId listener = id(id);
        Calls.run("listen", () -> listener.listen(backlog));
    }

    public void resolveAddress(long id, long destination, int timeoutMillis) throws IOException {
        CmId client = id(id);
        InetSocketAddress remote = CallerMemory.readSocketAddress(destination);
        Calls.run("resolveAddr", () -> client.resolveAddress(null, remote, timeoutMillis));
    }

    public void resolveRoute(long id, int timeoutMillis) throws IOException {
        CmId client = id(id);
        Calls.run("resolveRoute", () -> client.resolveRoute(timeoutMillis));
    }

    /**
     * Waits for an event.
     *
     * @param channel where
     * @param listener address of a long for the id that listened, -1 for none
     * @param client address of a long for the id of the event
     * @param timeoutMillis how long; negative waits forever
     * @return C's number of its type, or -1 if none came
     */
    public int getEvent(long channel, long listener, long client, int timeoutMillis) throws IOException {
        EventChannel events = (EventChannel) handles.get(channel, EventChannel.class).object;
        MemorySegment listenerNumber = CallerMemory.at(listener, Long.BYTES);
        MemorySegment clientNumber = CallerMemory.at(client, Long.BYTES);
        return Calls.call("getCmEvent", () -> {
            CmEvent event = events.get(timeoutMillis);
            if (event == null) {
                return NONE;
            }
            CmId listening = event.listener();
            clientNumber.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, number(event.id()));
            listenerNumber.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, listening == null ? NONE : number(listening));
            return event.type().value();
        });
    }

    /** The number of an id; of a new one, which a connection request brought, the first. */
    private long number(CmId id) throws IOException {
        return id.attachment() instanceof Handle known ? known.number : add(id);
    }

    public void connect(long id, int retries, int rnrRetries, long privateData, int privateBytes) throws IOException {
        CmId client = id(id);
        ConnectionParameters parameters = ConnectionParameters.DEFAULT
                .withRetries(clamp(retries), clamp(rnrRetries))
                .withPrivateData(CallerMemory.readBytes(privateData, privateBytes));
        Calls.run("connect", () -> client.connect(parameters));
    }

    public void accept(long id, int retries, int rnrRetries) throws IOException {
        CmId server = id(id);
        ConnectionParameters parameters = ConnectionParameters.DEFAULT.withRetries(clamp(retries), clamp(rnrRetries));
        Calls.run("accept", () -> server.accept(parameters));
    }

    /** The kernel takes what is above 7 for 7. */
    private static int clamp(int retries) {
        return Math.min(retries & 0xff, ConnectionParameters.MAX_RETRY_COUNT);
    }

    /**
     * Disconnects.
     *
     * @return 0, or -1 if librdmacm refused: DiSNI closes its endpoint in either case
     */
    public int disconnect(long id) throws IOException {
        CmId connected = id(id);
        return Calls.call("disconnect", () -> {
            try {
                connected.disconnect();
                return 0;
            } catch (CmException refused) {
                return -1;
            }
        });
    }

    public int destroyEventChannel(long channel) throws IOException {
        devices.close("destroyEventChannel", handles.get(channel, EventChannel.class), EventChannel::close);
        return 0;
    }

    /** Closes an id, and its queue pair before it if DiSNI did not. */
    public int destroyId(long id) throws IOException {
        Handle handle = handles.get(id, Connection.class);
        destroyQueuePair(id);
        Calls.run("destroyCmId", () -> handles.close(handle, ((Connection) handle.object).id::close));
        return 0;
    }

    public int destroyQueuePair(long id) throws IOException {
        Connection connection = connection(id);
        Handle queuePair = connection.queuePair;
        if (queuePair == null || !handles.contains(queuePair)) {
            return -1;
        }
        devices.close("destroyQP", queuePair, QueuePair::close);
        return 0;
    }

    public int localAddress(long id, long address) throws IOException {
        CmId asked = id(id);
        Calls.run("getSrcAddr", () -> CallerMemory.writeSocketAddress(address, asked.localAddress()));
        return 0;
    }

    public int remoteAddress(long id, long address) throws IOException {
        CmId asked = id(id);
        Calls.run("getDstAddr", () -> CallerMemory.writeSocketAddress(address, asked.remoteAddress()));
        return 0;
    }

    /**
     * The device of an id.
     *
     * @return its number, or -1 if the id is not bound to one
     */
    public long context(long id) throws IOException {
        CmId asked = id(id);
        return Calls.call("getContext", () -> {
            Context device = asked.device();
            return device == null ? NONE : devices.number(device);
        });
    }
}
