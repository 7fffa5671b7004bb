package org.verbena.verbs;

import java.io.Serial;
import org.verbena.verbs.ffm.Errno;

/**
 * A call of libibverbs failed. The message has the call, its arguments, the symbolic errno and, for common mistakes, a
 * hint.
 */
public final class VerbsException extends NativeRdmaException {
    @Serial
    private static final long serialVersionUID = 1L;

    /** The function. */
    private final String call;

    /** The errno. */
    private final int errno;

    /**
     * Creates an exception.
     *
     * @param call the function and its arguments: {@code ibv_reg_mr(length=4096, access=LOCAL_WRITE)}
     * @param errno what it answered, as errno(3)
     * @param hint what usually causes it and what to do, as a sentence; empty if nothing is known
     */
    public VerbsException(String call, int errno, String hint) {
        super(call + " failed with " + Errno.name(errno) + (hint.isEmpty() ? "" : ": " + hint));
        this.call = call;
        this.errno = errno;
    }

    /**
     * The function that failed.
     *
     * @return its name and arguments
     */
    public String call() {
        return call;
    }

    /**
     * The errno.
     *
     * @return a positive errno
     */
    @Override
    public int errno() {
        return errno;
    }
}
