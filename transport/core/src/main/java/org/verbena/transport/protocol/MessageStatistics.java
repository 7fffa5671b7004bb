package org.verbena.transport.protocol;

/**
 * The counters and current state of a connection, or their sum over several connections.
 *
 * @param messagesSent messages that were reported as sent
 * @param bytesSent their bytes
 * @param messagesReceived messages delivered
 * @param bytesReceived their bytes
 * @param framesSent SENDs, control included
 * @param framesReceived receives consumed, control included
 * @param controlFramesSent SENDs that carried no message
 * @param rendezvousSent messages advertised for the peer to read from local memory
 * @param rendezvousReceived messages read from the peer's memory
 * @param copiedBytes bytes of messages copied because they were not in registered memory, or in too many parts
 * @param registrations messages registered for the operation
 * @param oneSidedOperations reads, writes and atomics that were reported as done
 * @param creditStalls how often operations began to wait for the peer's credits
 * @param creditStallNanos how long, in nanoseconds, without stalls still in progress: each from the first operation
 *     that found no credit until none waited any more
 * @param slotStalls how often operations began to wait for slots of the send queue or for the read depth
 * @param memoryStalls how often a receive or a copy waited for registered memory
 * @param transferStalls how often long reads or writes began to wait for their turn among the connections of the loop
 * @param receiveQueueLow how often the receives posted fell below a quarter of the depth: this side is slower than its
 *     peer, or does not read. With a shared receive queue, each of its connections that notices counts
 * @param credits now: message frames that the peer would accept
 * @param creditsGranted now: message frames that the peer may send
 * @param queuedBytes now: bytes of messages that have no outcome yet
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
    public static final MessageStatistics NONE = new Builder().build();

    /**
     * Adds the statistics of another connection.
     *
     * @param other what to add
     * @return the sum, member by member
     */
    public MessageStatistics plus(MessageStatistics other) {
        return new Builder()
                .messagesSent(messagesSent + other.messagesSent)
                .bytesSent(bytesSent + other.bytesSent)
                .messagesReceived(messagesReceived + other.messagesReceived)
                .bytesReceived(bytesReceived + other.bytesReceived)
                .framesSent(framesSent + other.framesSent)
                .framesReceived(framesReceived + other.framesReceived)
                .controlFramesSent(controlFramesSent + other.controlFramesSent)
                .rendezvousSent(rendezvousSent + other.rendezvousSent)
                .rendezvousReceived(rendezvousReceived + other.rendezvousReceived)
                .copiedBytes(copiedBytes + other.copiedBytes)
                .registrations(registrations + other.registrations)
                .oneSidedOperations(oneSidedOperations + other.oneSidedOperations)
                .creditStalls(creditStalls + other.creditStalls)
                .creditStallNanos(creditStallNanos + other.creditStallNanos)
                .slotStalls(slotStalls + other.slotStalls)
                .memoryStalls(memoryStalls + other.memoryStalls)
                .transferStalls(transferStalls + other.transferStalls)
                .receiveQueueLow(receiveQueueLow + other.receiveQueueLow)
                .credits(credits + other.credits)
                .creditsGranted(creditsGranted + other.creditsGranted)
                .queuedBytes(queuedBytes + other.queuedBytes)
                .build();
    }

    /** Builds a record; what is not set is 0. */
    static final class Builder {
        private long messagesSent;
        private long bytesSent;
        private long messagesReceived;
        private long bytesReceived;
        private long framesSent;
        private long framesReceived;
        private long controlFramesSent;
        private long rendezvousSent;
        private long rendezvousReceived;
        private long copiedBytes;
        private long registrations;
        private long oneSidedOperations;
        private long creditStalls;
        private long creditStallNanos;
        private long slotStalls;
        private long memoryStalls;
        private long transferStalls;
        private long receiveQueueLow;
        private long credits;
        private long creditsGranted;
        private long queuedBytes;

        Builder messagesSent(long value) {
            messagesSent = value;
            return this;
        }

        Builder bytesSent(long value) {
            bytesSent = value;
            return this;
        }

        Builder messagesReceived(long value) {
            messagesReceived = value;
            return this;
        }

        Builder bytesReceived(long value) {
            bytesReceived = value;
            return this;
        }

        Builder framesSent(long value) {
            framesSent = value;
            return this;
        }

        Builder framesReceived(long value) {
            framesReceived = value;
            return this;
        }

        Builder controlFramesSent(long value) {
            controlFramesSent = value;
            return this;
        }

        Builder rendezvousSent(long value) {
            rendezvousSent = value;
            return this;
        }

        Builder rendezvousReceived(long value) {
            rendezvousReceived = value;
            return this;
        }

        Builder copiedBytes(long value) {
            copiedBytes = value;
            return this;
        }

        Builder registrations(long value) {
            registrations = value;
            return this;
        }

        Builder oneSidedOperations(long value) {
            oneSidedOperations = value;
            return this;
        }

        Builder creditStalls(long value) {
            creditStalls = value;
            return this;
        }

        Builder creditStallNanos(long value) {
            creditStallNanos = value;
            return this;
        }

        Builder slotStalls(long value) {
            slotStalls = value;
            return this;
        }

        Builder memoryStalls(long value) {
            memoryStalls = value;
            return this;
        }

        Builder transferStalls(long value) {
            transferStalls = value;
            return this;
        }

        Builder receiveQueueLow(long value) {
            receiveQueueLow = value;
            return this;
        }

        Builder credits(long value) {
            credits = value;
            return this;
        }

        Builder creditsGranted(long value) {
            creditsGranted = value;
            return this;
        }

        Builder queuedBytes(long value) {
            queuedBytes = value;
            return this;
        }

        MessageStatistics build() {
            return new MessageStatistics(
                    messagesSent,
                    bytesSent,
                    messagesReceived,
                    bytesReceived,
                    framesSent,
                    framesReceived,
                    controlFramesSent,
                    rendezvousSent,
                    rendezvousReceived,
                    copiedBytes,
                    registrations,
                    oneSidedOperations,
                    creditStalls,
                    creditStallNanos,
                    slotStalls,
                    memoryStalls,
                    transferStalls,
                    receiveQueueLow,
                    credits,
                    creditsGranted,
                    queuedBytes);
        }
    }
}
