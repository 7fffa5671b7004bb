package org.verbena.api.internal.request;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.jspecify.annotations.Nullable;

/** What a stream receives, for a thread that waits for each. */
final class ReceivedItems<T> implements Iterator<T> {
    /** Waits for the next one. */
    @FunctionalInterface
    interface Receiver<T> {
        /** Null at the end. */
        @Nullable T receive() throws InterruptedException;
    }

    private final Receiver<T> stream;

    /** Null if it has not been received. */
    private @Nullable T next;

    ReceivedItems(Receiver<T> stream) {
        this.stream = stream;
    }

    @Override
    public boolean hasNext() {
        if (next == null) {
            try {
                next = stream.receive();
            } catch (InterruptedException interruption) {
                throw ShortForm.interrupted("receive from a stream", interruption);
            }
        }
        return next != null;
    }

    @Override
    public T next() {
        T received = hasNext() ? next : null;
        if (received == null) {
            throw new NoSuchElementException("the stream has ended");
        }
        next = null;
        return received;
    }
}
