package org.verbena.transport.spi;

import io.netty.buffer.ByteBuf;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.RegisteredMemory;

/**
 * One reliable connected queue pair. Every method but {@link #disconnect()} belongs to the endpoint's event loop, and
 * so do all callbacks of its {@link EndpointHandler}. Nothing in this interface allocates per operation.
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
 * <p>Receives may be posted from {@code onPrepared} on, other work from {@code onConnected} on. Every accepted work
 * request ({@code true}) completes exactly once through the handler, in the order posted within the send queue and,
 * unless {@link #takeReceivesInAnyOrder()} was called, within the receive queue. Work that is posted later, or refused
 * with {@code false} or an exception, never completes. A completion is reported without delay, and does not wait for
 * other work to be posted, except that of a work request that is {@link WorkRequest#UNSIGNALLED}.
 *
 * <p>The memory of a work request (its regions, or the bytes behind an inline send until the post returns) stays
 * registered until its completion, whatever its owner does in the meantime: the endpoint retains the region ({@link
 * RegisteredMemory#retain()}), unless the poster does ({@link ScatterGatherList#addHeld}).
 */
public interface Endpoint {

    /**
     * The capabilities of this endpoint, given its device, its options and, once connected, its peer. Valid from {@code
     * onPrepared} on.
     *
     * @return limits and features
     */
    EndpointCapabilities capabilities();

    /**
     * The default rendezvous threshold: a longer message is faster read by the receiver than sent in fragments, as
     * measured with this kind of device or calculated for it.
     *
     * @param peerReceiveBytes the size of the peer's receives
     * @return the longest message that is faster to send, in bytes
     */
    int rendezvousBytes(int peerReceiveBytes);

    /**
     * The domain that memory for this endpoint is registered in. Valid from {@code onPrepared} on. A key of this domain
     * opens its region to the peer of every connection of the device.
     *
     * @return the domain, shared by all endpoints of a device
     */
    MemoryDomain memoryDomain();

    /**
     * The domain for memory that only this connection's peer may access. Valid from {@code onPrepared} on. A key of
     * this domain opens its region to no other peer, and to none once the connection has ended; this peer may
     * invalidate it by a send with invalidate. The region itself stays registered until it is closed, and the device's
     * endpoints may name it in their work requests. A peer that learns the key from what is posted next on this
     * endpoint finds the region open; a key that reaches it another way may arrive too early. A region that a loop
     * closes in the turn in which it registered it may be open until the loop's next turn; on other threads it is
     * closed when {@code close} returns, unless work in flight holds it.
     *
     * @return {@link #memoryDomain()} if {@link EndpointCapabilities#connectionMemory()} is false
     */
    default MemoryDomain connectionMemory() {
        return memoryDomain();
    }

    /**
     * Lets the peer use the memory of a group as well. On the loop, from {@code onPrepared} on; an endpoint joins one
     * group, and may do so again.
     *
     * @param group whose peers share memory
     * @return the domain for memory that the peers of the group's connections over this device may access. A key of
     *     this domain opens its region to no other peer, and no peer may invalidate it; closing the region ends the
     *     access. It is {@link #memoryDomain()} if {@link EndpointCapabilities#groupMemory()} is false
     */
    default MemoryDomain join(PeerGroup group) {
        return memoryDomain();
    }

    /**
     * Allows the peer's reads, writes and atomics, which is the default, or refuses them whatever key they have. Does
     * nothing on providers whose devices decide only by keys. On the loop; from {@code onPrepared} on.
     *
     * @param allowed false to end the connection of a peer that tries
     */
    default void allowRemoteAccess(boolean allowed) {}

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
     * @return null if there is none; then post receives with {@link #postReceive}
     */
    @Nullable SharedReceiveQueue sharedReceiveQueue();

    /**
     * Stages a receive. The device sees it at {@link #flush()} at the latest.
     *
     * @param workId returned in the completion; any value
     * @param buffers the memory to receive into; read during the call only
     * @return false if the receive queue is full or the endpoint is draining; then nothing is posted
     * @throws IllegalArgumentException too many elements, outside their region, or without LOCAL_WRITE
     */
    boolean postReceive(long workId, ScatterGatherList buffers);

    /**
     * Allows messages to take this endpoint's own receives in any order: to whom it does not matter, the one that was
     * posted last has the memory that the processor's caches are likeliest to have. From {@code onPrepared} on.
     */
    default void takeReceivesInAnyOrder() {}

    /**
     * Stages a send, write, read or atomic. The device sees it at {@link #flush()} at the latest.
     *
     * @param request the operation; read during the call only, so it can be reused immediately
     * @return false if the send queue is full or the endpoint is not connected; then nothing is posted
     * @throws IllegalArgumentException beyond the limits of {@link #capabilities()}, outside a region, or without its
     *     rights
     * @throws UnsupportedOperationException the device or the peer does not support the operation
     */
    boolean post(WorkRequest request);

    /**
     * Copies a message behind everything that was posted, without a work request: it takes no slot of the send queue
     * and has no completion. The peer gets it as a SEND, which leaves at {@link #flush()} at the latest, and before
     * what is posted after it. Only providers that copy what they send do this, and only if nothing that was posted
     * still has to go first.
     *
     * @param first the first eight bytes of the message, big-endian
     * @param second the next eight
     * @param rest what follows these; read during the call only, its indices unchanged
     * @param index where the rest begins
     * @param restBytes its length, 0 or more
     * @return false if the message has to be posted: nothing was sent
     * @throws RuntimeException as reading the buffer throws it: nothing was sent
     */
    default boolean trySend(long first, long second, ByteBuf rest, int index, int restBytes) {
        return false;
    }

    /**
     * Whether what {@link #trySend} has copied counts as sent, as a work request does that has completed. If it does
     * not after a flush, {@link EndpointHandler#onCompletionsHandled} is called once it does.
     *
     * @return false while less has gone than was copied, as before the flush
     */
    default boolean hasSentCopies() {
        return true;
    }

    /**
     * The number of work requests that {@link #post} would accept now.
     *
     * @return the free slots of the send queue; a slot is free again when the completion of its work request is
     *     reported
     */
    int freeSendSlots();

    /**
     * Gives everything staged to the device, in one call per queue. No work is lost: what the device refuses completes
     * with an error.
     */
    void flush();

    /**
     * Gives the system now what was flushed. A provider that gathers what several connections flush, for one system
     * call, otherwise does that before its loop waits.
     */
    default void push() {}

    /**
     * Ends the connection, or the attempt to connect. Idempotent, on any thread. Outstanding work is flushed; wait for
     * its completions first if it is to be done. {@code onDisconnected} follows.
     */
    void disconnect();
}
