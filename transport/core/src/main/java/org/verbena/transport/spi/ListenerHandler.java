package org.verbena.transport.spi;

import org.jspecify.annotations.Nullable;

/** Hears what happens to one listener, always on its event loop's thread. */
public interface ListenerHandler {

    /**
     * It listens. Called once at most.
     *
     * @param listener the listener
     */
    void onListening(Listener listener);

    /**
     * Somebody wants to connect. The request must be accepted or rejected, now or later; one that is forgotten is rejected when its
     * connect timeout has passed.
     *
     * @param listener the listener
     * @param connection the request
     */
    void onConnectRequest(Listener listener, IncomingConnection connection);

    /**
     * The end: exactly once.
     *
     * @param listener the listener
     * @param cause null after {@link Listener#close()}; else why it could not listen, or no longer
     */
    void onClosed(Listener listener, @Nullable Throwable cause);
}
