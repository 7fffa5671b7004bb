package org.verbena.transport.protocol;

/**
 * What a connection has done so far.
 *
 * @param messagesSent messages whose success was told
 * @param bytesSent their bytes
 * @param messagesReceived messages delivered
 * @param bytesReceived their bytes
 * @param framesSent SENDs, control included
 * @param framesReceived receives consumed, control included
 * @param controlFramesSent SENDs that carried no message
 * @param rendezvousSent messages that the peer read out of our memory
 * @param rendezvousReceived messages read out of the peer's memory
 * @param copiedBytes bytes of messages copied because they were not in registered memory, or in too many pieces
 * @param registrations messages registered for the operation
 * @param creditStalls how often operations began to wait for the peer's credits
 * @param slotStalls how often operations began to wait for slots of the send queue, or for the read depth
 * @param memoryStalls how often a receive or a copy waited for registered memory
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
        long creditStalls,
        long slotStalls,
        long memoryStalls) {}
