package org.verbena.transport.ffm;

import java.io.IOException;
import java.io.Serial;

/** A system call failed. Its number decides what follows; the text is for people. */
public final class ErrnoException extends IOException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final int errno;

    /**
     * Creates an exception.
     *
     * @param call with its arguments
     * @param errno that it left
     */
    public ErrnoException(String call, int errno) {
        super(call + " failed with " + Errno.describe(errno));
        this.errno = errno;
    }

    /**
     * What the call left.
     *
     * @return one of {@link Errno}'s, or another
     */
    public int errno() {
        return errno;
    }
}
