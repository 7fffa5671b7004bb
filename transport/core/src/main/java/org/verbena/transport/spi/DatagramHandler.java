package org.verbena.transport.spi;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkStatus;

/**
 * Receives the events of one datagram endpoint, always on its event loop's thread and never re-entrantly from one of
 * the endpoint's own methods. An exception from a callback ends the endpoint and becomes its cause.
 */
public interface DatagramHandler {

    /**
     * The queue pair exists, and peers that look its port up find it: post the first receives now. Called at most once.
     *
     * @param endpoint the endpoint
     */
    void onOpened(DatagramEndpoint endpoint);

    /**
     * A destination was found or a group was joined, or not. Called once for each destination, unless it was closed
     * before.
     *
     * @param endpoint the endpoint
     * @param destination as {@link DatagramEndpoint#resolve} and {@link DatagramEndpoint#join} returned it
     * @param cause null if it is ready; otherwise a {@link ConnectionException} that names the address and the reason,
     *     and the destination is closed
     */
    void onResolved(DatagramEndpoint endpoint, DatagramDestination destination, @Nullable Throwable cause);

    /**
     * A group that was joined is lost: the network changed. The destination is closed.
     *
     * @param endpoint the endpoint
     * @param destination the group
     * @param cause what is known about the reason
     */
    void onGroupLost(DatagramEndpoint endpoint, DatagramDestination destination, Throwable cause);

    /**
     * A datagram has left, which does not say that it will arrive. In the order of the sends.
     *
     * @param endpoint the endpoint
     * @param workId the id that was posted
     * @param status {@link WorkStatus#SUCCESS}, or why not; then {@link #onClosed} follows
     */
    void onSendCompletion(DatagramEndpoint endpoint, long workId, WorkStatus status);

    /**
     * A receive has a datagram, or was flushed. In the order of the receives.
     *
     * @param endpoint the endpoint
     * @param workId the id that was posted
     * @param status {@link WorkStatus#SUCCESS}, or why not; nothing else is valid then
     * @param arrival what the device reports about it; valid during the call
     */
    void onReceiveCompletion(DatagramEndpoint endpoint, long workId, WorkStatus status, DatagramArrival arrival);

    /**
     * The end of a batch of completions: time to flush.
     *
     * @param endpoint the endpoint
     */
    void onCompletionsHandled(DatagramEndpoint endpoint);

    /**
     * The end: called exactly once, after the completions of everything posted and the outcomes of all look-ups.
     *
     * @param endpoint the endpoint
     * @param cause null after {@link DatagramEndpoint#close()}; otherwise why it could not be opened, or the first
     *     failure
     */
    void onClosed(DatagramEndpoint endpoint, @Nullable Throwable cause);
}
