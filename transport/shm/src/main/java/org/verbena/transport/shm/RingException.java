package org.verbena.transport.shm;

/** The peer has written something into shared memory that does not keep to the format. */
final class RingException extends RuntimeException {
    @java.io.Serial
    private static final long serialVersionUID = 1L;

    RingException(String message) {
        super(message);
    }
}
