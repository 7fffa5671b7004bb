package org.verbena.transport;

/**
 * The counters and current state of a connection, or their sum over several connections.
 *
 * @param messagesSent messages that were reported as sent
 * @param bytesSent their bytes
 * @param messagesReceived messages delivered
 * @param bytesReceived their bytes
 * @param framesSent SENDs, control included
 * @param framesReceived frames that came, control included
 * @param controlFramesSent SENDs that carried no message
 * @param rendezvousSent messages advertised for the peer to read from local memory
 * @param rendezvousReceived messages read from the peer's memory
 * @param copiedBytes bytes of messages copied because they were not in registered memory, or in too many parts; not
 *     those of short messages that share a frame, which are always copied
 * @param registrations messages registered for the operation
 * @param oneSidedOperations reads, writes and atomics that were reported as done
 * @param creditStalls how often operations began to wait for the peer's credits
 * @param creditStallNanos how long these stalls lasted, in nanoseconds: each from the first operation that found no
 *     credit until none waited any more, without a stall still in progress
 * @param slotStalls how often operations began to wait for slots of the send queue or for the read depth
 * @param memoryStalls how often a receive or a copy waited for registered memory
 * @param transferStalls how often long reads or writes began to wait for their turn among the connections of the loop
 * @param receiveQueueLow how often the receives posted fell below a quarter of the depth: this side is slower than its
 *     peer, or does not read. With a shared receive queue, each of its connections that notices counts
 * @param credits now: message frames that the peer would accept
 * @param creditsGranted now: message frames that the peer may send
 * @param queuedBytes now: bytes of what the program has handed over and that has no outcome yet, wherever it waits: in
 *     the channel, in the short form or in a stream, but not in one that has no connection. While messages wait for
 *     credits in the channel, it is Netty's figure, which has some 100 bytes more for each
 */
public record MessageStatistics(
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

    /** The statistics of a new connection. */
    public static final MessageStatistics NONE = of(new long[21]);

    /**
     * Makes statistics of their values.
     *
     * @param values as many as there are components, in their order
     * @return the statistics
     */
    public static MessageStatistics of(long[] values) {
        return new MessageStatistics(
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

    /**
     * Adds the statistics of another connection.
     *
     * @param other what to add
     * @return the sum, member by member
     */
    public MessageStatistics plus(MessageStatistics other) {
        return new MessageStatistics(
                messagesSent + other.messagesSent,
                bytesSent + other.bytesSent,
                messagesReceived + other.messagesReceived,
                bytesReceived + other.bytesReceived,
                framesSent + other.framesSent,
                framesReceived + other.framesReceived,
                controlFramesSent + other.controlFramesSent,
                rendezvousSent + other.rendezvousSent,
                rendezvousReceived + other.rendezvousReceived,
                copiedBytes + other.copiedBytes,
                registrations + other.registrations,
                oneSidedOperations + other.oneSidedOperations,
                creditStalls + other.creditStalls,
                creditStallNanos + other.creditStallNanos,
                slotStalls + other.slotStalls,
                memoryStalls + other.memoryStalls,
                transferStalls + other.transferStalls,
                receiveQueueLow + other.receiveQueueLow,
                credits + other.credits,
                creditsGranted + other.creditsGranted,
                queuedBytes + other.queuedBytes);
    }
}
