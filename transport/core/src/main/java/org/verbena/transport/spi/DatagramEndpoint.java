package org.verbena.transport.spi;

import java.net.InetSocketAddress;
import org.verbena.transport.DatagramPeer;
import org.verbena.transport.MemoryDomain;

/**
 * One unreliable datagram (UD) queue pair, with the port of the connection manager at which peers look it up. Every
 * method but {@link #close()} belongs to the endpoint's event loop, and so do all callbacks of its {@link
 * DatagramHandler}.
 *
 * <pre>{@code
 * OPENING --onOpened--> OPEN --close(), or an error--> DRAINING: what is posted completes, FLUSHED at the latest
 *    |                                                    | onClosed(cause): once, and the last callback
 *    +--------------------------------------------------> CLOSED
 * }</pre>
 *
 * <p>A datagram has at most the MTU. It may be lost, for instance because the receiver has no receive posted, may come
 * twice, and may overtake others, without any report. Every accepted work request ({@code true}) completes exactly once
 * through the handler.
 */
public interface DatagramEndpoint {

    /**
     * What is in force. Valid from {@code onOpened} on.
     *
     * @return limits
     */
    DatagramCapabilities capabilities();

    /**
     * The domain that memory for this endpoint is registered in. Valid from {@code onOpened} on.
     *
     * @return the domain, shared by all endpoints of a device
     */
    MemoryDomain memoryDomain();

    /**
     * The address that peers look up. Valid from {@code onOpened} on.
     *
     * @return address and port
     */
    InetSocketAddress localAddress();

    /**
     * The queue pair as peers see it. Valid from {@code onOpened} on.
     *
     * @return its GID and number
     */
    DatagramPeer self();

    /**
     * Starts to look up the queue pair that serves an address; or, for a multicast address, to join the group for
     * sending only.
     *
     * @param address resolved
     * @param timeoutMillis how long it may take, 1 or more
     * @return not ready yet; {@link DatagramHandler#onResolved} follows, never within this call
     */
    DatagramDestination resolve(InetSocketAddress address, int timeoutMillis);

    /**
     * Starts to prepare what is needed to send to a queue pair that is known, for instance because a datagram of it
     * came. No peer is asked; a query of the network may take ten seconds at most.
     *
     * @param peer the queue pair
     * @return not ready yet; {@link DatagramHandler#onResolved} follows, never within this call
     */
    DatagramDestination resolve(DatagramPeer peer);

    /**
     * Starts to join a multicast group, to receive from it and to send to it.
     *
     * @param group its address; the port is ignored
     * @param timeoutMillis how long it may take, 1 or more
     * @return not ready yet; {@link DatagramHandler#onResolved} follows, never within this call. Closing it leaves the
     *     group
     */
    DatagramDestination join(InetSocketAddress group, int timeoutMillis);

    /**
     * Stages a receive. The device sees it at {@link #flush()} at the latest.
     *
     * @param workId returned in the completion; any value
     * @param buffers the memory to receive into, {@link DatagramCapabilities#receiveBytes} long
     * @return false if the receive queue is full or the endpoint is not open; then nothing is posted
     * @throws IllegalArgumentException too many elements, outside their region, or without LOCAL_WRITE
     */
    boolean postReceive(long workId, ScatterGatherList buffers);

    /**
     * Stages a send. The device sees it at {@link #flush()} at the latest.
     *
     * @param workId returned in the completion; any value
     * @param buffers the datagram; read during the call only
     * @param destination ready, of this endpoint
     * @param hasImmediateData whether immediate data is added to it
     * @param immediateData in host order
     * @return false if the send queue is full or the endpoint is not open; then nothing is posted
     * @throws IllegalArgumentException it is longer than the MTU, has too many elements, or memory of another domain
     * @throws IllegalStateException the destination is not ready
     */
    boolean post(
            long workId,
            ScatterGatherList buffers,
            DatagramDestination destination,
            boolean hasImmediateData,
            int immediateData);

    /**
     * The number of sends that {@link #post} would accept now.
     *
     * @return the free slots of the send queue
     */
    int freeSendSlots();

    /**
     * Gives everything staged to the device, in one call per queue. What the device refuses completes with an error.
     */
    void flush();

    /**
     * Closes it. Idempotent, on any thread. Outstanding work is flushed; wait for its completions first if it is to be
     * done. {@code onClosed} follows.
     */
    void close();
}
