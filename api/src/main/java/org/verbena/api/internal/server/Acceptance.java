package org.verbena.api.internal.server;

import io.netty.channel.IoEventLoop;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.option.ConnectionSettings;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.HandshakeLimits;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.PeerAddress;
import org.verbena.transport.spi.RdmaProvider;

/** A peer's connection request, which is accepted or rejected, once. Event loop only. */
public final class Acceptance {
    private static final Logger LOG = LoggerFactory.getLogger(Acceptance.class);

    private static final byte[] DROPPED = "the server dropped the connection".getBytes(StandardCharsets.US_ASCII);

    private final IncomingConnection request;
    private final RdmaProvider from;
    private boolean decided;

    /** Counts it until its handshake is complete or it has ended; null before and after. Event loop only. */
    private @Nullable AcceptedHandshakes handshakes;

    /** Set before it is counted. */
    private @Nullable Runnable leave;

    /**
     * Not decided yet.
     *
     * @param arrival the request, with its provider
     */
    public Acceptance(Arrival.Rdma arrival) {
        request = arrival.request();
        from = arrival.provider();
    }

    /** The provider of the request, whose loop the channel needs. */
    public RdmaProvider from() {
        return from;
    }

    /**
     * Accepts the request, or rejects a peer that speaks another protocol.
     *
     * @param loop of the channel
     * @param server of the listening channel; null if there is none
     * @param config of the channel
     * @param onPrivateData gets the peer's private data with framing RAW, before the request is accepted; it may close
     *     the channel, and set options of it
     * @param begin makes the connection
     * @return the endpoint, or null if the peer was rejected
     * @throws RuntimeException this side cannot accept it; the request may still be rejected
     */
    public @Nullable Endpoint accept(
            IoEventLoop loop,
            @Nullable HandshakeContext server,
            ConnectionSettings config,
            Consumer<byte[]> onPrivateData,
            BiFunction<RdmaProvider, MessageOptions, MessageConnection> begin) {
        RdmaProvider provider = LoopGroup.providerOf(loop);
        if (server == null || provider == null || !provider.equals(from)) {
            throw new IllegalStateException("the server's groups have different providers: " + from.name() + " and "
                    + (provider == null ? null : provider.name()));
        }
        MessageOptions options = config.messageOptions();
        byte[] rejection = PrivateData.rejection(options, config.preSharedKeys(), request.privateData());
        if (rejection != null) {
            decided = true;
            server.strangers()
                    .warn(request.localAddress() + ": rejected " + request.remoteAddress() + ": "
                            + PrivateData.reason(rejection));
            request.reject(rejection);
            return null;
        }
        if (options.framing() == Framing.RAW) {
            onPrivateData.accept(request.privateData());
            if (decided) {
                return null; // the channel was closed
            }
            options = config.messageOptions();
        }
        HandshakeLimits limits = from.handshakeLimits();
        options = options.with(o -> o.helloTimeoutMillis = Math.min(o.helloTimeoutMillis, limits.timeoutMillis()));
        MessageConnection accepting = begin.apply(provider, options);
        byte[] answer = config.acceptData(accepting.privateData());
        EndpointOptions wanted = config.endpointOptions(provider, answer)
                .with(o -> o.connectTimeoutMillis = Math.min(o.connectTimeoutMillis, limits.timeoutMillis()));
        leave = () -> loop.execute(() -> leave0(accepting));
        handshakes = server.handshakes();
        handshakes.begin(this, PeerAddress.networkOf(request.remoteAddress().getAddress()), limits);
        decided = true;
        return request.accept(loop, wanted, accepting);
    }

    /** Ends, because too many newer connections have arrived. Any thread. */
    void makeRoom() {
        Runnable leaving = leave;
        if (leaving != null) {
            try {
                leaving.run();
            } catch (RejectedExecutionException ended) {
                LOG.debug("the loop of the connection of {} has ended, and with it the connection", request, ended);
            }
        }
    }

    private void leave0(MessageConnection accepting) {
        if (handshakes != null) {
            handshakes = null;
            accepting.abort(new ConnectionException("accepting from " + request.remoteAddress()
                    + ": it did not complete its handshake before too many newer connections arrived"));
        }
    }

    /** The handshake is complete, or the connection has ended. Idempotent. */
    public void handshakeEnded() {
        AcceptedHandshakes counting = handshakes;
        if (counting != null) {
            handshakes = null;
            counting.end(this);
        }
    }

    /** The request could not be accepted. */
    public void fail(RuntimeException cause) {
        decided = true;
        LOG.warn("{}: cannot accept {}", request.localAddress(), request.remoteAddress(), cause);
        try {
            request.reject(DROPPED);
        } catch (IllegalStateException answered) {
            LOG.debug("the request of {} was already accepted or rejected", request.remoteAddress(), answered);
        }
    }

    /** The channel closes: a request that is still open is rejected. */
    public void drop() {
        handshakeEnded();
        if (!decided) {
            decided = true;
            request.reject(DROPPED);
        }
    }
}
