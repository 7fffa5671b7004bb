package org.verbena.transport.protocol.receiving;

/** What came with a message, or in its place, besides its bytes. */
public enum Notice {
    NONE,
    /** The peer's 32 bits of immediate data. */
    IMMEDIATE,
    /** The peer has invalidated a key of this end. */
    INVALIDATED
}
