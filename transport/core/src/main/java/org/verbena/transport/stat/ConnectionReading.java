package org.verbena.transport.stat;

import org.verbena.transport.MessageStatistics;

/**
 * A connection of a process.
 *
 * @param index its row
 * @param begunNanos when it began, {@link System#nanoTime()}: with the row it identifies the connection
 * @param threadId its loop's thread
 * @param local its address at the process; empty if unknown, and so are the other texts
 * @param peer the other address
 * @param provider its provider
 * @param reason why that was chosen
 * @param role of this end: INITIATOR or ACCEPTOR
 * @param framing MESSAGE, STREAM or RAW
 * @param phase as in {@code docs/architecture.md}
 * @param peerWindow messages that the peer accepts at first; 0 before both ends have agreed
 * @param stalledSinceNanos since when messages wait for credits, or 0
 * @param lastActivityNanos when a frame was last sent or received, to a tenth of a second
 * @param errorMillis when something failed without ending it, since 1970, or 0
 * @param error what that was
 * @param label what the program calls the peer
 * @param missedBroadcasts messages to a group of clients that it has missed
 * @param counters its counters
 * @param latency how long requests took: at a client from the request to the reply, at a server from the request's
 *     arrival until the reply was sent
 */
public record ConnectionReading(
        int index,
        long begunNanos,
        long threadId,
        String local,
        String peer,
        String provider,
        String reason,
        String role,
        String framing,
        String phase,
        long peerWindow,
        long stalledSinceNanos,
        long lastActivityNanos,
        long errorMillis,
        String error,
        String label,
        long missedBroadcasts,
        MessageStatistics counters,
        LatencyHistogram latency) {

    /**
     * Whether another reading is of this connection.
     *
     * @param other the other reading, of the same process
     * @return false if the row has another owner
     */
    public boolean isSame(ConnectionReading other) {
        return index == other.index && begunNanos == other.begunNanos;
    }
}
