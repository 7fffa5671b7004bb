package org.verbena.api.internal.channel;

import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.AlreadyConnectedException;
import java.nio.channels.ConnectionPendingException;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.option.ConnectionSettings;
import org.verbena.api.queuepair.QueuePairExchangeAddress;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.RdmaException;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.RdmaProvider;

/**
 * Binds and connects a channel through the loop's provider, to an address or by an exchange by hand, and completes the
 * promise, within the time limit. Event loop only.
 */
public final class Connector {
    /** The channel, as far as connecting needs it. */
    public interface Host {
        EventLoop eventLoop();

        /** Begins the connection; the channel is connecting from now on. */
        MessageConnection begin0(RdmaProvider provider, Role role, MessageOptions options);

        /** Translates the reason why binding failed into the exception that this kind of channel reports. */
        Exception forBind0(RdmaException cause);

        /** Translates the reason why connecting failed into the exception that this kind of channel reports. */
        Throwable forConnect0(Throwable cause);

        /** Closes the channel. */
        void close0();
    }

    private final Host channel;
    private final ConnectionSettings config;
    private final ChannelConnection connection;
    private @Nullable LocalBinding binding;
    private @Nullable ConnectAttempt attempt;

    public Connector(Host channel, ConnectionSettings config, ChannelConnection connection) {
        this.channel = channel;
        this.config = config;
        this.connection = connection;
    }

    /**
     * Binds the channel to a local address.
     *
     * @throws Exception it is bound or connecting already, or the provider cannot bind there
     */
    public void bind0(SocketAddress address) throws Exception {
        if (connection.hasBegun()) {
            throw new IllegalStateException("bind to " + address + ": the channel is connecting already; bind first");
        }
        if (binding != null) {
            throw new IllegalStateException("bind to " + address + ": the channel is bound to " + connection.local());
        }
        try {
            LocalBinding made = provider().bind(ConnectAttempt.resolved(address, "bind to "));
            binding = made;
            connection.local(made.localAddress());
        } catch (RdmaException cause) {
            throw channel.forBind0(cause);
        }
    }

    /** Connects an open channel; the promise has the outcome. */
    public void connect0(SocketAddress to, @Nullable SocketAddress from, ChannelPromise promise) {
        // This attempt must not affect the connection that is established or being established.
        if (isPending()) {
            promise.tryFailure(new ConnectionPendingException());
            return;
        }
        if (connection.hasBegun()) {
            promise.tryFailure(new AlreadyConnectedException());
            return;
        }
        ConnectAttempt made = new ConnectAttempt(promise);
        QueuePairExchangeAddress byHand = to instanceof QueuePairExchangeAddress exchanged ? exchanged : null;
        try {
            MessageConnection connecting = byHand == null ? start0(made, to, from) : startByHand0(made, byHand, from);
            int millis = config.getConnectTimeoutMillis();
            made.limit(channel.eventLoop(), millis, () -> timedOut0(made, connecting, to, millis));
            promise.addListener((ChannelFuture done) -> {
                if (done.isCancelled() && made.isPending()) {
                    made.forget();
                    channel.close0();
                }
            });
        } catch (Exception cause) {
            // Before the promise, whose listeners may close the channel.
            boolean taken = connection.giveUp0();
            made.fail(channel.forConnect0(cause));
            if (connection.hasBegun()) {
                channel.close0();
            }
            if (byHand != null && !taken) {
                CheckedExchange.giveUp(byHand.exchange());
            }
        }
    }

    private MessageConnection start0(ConnectAttempt made, SocketAddress remote, @Nullable SocketAddress local)
            throws Exception {
        InetSocketAddress to = ConnectAttempt.resolved(remote, "connect to ");
        MessageOptions options = config.messageOptions();
        if (local != null) {
            bind0(local);
        }
        RdmaProvider provider = provider();
        connection.remote(to);
        attempt = made;
        MessageConnection connecting = channel.begin0(provider, Role.INITIATOR, options);
        EndpointOptions wanted = wanted(provider, connecting);
        LocalBinding from = binding;
        connection.uses0(
                from == null
                        ? provider.connect(loop(), to, wanted, connecting)
                        : from.connect(loop(), to, wanted, connecting));
        return connecting;
    }

    private MessageConnection startByHand0(
            ConnectAttempt made, QueuePairExchangeAddress to, @Nullable SocketAddress local) {
        if (local != null || binding != null) {
            throw new IllegalArgumentException("connect to " + to
                    + ": its route has the local end, so do not bind the channel, nor give a local address");
        }
        MessageOptions options = config.messageOptions();
        RdmaProvider provider = provider();
        QueuePairExchange exchange = to.exchange();
        attempt = made;
        MessageConnection connecting = channel.begin0(provider, CheckedExchange.roleOf(exchange), options);
        QueuePairExchange checked = CheckedExchange.of(exchange, options, config.preSharedKeys());
        connection.uses0(provider.connectByHand(loop(), to.route(), checked, wanted(provider, connecting), connecting));
        return connecting;
    }

    private EndpointOptions wanted(RdmaProvider provider, MessageConnection connecting) {
        return config.endpointOptions(provider, config.connectData(connecting.privateData()));
    }

    private IoEventLoop loop() {
        return (IoEventLoop) channel.eventLoop();
    }

    private RdmaProvider provider() {
        RdmaProvider provider = LoopGroup.providerOf(channel.eventLoop());
        if (provider == null) {
            throw new IllegalStateException("the channel's event loop is not of an RdmaEventLoopGroup");
        }
        return provider;
    }

    private void timedOut0(ConnectAttempt made, MessageConnection connecting, SocketAddress to, int timeoutMillis) {
        String step =
                connecting.endpoint() == null ? "no answer from the device" : "the peer has not finished the handshake";
        ConnectionException timedOut = new ConnectionException.TimedOut(
                "connect to " + to + ": timed out after " + timeoutMillis + " ms: " + step);
        made.fail(channel.forConnect0(timedOut));
        connecting.abort(timedOut);
        channel.close0();
    }

    /** Whether an attempt is pending. */
    public boolean isPending() {
        return attempt != null && attempt.isPending();
    }

    /** The connection is established. Returns false if the attempt was already given up. */
    public boolean succeed0() {
        return attempt != null && attempt.succeed();
    }

    /** The attempt failed, if there is one that is pending. */
    public void fail0(Throwable cause) {
        if (attempt != null) {
            attempt.fail(cause);
        }
    }

    /** Gives up the local address. */
    public void unbind0() {
        LocalBinding bound = binding;
        if (bound != null) {
            bound.close();
        }
    }
}
