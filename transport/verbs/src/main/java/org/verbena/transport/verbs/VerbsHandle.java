package org.verbena.transport.verbs;

import io.netty.channel.IoEvent;
import io.netty.channel.IoHandle;
import io.netty.channel.IoRegistration;

/**
 * An endpoint or a listener on a {@link CompletionIoHandler}. It is registered so that it finds its handler, and so
 * that it ends with the loop.
 */
interface VerbsHandle extends IoHandle {

    /** Completions come through the handler's queues, not as events. */
    @Override
    default void handle(IoRegistration registration, IoEvent event) {
        throw new UnsupportedOperationException("a verbs handle has no I/O events");
    }

    /** The loop is going to end: end in good order if there is time. */
    @Override
    void close();

    /** The loop ends now and takes no tasks any more: end at once. */
    void destroy();

    /** The loop waits no longer: notify those that wait for this handle. What is still in use stays behind. */
    void abandon();
}
