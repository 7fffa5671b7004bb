package org.verbena.transport.protocol;

/** What a SEND carries. Both ends must use the same. */
public enum Framing {
    /** Messages of any size, boundaries kept, with flow control by credits. */
    MESSAGE(1),
    /**
     * Bytes without boundaries, as over TCP, with flow control by credits and half close. What is sent together travels together; it is read in pieces of
     * whatever size came.
     */
    STREAM(2),
    /**
     * One SEND is one message, without header, handshake or flow control: to talk with programs that are not Verbena's. The user sees to it
     * that the peer has a receive posted for each message, and that it is large enough.
     */
    RAW(0);

    private final int wireValue;

    Framing(int wireValue) {
        this.wireValue = wireValue;
    }

    /**
     * How it is written on the wire.
     *
     * @return a byte's worth
     */
    int wireValue() {
        return wireValue;
    }
}
