package org.verbena.transport.protocol.receiving;

/** What came with a message, or in its place, besides its bytes. */
public enum Notice {
    NONE,
    /** 32 bits of the peer's. */
    IMMEDIATE,
    /** The peer has invalidated a key of this end. */
    INVALIDATED
}
