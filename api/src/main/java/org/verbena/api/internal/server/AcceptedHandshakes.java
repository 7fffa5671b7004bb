package org.verbena.api.internal.server;

import org.verbena.transport.spi.HandshakeLimits;
import org.verbena.transport.spi.Handshakes;

/**
 * A server's connections that were accepted and whose handshake is not complete: peers that have not sent HELLO, or not
 * proved their key. At most as many are allowed as the provider allows to wait for a complete request; beyond that the
 * oldest makes room. Any thread.
 */
public final class AcceptedHandshakes {
    // Guarded by this.
    private final Handshakes<Acceptance> pending = new Handshakes<>();

    /**
     * A peer is about to be accepted.
     *
     * @param accepting ended by {@link #end}
     * @param network of its address
     * @param limits of its provider
     */
    void begin(Acceptance accepting, long network, HandshakeLimits limits) {
        Acceptance victim;
        synchronized (this) {
            victim = pending.size() >= limits.most() ? pending.victimFor(network, limits.mostPerAddress()) : null;
            if (victim != null) {
                pending.remove(victim);
            }
            pending.add(accepting, network);
        }
        if (victim != null) {
            victim.makeRoom();
        }
    }

    /** How many there are now. */
    public synchronized int size() {
        return pending.size();
    }

    /** Removes a connection whose handshake is complete, or which has ended. Idempotent. */
    synchronized void end(Acceptance accepting) {
        pending.remove(accepting);
    }
}
