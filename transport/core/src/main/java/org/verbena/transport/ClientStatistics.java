package org.verbena.transport;

/**
 * The figures of one client of the short form, all its connections together.
 *
 * @param target whose clients these are: a host and port, or what else the program has given
 * @param state of the client, as {@code ClientState} names it
 * @param lastFailure why it had no connection the last time; empty if it was never without one
 * @param waitingRequests now: requests and messages that wait for a connection, or for room on one
 * @param waitingBytes now: their bytes, and those of streams that have no connection
 * @param connections connections that were up so far: less one for each connection open now, those that were made again
 * @param failedAttempts attempts to connect that failed, and connections that ended, so far
 * @param retries requests that were sent again, after a loss or an overload
 * @param hedges requests that were sent a second time while the first attempt was under way
 * @param lateReplies replies to requests that had timed out or were cancelled
 */
public record ClientStatistics(
        String target,
        String state,
        String lastFailure,
        long waitingRequests,
        long waitingBytes,
        long connections,
        long failedAttempts,
        long retries,
        long hedges,
        long lateReplies) {

    /** The figures of no client. */
    public static final ClientStatistics NONE = new ClientStatistics("", "", "", 0, 0, 0, 0, 0, 0, 0);

    /**
     * The numbers, in the order of the components.
     *
     * @return a copy
     */
    public long[] numbers() {
        return new long[] {waitingRequests, waitingBytes, connections, failedAttempts, retries, hedges, lateReplies};
    }
}
