package org.verbena.cm.sync;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.AddressInfo;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;

/**
 * An id whose calls wait for their outcome and throw if it is an error, as rdma_cm's synchronous mode does in C. It has
 * an event channel of its own.
 *
 * <pre>{@code
 * AddressInfo address = Cm.addressInfo(host, "7471", AddressInfo.Hints.active(PortSpace.TCP)).getFirst();
 * try (SynchronousId id = SynchronousId.of(address);
 *         CmEndpoint endpoint = CmEndpoint.create(id.id(), 4, 4)) {
 *     id.connect(ConnectionParameters.DEFAULT);
 * }
 * }</pre>
 *
 * <p>The kernel bounds each wait: by the timeout given when resolving, by the queue pair's retries when connecting.
 * Closing the id on another thread also ends a wait. Otherwise not thread-safe.
 *
 * <p>Source: rdma_cm(7), rdma_create_ep(3), rdma_get_request(3)
 */
public final class SynchronousId implements AutoCloseable {
    /** How long {@link #of} waits for the address and then for the route, as librdmacm's rdma_create_ep does. */
    private static final int RESOLVE_MILLIS = 2000;

    private static final int FOREVER = -1;

    private final EventChannel events;
    private final CmId id;

    /** The private data of a connect request that brings none. */
    private byte[] connectData = {};

    private @Nullable CmEvent lastEvent;

    private SynchronousId(EventChannel events, CmId id) {
        this.events = events;
        this.id = id;
    }

    /**
     * Creates an id.
     *
     * @param portSpace connections or datagrams
     * @return to be closed by the caller
     * @throws CmException as {@link EventChannel#open} and {@link CmId#create}
     */
    public static SynchronousId create(PortSpace portSpace) {
        EventChannel events = EventChannel.open();
        try {
            return new SynchronousId(events, CmId.create(events, portSpace));
        } catch (RuntimeException refused) {
            events.close();
            throw refused;
        }
    }

    /**
     * Creates an id from an address: if passive, it is bound; if active, its address and route are resolved when this
     * returns. Unlike C's rdma_create_ep this does not create the queue pair: use {@link CmEndpoint} or {@link
     * CmId#createQueuePair}.
     *
     * @param address as {@link org.verbena.cm.Cm#addressInfo} found it
     * @return to be closed by the caller
     * @throws CmException the address does not resolve, or cannot be bound
     * @throws IllegalArgumentException there is no IP address in it
     */
    public static SynchronousId of(AddressInfo address) {
        SynchronousId made = create(address.portSpace());
        try {
            if (address.flags().contains(AddressInfo.Flag.PASSIVE)) {
                made.id.bind(required(address.source(), "listen on", address));
            } else {
                InetSocketAddress destination = required(address.destination(), "connect to", address);
                made.resolveAddress(address.source(), destination, RESOLVE_MILLIS);
                if (address.route().length == 0) {
                    made.resolveRoute(RESOLVE_MILLIS);
                } else {
                    made.id.setRoute(address.route());
                    made.await("setting the route to " + destination, CmEventType.ROUTE_RESOLVED);
                }
                made.connectData = address.connect();
            }
            return made;
        } catch (RuntimeException refused) {
            made.close();
            throw refused;
        }
    }

    private static InetSocketAddress required(@Nullable InetSocketAddress known, String purpose, AddressInfo address) {
        if (known == null) {
            throw new IllegalArgumentException("no IP address to " + purpose + " in " + address);
        }
        return known;
    }

    /**
     * The id, for calls that do not wait. Do not {@link CmId#migrate} it: no event would end the waits then.
     *
     * @return this one's
     */
    public CmId id() {
        return id;
    }

    /**
     * The event that ended the last wait, with the peer's private data and parameters; at first the request for an id
     * from {@link #request}.
     *
     * @return null if there was none
     */
    public @Nullable CmEvent lastEvent() {
        return lastEvent;
    }

    /**
     * Maps an address to a device, as {@link CmId#resolveAddress}.
     *
     * @param localAddress the source address; null to let the routing table choose
     * @param remoteAddress the peer's
     * @param timeoutMillis how long the kernel may take
     * @throws CmException it does not resolve
     */
    public void resolveAddress(@Nullable SocketAddress localAddress, SocketAddress remoteAddress, int timeoutMillis) {
        id.resolveAddress(localAddress, remoteAddress, timeoutMillis);
        await("resolving " + remoteAddress, CmEventType.ADDR_RESOLVED);
    }

    /**
     * Finds the path to the peer, as {@link CmId#resolveRoute}.
     *
     * @param timeoutMillis how long the kernel may take
     * @throws CmException there is none
     */
    public void resolveRoute(int timeoutMillis) {
        id.resolveRoute(timeoutMillis);
        await("resolving the route to " + id.remoteAddress(), CmEventType.ROUTE_RESOLVED);
    }

    /**
     * Connects, as {@link CmId#connect}; of a datagram id, looks the service up.
     *
     * @param parameters what to ask for
     * @throws CmException the peer refused or did not answer
     */
    public void connect(ConnectionParameters parameters) {
        boolean isOwn = parameters.privateData().length > 0 || connectData.length == 0;
        id.connect(isOwn ? parameters : parameters.withPrivateData(connectData));
        await("connecting to " + id.remoteAddress(), CmEventType.ESTABLISHED, CmEventType.CONNECT_RESPONSE);
    }

    /**
     * Waits for the next connection request of an id that listens.
     *
     * @param timeoutMillis how long to wait; negative waits forever
     * @return the request's id, to be closed by the caller; {@link #lastEvent} of it is the request. Null if none came
     *     in time
     * @throws CmException the device is gone, or the request cannot be taken
     */
    public @Nullable SynchronousId request(int timeoutMillis) {
        CmEvent event = events.get(timeoutMillis);
        if (event == null) {
            return null;
        }
        if (event.type() != CmEventType.CONNECT_REQUEST) {
            lastEvent = event;
            throw event.toException("waiting for a connection request");
        }
        CmId requested = event.id();
        EventChannel own = null;
        try {
            own = EventChannel.open();
            requested.migrate(own);
        } catch (RuntimeException refused) {
            requested.close();
            if (own != null) {
                own.close();
            }
            throw refused;
        }
        SynchronousId request = new SynchronousId(own, requested);
        request.lastEvent = event;
        return request;
    }

    /**
     * Accepts a connection request, as {@link CmId#accept}; of a datagram id, answers a look-up and does not wait.
     *
     * @param parameters what to answer
     * @throws CmException the connection did not come up
     */
    public void accept(ConnectionParameters parameters) {
        id.accept(parameters);
        if (!id.isDatagram()) {
            await("accepting " + id.remoteAddress(), CmEventType.ESTABLISHED);
        }
    }

    /**
     * Ends the connection, as {@link CmId#disconnect}, and waits until the peer has answered.
     *
     * @throws CmException there is no connection
     */
    public void disconnect() {
        id.disconnect();
        await("disconnecting from " + id.remoteAddress(), CmEventType.DISCONNECTED);
    }

    private void await(String step, CmEventType... outcomes) {
        CmEvent event = Objects.requireNonNull(events.get(FOREVER), "waits forever");
        lastEvent = event;
        if (event.status() != 0 || !List.of(outcomes).contains(event.type())) {
            throw event.toException(step);
        }
    }

    /**
     * Closes the id and its events. Idempotent.
     *
     * @throws IllegalStateException while its queue pair is open
     */
    @Override
    public void close() {
        id.close();
        events.close();
    }

    @Override
    public String toString() {
        return "Synchronous" + id;
    }
}
