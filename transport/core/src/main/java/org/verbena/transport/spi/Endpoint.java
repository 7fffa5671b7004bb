package org.verbena.transport.spi;

import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;

/**
 * One reliable connected queue pair. Every method but {@link #disconnect()} belongs to the endpoint's event loop, and so do all callbacks of its
 * {@link EndpointHandler}. Nothing here allocates per operation.
 *
 * <pre>{@code
 * PREPARING --onPrepared--> PREPARED --onConnected--> CONNECTED
 *     |                        |                         | disconnect(), the peer, or an error
 *     |                        v                         v
 *     +-----------------> DRAINING: everything posted completes, with FLUSHED at the latest
 *                              | onDisconnected(cause): once, and the last callback
 *                              v
 *                           CLOSED
 * }</pre>
 *
 * <p>Receives may be posted from {@code onPrepared} on, other work from {@code onConnected} on. Every work request that was
 * taken ({@code true}) completes exactly once through the handler, in the order posted within the send queue and within the
 * receive queue. Work that is posted later, or refused with {@code false} or an exception, never completes.
 *
 * <p>The memory of a work request (its regions, or the bytes behind an inline send until the post returns) stays
 * registered until its completion, whatever its owner does meanwhile: the endpoint holds the region
 * ({@link RegisteredMemory#retain()}).
 */
public interface Endpoint {

    /**
     * What this endpoint can do, given its device, its options and, once connected, its peer. Valid from {@code onPrepared} on.
     *
     * @return limits and features
     */
    EndpointCapabilities capabilities();

    /**
     * How long a message must be to be better read by its receiver in one piece than sent in many, as measured with this kind of device; a default for who has
     * not decided.
     *
     * @param peerReceiveBytes the size of the peer's receives
     * @return the longest message that is better sent, in bytes
     */
    int rendezvousBytes(int peerReceiveBytes);

    /**
     * Where memory for this endpoint is registered. Valid from {@code onPrepared} on. A key of this domain opens its region to the peer of every
     * connection of the device.
     *
     * @return the domain, shared by all endpoints of a device
     */
    MemoryDomain memoryDomain();

    /**
     * Where memory for this connection's peer alone is registered. Valid from {@code onPrepared} on. A key of this domain opens its region to no other
     * peer, and to nobody once the connection has ended; a send with invalidate of this peer may take it back. The region itself stays registered until it
     * is closed, and the device's endpoints may name it in their work requests.
     *
     * @return {@link #memoryDomain()} if {@link EndpointCapabilities#connectionMemory()} is false
     */
    default MemoryDomain connectionMemory() {
        return memoryDomain();
    }

    /**
     * The local address. Valid from {@code onPrepared} on.
     *
     * @return address and port
     */
    InetSocketAddress localAddress();

    /**
     * The peer's address.
     *
     * @return address and port
     */
    InetSocketAddress remoteAddress();

    /**
     * The shared receive queue that serves this endpoint.
     *
     * @return null without one: then {@link #postReceive} takes the receives
     */
    @Nullable SharedReceiveQueue sharedReceiveQueue();

    /**
     * Stages a receive. The device sees it at {@link #flush()} at the latest.
     *
     * @param workId comes back in the completion; any value
     * @param buffers where the message goes; read during the call only
     * @return false if the receive queue is full or the endpoint is draining: nothing was taken
     * @throws IllegalArgumentException too many elements, outside their region, or without LOCAL_WRITE
     */
    boolean postReceive(long workId, ScatterGatherList buffers);

    /**
     * Stages a send, write, read or atomic. The device sees it at {@link #flush()} at the latest.
     *
     * @param request what to do; read during the call only, so it can be reused at once
     * @return false if the send queue is full, or the endpoint is not connected: nothing was taken
     * @throws IllegalArgumentException against the limits of {@link #capabilities()}, outside a region, or without its rights
     * @throws UnsupportedOperationException an operation that device or peer does not have
     */
    boolean post(WorkRequest request);

    /**
     * How much {@link #post} would take now.
     *
     * @return free slots of the send queue; each is free again when its work's completion is reported
     */
    int freeSendSlots();

    /** Gives everything staged to the device, in one call a queue. Work is never lost: what the device refuses completes with an error. */
    void flush();

    /**
     * Ends the connection, or the attempt. Idempotent, on any thread. Work that is still out is flushed; to have it done, wait for its completions
     * first. {@code onDisconnected} follows.
     */
    void disconnect();
}
