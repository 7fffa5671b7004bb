package org.verbena.transport.spi;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
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
     * A TCP connection of another protocol has arrived, as {@link ListenOptions#plainTcp()} allows. It has left the
     * listener, its limits and its event loop: the handler owns the channel, and closes it. Unless overridden, it is
     * closed at once.
     *
     * @param listener the listener
     * @param channel connected, non-blocking, registered with no selector
     * @param firstBytes what was already read from it, which precedes all that can still be read; empty if the peer has
     *     sent nothing
     */
    default void onPlainConnection(Listener listener, SocketChannel channel, ByteBuffer firstBytes) {
        try {
            channel.close();
        } catch (IOException failure) {
            throw new UncheckedIOException("closing " + channel, failure);
        }
    }

    /**
     * The listener is closed. Called exactly once.
     *
     * @param listener the listener
     * @param cause null after {@link Listener#close()}; otherwise why it could not listen, or stopped listening
     */
    void onClosed(Listener listener, @Nullable Throwable cause);
}
