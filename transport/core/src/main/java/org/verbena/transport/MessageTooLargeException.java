package org.verbena.transport;

import java.io.Serial;

/** A message above the peer's limit. Nothing of it was sent, and the connection continues. */
public final class MessageTooLargeException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final long lengthBytes;
    private final long limitBytes;

    /**
     * Creates an exception.
     *
     * @param message the sizes and what to do
     * @param lengthBytes of the message
     * @param limitBytes the most that the peer takes
     */
    public MessageTooLargeException(String message, long lengthBytes, long limitBytes) {
        super(message);
        this.lengthBytes = lengthBytes;
        this.limitBytes = limitBytes;
    }

    /**
     * Returns how long the message is.
     *
     * @return in bytes
     */
    public long lengthBytes() {
        return lengthBytes;
    }

    /**
     * Returns the peer's limit.
     *
     * @return in bytes
     */
    public long limitBytes() {
        return limitBytes;
    }
}
