package org.verbena.transport.spi;

/**
 * The capabilities of a datagram endpoint: what is in force.
 *
 * @param maxDatagramBytes the longest datagram that can be sent: the MTU of the device's port
 * @param receiveBytes how long the buffer of a receive must be for any datagram that may come, the headroom included
 * @param headroomBytes how many bytes the device writes in front of a datagram that was received: 40, the global route
 *     header
 * @param sendDepth sends outstanding
 * @param receiveDepth receives posted
 * @param maxSges scatter/gather elements of one send or receive
 * @param maxInlineBytes datagrams of up to so many bytes are copied when they are posted
 */
public record DatagramCapabilities(
        int maxDatagramBytes,
        int receiveBytes,
        int headroomBytes,
        int sendDepth,
        int receiveDepth,
        int maxSges,
        int maxInlineBytes) {}
