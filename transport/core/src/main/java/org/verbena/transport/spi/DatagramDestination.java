package org.verbena.transport.spi;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.DatagramPeer;

/**
 * Where datagrams of one {@link DatagramEndpoint} can be sent: a queue pair that was looked up, or a multicast group.
 * Only on the event loop's thread.
 */
public interface DatagramDestination {

    /**
     * Whether it can be sent to.
     *
     * @return true from {@link DatagramHandler#onResolved} without a cause on, until {@link #close()} or the endpoint's
     *     end
     */
    boolean isReady();

    /**
     * The queue pair behind it.
     *
     * @return null before it is ready
     */
    @Nullable DatagramPeer peer();

    /**
     * Gives it back; what was sent to it already completes as usual. A pending look-up is cancelled, and {@link
     * DatagramHandler#onResolved} is not called any more. Leaves the group if it is one. Idempotent.
     */
    void close();
}
