package org.verbena.transport.spi;

/**
 * Connections whose peers may use the same memory: those of a server. It has no state and is compared by identity. See
 * {@link Endpoint#join}.
 */
public final class PeerGroup {
    /** Creates a group without connections. */
    public PeerGroup() {}
}
