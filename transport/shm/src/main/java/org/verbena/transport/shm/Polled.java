package org.verbena.transport.shm;

/**
 * What a loop looks at in each of its turns: a connection, or the doorbell of all its connections with one process.
 * Not thread-safe; confined to
 * the loop's thread.
 */
abstract class Polled {
    /** Polls since there was something last. The handler's. */
    int idlePolls;

    /** Where it is among those that are polled, -1 if it is not. The handler's. */
    int awakeIndex = -1;

    /** Does what there is to do; returns how much there was. */
    abstract int poll();

    /** Asks the peer to wake this side; false if there is something to do already. */
    abstract boolean fallAsleep();

    /** It is polled from now on: the peer need not wake this side. */
    abstract void awake();

    final boolean isAwake() {
        return awakeIndex >= 0;
    }
}
