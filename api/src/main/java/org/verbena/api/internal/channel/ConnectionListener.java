package org.verbena.api.internal.channel;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import java.net.InetSocketAddress;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.loop.RdmaEventLoop;
import org.verbena.api.internal.stat.ConnectionStat;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.protocol.connection.MessageListener;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.RdmaProvider;

/** Forwards a connection's events to the channel, its inbound bridge, or the connection's clock. */
public final class ConnectionListener implements MessageListener {
    /** The channel, as far as its connection's events concern it. Event loop only. */
    public interface Host {
        /** This end's address, as far as it is known. */
        @Nullable InetSocketAddress local0();

        /** The peer's. */
        @Nullable InetSocketAddress remote0();

        boolean isOpen();

        /** Takes what arrives to the pipeline. */
        InboundBridge inbound0();

        /** The endpoint is known; its addresses may differ from the requested ones. */
        void onPrepared0(Endpoint prepared);

        /** Both ends have agreed. */
        void onActive0(MessageConnection active);

        /** The peer has ended its half. */
        void onPeerEnd0();

        /** The peer has written with immediate data. */
        void onImmediate0(int immediateData, int lengthBytes);

        /** The peer has invalidated a key. */
        void onInvalidated0(int remoteKey);

        /** Credits have come back or run out. */
        void onWritability0(MessageConnection from, boolean writable);

        /** The connection has ended. */
        void onInactive0(@Nullable Throwable cause);
    }

    private final Host channel;

    /** Set by the loop before the connection can report anything; read by any thread, for {@link #onResumable}. */
    private volatile @Nullable ConnectionClock clock;

    /** Likewise; null if the process has no file of counters. */
    private volatile @Nullable ConnectionStat stat;

    public ConnectionListener(Host channel) {
        this.channel = channel;
    }

    public void begin(EventLoop loop, RdmaProvider provider, Role role, Framing framing, MessageConnection connection) {
        clock = new ConnectionClock(loop, connection);
        ConnectionStat made = ConnectionStat.begin0(
                ((RdmaEventLoop) loop).stat(), provider, LoopGroup.reasonOf(loop), role, framing, connection);
        if (made != null) {
            made.addresses0(channel.local0(), channel.remote0());
        }
        stat = made;
    }

    /** What {@code verbena stat} shows of it; null if that is switched off, or nothing has begun. Any thread. */
    public @Nullable ConnectionStat stat() {
        return stat;
    }

    /** Something is about to be sent, which the loop may learn of by no completion. Event loop only. */
    public void active0() {
        ConnectionStat shown = stat;
        if (shown != null) {
            shown.active0();
        }
    }

    /** The connection has ended. Idempotent. */
    public void end() {
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
        channel.inbound0().onMessage(message);
    }

    @Override
    public void onEnd(MessageConnection from) {
        channel.onPeerEnd0();
    }

    @Override
    public void onReadComplete(MessageConnection from) {
        if (channel.isOpen()) {
            channel.inbound0().endTurn();
        }
    }

    @Override
    public void onImmediate(MessageConnection from, int immediateData, int lengthBytes) {
        channel.onImmediate0(immediateData, lengthBytes);
    }

    @Override
    public void onInvalidated(MessageConnection from, int remoteKey) {
        channel.onInvalidated0(remoteKey);
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
