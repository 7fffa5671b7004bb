package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.MessageConnection;
import org.verbena.transport.protocol.MessageListener;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.spi.Endpoint;

/** Forwards a connection's events to the channel, its inbound bridge, or the connection's clock. */
final class ConnectionListener implements MessageListener {
    private final AbstractRdmaChannel channel;

    /** Set by the loop before the connection can report anything; read by any thread, for {@link #onResumable}. */
    private volatile @Nullable ConnectionClock clock;

    ConnectionListener(AbstractRdmaChannel channel) {
        this.channel = channel;
    }

    void begin(EventLoop loop, MessageConnection connection) {
        clock = new ConnectionClock(loop, connection);
    }

    /** The connection has ended. Idempotent. */
    void end() {
        ConnectionClock running = clock;
        if (running != null) {
            running.stop();
        }
    }

    private ConnectionClock clock() {
        return Objects.requireNonNull(clock);
    }

    @Override
    public void onPrepared(MessageConnection from) {
        Endpoint prepared = from.endpoint();
        if (prepared != null) {
            channel.onPrepared0(prepared);
        }
    }

    @Override
    public void onActive(MessageConnection from, Negotiated negotiated) {
        channel.onActive0(from);
    }

    @Override
    public void onMessage(MessageConnection from, ByteBuf message) {
        channel.inboundBridge0().onMessage(message);
    }

    @Override
    public void onEnd(MessageConnection from) {
        channel.onPeerEnd0();
    }

    @Override
    public void onReadComplete(MessageConnection from) {
        if (channel.isOpen()) {
            channel.inboundBridge0().endTurn();
        }
    }

    @Override
    public void onImmediate(MessageConnection from, int immediateData, int lengthBytes) {
        channel.inboundBridge0().onEvent(new ImmediateDataEvent(immediateData, lengthBytes));
    }

    @Override
    public void onInvalidated(MessageConnection from, int remoteKey) {
        channel.inboundBridge0().onEvent(new KeyInvalidatedEvent(remoteKey));
    }

    @Override
    public void onWritabilityChanged(MessageConnection from, boolean writable) {
        channel.onWritability0(from, writable);
    }

    @Override
    public void onDeadline(MessageConnection from, long deadlineNanos) {
        clock().wakeAt(deadlineNanos);
    }

    @Override
    public void onResumable(MessageConnection from) {
        clock().resumeSoon();
    }

    @Override
    public void onInactive(MessageConnection from, @Nullable Throwable cause) {
        channel.onInactive0(cause);
    }
}
