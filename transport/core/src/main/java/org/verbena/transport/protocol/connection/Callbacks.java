package org.verbena.transport.protocol.connection;

import io.netty.buffer.ByteBuf;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.receiving.InboxListener;
import org.verbena.transport.protocol.receiving.Notice;

/** Calls the listener. An exception that it throws goes to the connection, which ends with it; the caller continues. */
public final class Callbacks implements InboxListener {
    private final MessageConnection connection;
    private final MessageListener listener;
    private final Consumer<Throwable> onThrown;

    Callbacks(MessageConnection connection, MessageListener listener, Consumer<Throwable> onThrown) {
        this.connection = connection;
        this.listener = listener;
        this.onThrown = onThrown;
    }

    void active(Negotiated agreed) {
        try {
            listener.onActive(connection, agreed);
        } catch (Throwable e) {
            onThrown.accept(e);
        }
    }

    @Override
    public void arrived(Notice notice, int word, int lengthBytes, @Nullable ByteBuf message) {
        ByteBuf undelivered = message;
        try {
            switch (notice) {
                case IMMEDIATE -> listener.onImmediate(connection, word, lengthBytes);
                case INVALIDATED -> listener.onInvalidated(connection, word);
                case NONE -> {
                    // Only a message.
                }
            }
            if (message != null) {
                undelivered = null;
                listener.onMessage(connection, message);
            }
        } catch (Throwable e) {
            onThrown.accept(e);
        } finally {
            if (undelivered != null) {
                undelivered.release();
            }
        }
    }

    @Override
    public void end() {
        try {
            listener.onEnd(connection);
        } catch (Throwable e) {
            onThrown.accept(e);
        }
    }

    @Override
    public void readComplete() {
        try {
            listener.onReadComplete(connection);
        } catch (Throwable e) {
            onThrown.accept(e);
        }
    }

    void writabilityChanged(boolean writable) {
        try {
            listener.onWritabilityChanged(connection, writable);
        } catch (Throwable e) {
            onThrown.accept(e);
        }
    }

    void pong(long nonce) {
        try {
            listener.onPong(connection, nonce);
        } catch (Throwable e) {
            onThrown.accept(e);
        }
    }

    void deadline(long nanos) {
        try {
            listener.onDeadline(connection, nanos);
        } catch (Throwable e) {
            onThrown.accept(e);
        }
    }

    void inactive(@Nullable Throwable cause) {
        try {
            listener.onInactive(connection, cause);
        } catch (Throwable e) {
            onThrown.accept(e);
        }
    }
}
