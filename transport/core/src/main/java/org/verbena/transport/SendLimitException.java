package org.verbena.transport;

import java.io.Serial;

/**
 * A message or request was not sent, since its connection already has as much waiting to be sent as {@code maxPending}
 * allows. The connection stays up. The message may be sent again when the future of an earlier one is done.
 */
public final class SendLimitException extends RdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final int pendingMessages;
    private final long pendingBytes;

    /**
     * Creates one.
     *
     * @param message what failed, with the peer's address
     * @param pendingMessages how many wait
     * @param pendingBytes how long these are together
     */
    public SendLimitException(String message, int pendingMessages, long pendingBytes) {
        super(message);
        this.pendingMessages = pendingMessages;
        this.pendingBytes = pendingBytes;
    }

    /**
     * Returns how many messages waited.
     *
     * @return a count
     */
    public int pendingMessages() {
        return pendingMessages;
    }

    /**
     * Returns how long these were together.
     *
     * @return in bytes
     */
    public long pendingBytes() {
        return pendingBytes;
    }
}
