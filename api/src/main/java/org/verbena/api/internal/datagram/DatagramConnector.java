package org.verbena.api.internal.datagram;

import io.netty.channel.ChannelPromise;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnknownHostException;
import java.nio.channels.ClosedChannelException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.channel.ConnectAttempt;
import org.verbena.api.internal.channel.SocketExceptions;
import org.verbena.transport.RdmaException;
import org.verbena.transport.spi.DatagramDestination;

/**
 * Binds and connects a datagram channel, from the call to its promise. Only one bind or connect is under way at a time.
 * Event loop only.
 */
public final class DatagramConnector {
    /** The channel, as far as this needs it. */
    public interface Host {
        boolean isOpen();

        boolean isActive();

        boolean isConnected();

        /**
         * Opens the endpoint; {@link DatagramConnector#onOpened0} follows, or its end.
         *
         * @param toward the peer that the device is to reach; null for any
         */
        void open0(InetSocketAddress local, @Nullable InetSocketAddress toward);

        /** The channel is connected to this peer. */
        void onConnected0(InetSocketAddress address, DatagramDestination found);

        /** The channel is active, if it was not before. Completes the promise. */
        void activate0(ChannelPromise promise);

        /** Closes the channel. */
        void close0();
    }

    private final Host channel;
    private final DatagramDestinations destinations;

    /** The promise of the bind or connect under way. */
    private @Nullable ChannelPromise pending;

    /** The peer to connect to; null for a bind. */
    private @Nullable InetSocketAddress peer;

    private @Nullable DatagramDestination lookUp;

    public DatagramConnector(Host channel, DatagramDestinations destinations) {
        this.channel = channel;
        this.destinations = destinations;
    }

    /** Binds; the promise has the outcome. A channel that cannot be bound closes. */
    public void bind0(SocketAddress local, ChannelPromise promise) {
        if (!promise.setUncancellable()) {
            return;
        }
        if (!channel.isOpen()) {
            promise.tryFailure(new ClosedChannelException());
            return;
        }
        if (pending != null || channel.isActive()) {
            promise.tryFailure(alreadyBound(local));
            return;
        }
        pending = promise;
        try {
            channel.open0(ConnectAttempt.resolved(local, "bind to "), null);
        } catch (RuntimeException refused) {
            fail0(refused);
            channel.close0();
        }
    }

    private static IllegalStateException alreadyBound(SocketAddress local) {
        return new IllegalStateException("bind to " + local + ": the channel is bound, or being bound, already");
    }

    /** Connects; the promise has the outcome. Binds first, if the channel is not bound. */
    public void connect0(SocketAddress remote, @Nullable SocketAddress local, ChannelPromise promise) {
        if (!promise.setUncancellable()) {
            return;
        }
        if (!channel.isOpen()) {
            promise.tryFailure(new ClosedChannelException());
            return;
        }
        if (pending != null || channel.isConnected()) {
            promise.tryFailure(new IllegalStateException("connect to " + remote
                    + ": the channel is connected, or being bound or connected: disconnect it first"));
            return;
        }
        if (local != null && channel.isActive()) {
            promise.tryFailure(alreadyBound(local));
            return;
        }
        pending = promise;
        try {
            InetSocketAddress address = ConnectAttempt.resolved(remote, "connect to ");
            peer = address;
            if (channel.isActive()) {
                lookUp = destinations.start(address);
            } else {
                channel.open0(
                        local == null ? wildcardLike(address) : ConnectAttempt.resolved(local, "bind to "), address);
            }
        } catch (RuntimeException refused) {
            failConnect0(refused);
        }
    }

    private static InetSocketAddress wildcardLike(InetSocketAddress address) {
        try {
            return new InetSocketAddress(
                    InetAddress.getByAddress(new byte[address.getAddress().getAddress().length]), 0);
        } catch (UnknownHostException impossible) {
            throw new IllegalStateException("as many bytes as an address has are one", impossible);
        }
    }

    private void failConnect0(Throwable cause) {
        boolean opens = !channel.isActive();
        end0().tryFailure(cause);
        if (opens) {
            channel.close0();
        }
    }

    /** The endpoint is open: the channel is bound. */
    public void onOpened0() {
        InetSocketAddress address = peer;
        if (address == null) {
            channel.activate0(end0());
        } else {
            lookUp = destinations.start(address);
        }
    }

    /** A look-up has completed. Returns false if it is not that of the peer to connect to. */
    public boolean onResolved0(DatagramDestination destination, @Nullable Throwable cause) {
        if (!destination.equals(lookUp)) {
            return false;
        }
        if (cause != null) {
            failConnect0(cause);
            return true;
        }
        InetSocketAddress address = Objects.requireNonNull(peer);
        ChannelPromise promise = end0();
        destinations.adopt(address, destination);
        channel.onConnected0(address, destination);
        channel.activate0(promise);
        return true;
    }

    /** The bind or connect under way has failed. Returns false if there is none. */
    public boolean fail0(Throwable cause) {
        if (pending == null) {
            return false;
        }
        boolean binds = peer == null;
        end0().tryFailure(binds && cause instanceof RdmaException refused ? SocketExceptions.bind(refused) : cause);
        return true;
    }

    private ChannelPromise end0() {
        ChannelPromise promise = Objects.requireNonNull(pending);
        pending = null;
        peer = null;
        lookUp = null;
        return promise;
    }
}
