package org.verbena.transport;

import java.io.Serial;
import java.util.Objects;

/**
 * A failure that is a server's answer to a request: a code that the program chooses, words, and if need be a payload. A
 * handler throws it, or passes it to {@code Exchange.fail}, and the client's request fails with one that has the same
 * code, words and payload.
 *
 * <pre>{@code
 * throw new RequestFailure(404, "no such key");
 * }</pre>
 */
public final class RequestFailure extends RequestException {
    @Serial
    private static final long serialVersionUID = 1L;

    private static final byte[] NONE = {};

    private final int code;
    private final byte[] payload;

    /**
     * Creates one without a payload.
     *
     * @param code what the program calls the failure, 0 or more
     * @param message words for people; of longer ones the first 1,000 characters are sent
     * @throws IllegalArgumentException the code is negative
     */
    public RequestFailure(int code, String message) {
        this(code, message, NONE);
    }

    /**
     * Creates one.
     *
     * @param code what the program calls the failure, 0 or more
     * @param message words for people; of longer ones the first 1,000 characters are sent
     * @param payload what else the client is to know, in the program's format; copied
     * @throws IllegalArgumentException the code is negative
     */
    public RequestFailure(int code, String message, byte[] payload) {
        super(Objects.requireNonNull(message, "the message is null"));
        if (code < 0) {
            throw new IllegalArgumentException("the code of a failure is " + code + ", and must be 0 or more");
        }
        this.code = code;
        this.payload = payload.length == 0 ? NONE : payload.clone();
    }

    /**
     * Returns what the program calls the failure.
     *
     * @return 0 or more
     */
    public int code() {
        return code;
    }

    /**
     * Returns what else the server has said.
     *
     * @return a copy; empty if there is nothing
     */
    public byte[] payload() {
        return payload.clone();
    }
}
