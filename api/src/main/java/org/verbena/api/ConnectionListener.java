package org.verbena.api;

import org.verbena.transport.protocol.Role;
import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.protocol.connection.MessageListener;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.RdmaProvider;

/** Forwards a connection's events to the channel, its inbound bridge, or the connection's clock. */
final class ConnectionListener implements MessageListener {
    private final AbstractRdmaChannel channel;

    /** Set by the loop before the connection can report anything; read by any thread, for {@link #onResumable}. */
    private volatile @Nullable ConnectionClock clock;

    /** Likewise; null if the process has no file of counters. */
    private volatile @Nullable ConnectionStat stat;

    ConnectionListener(AbstractRdmaChannel channel) {
        this.channel = channel;
    }

    void begin(
            EventLoop loop,
            RdmaProvider provider,
            Role role,
            Framing framing,
            MessageConnection connection) {
        clock = new ConnectionClock(loop, connection);
        ConnectionStat made = ConnectionStat.begin0(
                ((RdmaEventLoop) loop).stat(), provider, LoopGroup.reasonOf(loop), role, framing, connection);
        if (made != null) {
            made.addresses0(channel.local0(), channel.remote0());
        }
        stat = made;
    }

    /** What {@code verbena stat} shows of it; null if that is switched off, or nothing has begun. Any thread. */
    @Nullable ConnectionStat stat() {
        return stat;
    }

    /** Something is about to be sent, which the loop may learn of by no completion. Event loop only. */
    void active0() {
        ConnectionStat shown = stat;
        if (shown != null) {
            shown.active0();
        }
    }

    /** The connection has ended. Idempotent. */
    void end() {
        ConnectionClock running = clock;
        if (running != null) {
            running.stop();
        }
        ConnectionStat shown = stat;
        if (shown != null) {
            shown.end0();
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
            ConnectionStat shown = stat;
            if (shown != null) {
                shown.addresses0(prepared.localAddress(), prepared.remoteAddress());
            }
        }
    }

    @Override
    public void onActive(MessageConnection from, Negotiated negotiated) {
        ConnectionStat shown = stat;
        if (shown != null) {
            shown.agreed0(negotiated);
        }
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
        ConnectionStat shown = stat;
        if (shown != null && cause != null) {
            shown.lost0(cause);
        }
        channel.onInactive0(cause);
    }
}
