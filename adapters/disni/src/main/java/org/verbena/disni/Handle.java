package org.verbena.disni;

import java.util.concurrent.locks.ReentrantLock;
import org.verbena.verbs.QueuePair;

/**
 * An object that DiSNI knows by a number. Posting, polling and closing hold its lock: C's libraries allow the first two
 * on any thread, and Verbena's objects do not check that nobody is in them when they are closed.
 */
final class Handle {
    final long number;
    final Object object;

    /** For the send queue of a queue pair, and for whatever else is done about the object. */
    final ReentrantLock lock = new ReentrantLock();

    /** For the receive queue of a queue pair: a thread that posts receives does not wait for one that sends. */
    final ReentrantLock receiveLock;

    Handle(long number, Object object) {
        this.number = number;
        this.object = object;
        this.receiveLock = object instanceof QueuePair ? new ReentrantLock() : lock;
    }
}
