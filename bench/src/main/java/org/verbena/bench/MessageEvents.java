package org.verbena.bench;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.protocol.connection.MessageListener;

/**
 * One end of a connection of the message protocol that is measured without the channel: all but what it does with a
 * message.
 */
public abstract class MessageEvents implements MessageListener {
    /** For one connection. */
    protected MessageEvents() {}

    /**
     * The connection failed or ended.
     *
     * @param cause why
     */
    protected abstract void fail(Throwable cause);

    @Override
    public void onActive(MessageConnection connection, Negotiated negotiated) {}

    @Override
    public abstract void onMessage(MessageConnection connection, ByteBuf message);

    @Override
    public void onReadComplete(MessageConnection connection) {
        connection.flush();
    }

    @Override
    public void onImmediate(MessageConnection connection, int immediateData, int lengthBytes) {}

    @Override
    public void onWritabilityChanged(MessageConnection connection, boolean writable) {}

    @Override
    public void onDeadline(MessageConnection connection, long deadlineNanos) {
        // Messages come all the time, so no deadline is due.
    }

    @Override
    public void onResumable(MessageConnection connection) {
        connection.resume();
    }

    @Override
    public void onInactive(MessageConnection connection, @Nullable Throwable cause) {
        fail(cause == null ? new IllegalStateException("the connection ended") : cause);
    }
}
