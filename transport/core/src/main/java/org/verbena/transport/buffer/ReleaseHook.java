package org.verbena.transport.buffer;

/**
 * Called when a buffer that was charged to an account is released, to bound the memory that others hold. Any thread;
 * must not block or throw.
 */
@FunctionalInterface
public interface ReleaseHook {

    /**
     * The last reference to a buffer is gone, and its memory is back in the pool.
     *
     * @param charge the amount that it was charged with
     */
    void onReleased(int charge);
}
