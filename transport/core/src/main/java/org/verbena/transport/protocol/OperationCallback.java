package org.verbena.transport.protocol;

import org.jspecify.annotations.Nullable;

/**
 * Hears how an operation ended: exactly once for each operation, on the loop; from within the call that started it only if it is refused at once. One
 * instance can serve all operations: what tells them apart is the context.
 */
@FunctionalInterface
public interface OperationCallback {

    /**
     * The operation is over, and all memory it used is free again.
     *
     * @param context what was given along with the operation, for example a promise
     * @param cause null for success; else why not, the connection's first cause if it died
     */
    void onComplete(@Nullable Object context, @Nullable Throwable cause);
}
