package org.verbena.transport.spi;

/**
 * Limits for a server's peers that have connected and not introduced themselves completely. They apply until the
 * listener has the peer's request, and again from there to the end of the message protocol's handshake, the proof of a
 * pre-shared key included.
 *
 * @param most how many such connections a server may have, 1 or more; beyond that the oldest makes room
 * @param mostPerAddress how many of them one address may have while others want to connect, 1 or more; an address with
 *     more loses its own oldest. IPv6 addresses count by their /64 network
 * @param timeoutMillis how long a peer may take for each step, 1 or more
 */
public record HandshakeLimits(int most, int mostPerAddress, int timeoutMillis) {

    /**
     * 4096 connections, 1024 of an address, 30 s: a connection manager may have to repeat its messages, and a machine
     * that makes many connections at once may be slow. The counts bound what strangers can hold.
     */
    public static final HandshakeLimits DEFAULTS = new HandshakeLimits(4096, 1024, 30_000);

    /** Checks ranges. */
    public HandshakeLimits {
        if (most < 1 || mostPerAddress < 1 || timeoutMillis < 1) {
            throw new IllegalArgumentException("handshake limits of " + most + " connections, " + mostPerAddress
                    + " of an address and " + timeoutMillis + " ms: each must be 1 or more");
        }
    }
}
