package org.verbena.transport.protocol;

/** What keeps the first operation that waits from being posted. */
enum Obstacle {
    NONE,
    /** The peer has granted nothing. */
    CREDIT,
    /** The send queue is full, or as many reads or rendezvous are under way as may be. */
    SLOT,
    /** There is no registered memory to send a copy from. */
    MEMORY
}
