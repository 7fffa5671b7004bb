package org.verbena.api.internal.stat;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.stat.ConnectionRow;
import org.verbena.transport.stat.StatFile;

/** What {@code verbena stat} shows about a connection. Event loop only, except {@link #failed}. */
public final class ConnectionStat {
    /** Their places among the components of MessageStatistics. */
    private static final int FRAMES_SENT = 4;

    private static final int FRAMES_RECEIVED = 5;

    private final StatFile file;
    private final @Nullable ConnectionRow row;
    private final LoopStat loop;
    private final MessageConnection connection;
    private final ProviderAccount account;
    private final String provider;
    private @Nullable InetSocketAddress local;
    private @Nullable InetSocketAddress peer;
    private String phase = "";
    private long frames;
    private boolean ended;

    private ConnectionStat(
            StatFile file,
            @Nullable ConnectionRow row,
            LoopStat loop,
            MessageConnection connection,
            ProviderAccount account,
            String provider) {
        this.file = file;
        this.row = row;
        this.loop = loop;
        this.connection = connection;
        this.account = account;
        this.provider = provider;
    }

    /** The connection begins. Returns null if the process has no file of counters. */
    public static @Nullable ConnectionStat begin0(
            LoopStat loop,
            RdmaProvider provider,
            String reason,
            Role role,
            Framing framing,
            MessageConnection connection) {
        StatFile file = StatFile.own();
        if (file == null) {
            return null;
        }
        ConnectionRow row = file.newConnection(provider.name(), reason, role.name(), framing.name(), System.nanoTime());
        ConnectionStat made =
                new ConnectionStat(file, row, loop, connection, ProviderAccount.of(provider), provider.name());
        if (row != null) {
            loop.add0(made);
        }
        return made;
    }

    ProviderAccount account() {
        return account;
    }

    public void addresses0(@Nullable InetSocketAddress localAddress, @Nullable InetSocketAddress peerAddress) {
        local = localAddress;
        peer = peerAddress;
        if (row != null) {
            row.addresses(text(local), text(peer));
        }
    }

    public void agreed0(Negotiated negotiated) {
        if (row != null) {
            row.agreed(negotiated.peerWindow());
            phase0(row);
        }
    }

    private void phase0(ConnectionRow into) {
        String now = connection.phase();
        if (!now.equals(phase)) {
            phase = now;
            into.phase(now);
        }
    }

    /**
     * Copies the counters.
     *
     * @param scratch is overwritten
     */
    void copy0(long[] scratch, long nowNanos) {
        ConnectionRow into = row;
        if (into == null) {
            return;
        }
        into.counted(scratch, connection.copyStatistics(scratch));
        phase0(into);
        long framesNow = scratch[FRAMES_SENT] + scratch[FRAMES_RECEIVED];
        if (framesNow != frames) {
            frames = framesNow;
            into.active(nowNanos);
        }
    }

    /** A send is about to be posted. */
    public void active0() {
        loop.active0();
    }

    /** A request has its answer. */
    public void answered0(long nanos) {
        if (row != null && !ended) {
            row.answered(nanos);
        }
    }

    /** Records a failure that does not end the connection. Any thread. */
    public void failed(String what) {
        if (row != null) {
            row.failed(what);
        }
    }

    /** The program has named the peer. Any thread. */
    public void label(@Nullable String name) {
        if (row != null && name != null) {
            row.label(name);
        }
    }

    /** The peer has missed a message to a group. Any thread. */
    public void missed() {
        if (row != null) {
            row.missed();
        }
    }

    /** The connection has failed, and is about to end. */
    public void lost0(Throwable cause) {
        String message = cause.getMessage();
        file.failed(provider, text(local), text(peer), message == null ? cause.toString() : message);
    }

    /** The connection has ended. Idempotent. */
    public void end0() {
        if (ended) {
            return;
        }
        ended = true;
        if (row == null) {
            file.endedWithoutRow();
            return;
        }
        loop.remove0(this);
        row.close();
    }

    private static @Nullable String text(@Nullable InetSocketAddress address) {
        if (address == null) {
            return null;
        }
        InetAddress host = address.getAddress();
        String text = host == null ? address.getHostString() : host.getHostAddress();
        return (text.indexOf(':') < 0 ? text : "[" + text + "]") + ":" + address.getPort();
    }
}
