package org.verbena.transport.protocol;

/** What came with a message, or in its place, besides its bytes. */
enum Notice {
    NONE,
    /** 32 bits of the peer's. */
    IMMEDIATE,
    /** The peer has invalidated a key of this end. */
    INVALIDATED
}
