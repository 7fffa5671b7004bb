package org.verbena.transport.buffer;

/** Hears when a buffer that was charged to an account is released: who bounds what others hold needs to know. Any thread; must not block or throw. */
@FunctionalInterface
public interface ReleaseHook {

    /**
     * The last reference to a buffer is gone, and its memory is back in the pool.
     *
     * @param charge what it was charged with
     */
    void onReleased(int charge);
}
