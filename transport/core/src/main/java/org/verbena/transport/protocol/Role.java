package org.verbena.transport.protocol;

/** Which end of a connection speaks first. */
public enum Role {
    /** It called connect and sends HELLO. */
    INITIATOR,
    /** It accepted the connection and answers. */
    ACCEPTOR
}
