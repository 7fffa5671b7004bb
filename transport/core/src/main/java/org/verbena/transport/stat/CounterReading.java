package org.verbena.transport.stat;

/**
 * The counters of a connection; {@code MessageStatistics} says what each counts.
 *
 * @param messagesSent messages
 * @param bytesSent their bytes
 * @param messagesReceived messages
 * @param bytesReceived their bytes
 * @param framesSent SENDs
 * @param framesReceived receives
 * @param controlFramesSent SENDs without a message
 * @param rendezvousSent messages that the peer read
 * @param rendezvousReceived messages read from the peer
 * @param copiedBytes bytes copied to be sent
 * @param registrations messages registered to be sent
 * @param oneSidedOperations reads, writes and atomics
 * @param creditStalls waits for credits
 * @param creditStallNanos how long, in nanoseconds, without one in progress
 * @param slotStalls waits for the send queue or the read depth
 * @param memoryStalls waits for registered memory
 * @param transferStalls waits of long reads and writes for those of other connections
 * @param receiveQueueLow times that receives ran low
 * @param credits messages that the peer would accept now
 * @param creditsGranted messages that the peer may send now
 * @param queuedBytes bytes without an outcome now
 */
public record CounterReading(
        long messagesSent,
        long bytesSent,
        long messagesReceived,
        long bytesReceived,
        long framesSent,
        long framesReceived,
        long controlFramesSent,
        long rendezvousSent,
        long rendezvousReceived,
        long copiedBytes,
        long registrations,
        long oneSidedOperations,
        long creditStalls,
        long creditStallNanos,
        long slotStalls,
        long memoryStalls,
        long transferStalls,
        long receiveQueueLow,
        long credits,
        long creditsGranted,
        long queuedBytes) {

    /** In the order of the layout. */
    static CounterReading of(long[] values) {
        return new CounterReading(
                values[0],
                values[1],
                values[2],
                values[3],
                values[4],
                values[5],
                values[6],
                values[7],
                values[8],
                values[9],
                values[10],
                values[11],
                values[12],
                values[13],
                values[14],
                values[15],
                values[16],
                values[17],
                values[18],
                values[19],
                values[20]);
    }
}
