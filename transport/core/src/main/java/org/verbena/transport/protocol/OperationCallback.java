package org.verbena.transport.protocol;

import org.jspecify.annotations.Nullable;

/**
 * Called with the outcome of an operation: exactly once for each, on the loop; from within the call that started it
 * only if it is refused immediately. One instance can serve all operations; the context identifies them.
 */
@FunctionalInterface
public interface OperationCallback {

    /**
     * The operation is over, and all memory that it used is released.
     *
     * @param context the context of the operation, for example a promise
     * @param cause null for success; otherwise the failure: the connection's first cause if the connection was lost
     */
    void onComplete(@Nullable Object context, @Nullable Throwable cause);
}
