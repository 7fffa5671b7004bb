package org.verbena.transport.spi;

import org.jspecify.annotations.Nullable;

/** Receives the events of one listener, always on its event loop's thread. */
public interface ListenerHandler {

    /**
     * The listener is listening. Called at most once.
     *
     * @param listener the listener
     */
    void onListening(Listener listener);

    /**
     * A peer wants to connect. Accept or reject the request, now or later; a forgotten one is rejected when its connect
     * timeout has passed.
     *
     * @param listener the listener
     * @param connection the request
     */
    void onConnectRequest(Listener listener, IncomingConnection connection);

    /**
     * The listener is closed. Called exactly once.
     *
     * @param listener the listener
     * @param cause null after {@link Listener#close()}; otherwise why it could not listen, or stopped listening
     */
    void onClosed(Listener listener, @Nullable Throwable cause);
}
