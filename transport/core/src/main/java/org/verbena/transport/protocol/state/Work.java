package org.verbena.transport.protocol.state;

/** The owner of a work request; control frames have none. */
public interface Work {
    /** Whether the request that is out takes a part of the read depth. */
    boolean reads();

    /** Whether it fetches a message that the peer advertised; otherwise it is an operation of the program. */
    boolean fetches();
}
