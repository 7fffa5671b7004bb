package org.verbena.transport;

/** The content of a SEND. Both ends must use the same framing. */
public enum Framing {
    /** Messages of any size, boundaries kept, with flow control by credits. */
    MESSAGE(1),
    /**
     * Bytes without boundaries, as over TCP, with flow control by credits and half close. Bytes that are sent together
     * travel together; they are delivered in pieces of any size.
     */
    STREAM(2),
    /**
     * One SEND is one message, without header, handshake or flow control, for peers that do not speak Verbena's
     * protocol. The application must make sure that the peer has a receive posted for each message, and that it is
     * large enough.
     */
    RAW(0);

    private final int wireValue;

    Framing(int wireValue) {
        this.wireValue = wireValue;
    }

    /**
     * Its encoding on the wire.
     *
     * @return a value that fits a byte
     */
    public int wireValue() {
        return wireValue;
    }
}
