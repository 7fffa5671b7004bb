package org.verbena.testing;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;

/** A client that wants to connect, until it is accepted or rejected: decided on once, by any thread. */
final class ConnectRequest implements IncomingConnection {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectRequest.class);

    private final InProcessEndpoint client;
    private final InProcessListener listener;
    private final InetSocketAddress from;
    private final byte[] privateData;
    private final int readDepth;
    private final AtomicBoolean decided = new AtomicBoolean();

    /** Written by the client's loop. */
    private volatile boolean gone;

    /**
     * Made by the client.
     *
     * @param client waits for the decision
     * @param listener of the server
     * @param from the client's address
     * @param options the client's
     */
    ConnectRequest(
            InProcessEndpoint client, InProcessListener listener, InetSocketAddress from, EndpointOptions options) {
        this.client = client;
        this.listener = listener;
        this.from = from;
        privateData = options.privateData();
        readDepth = options.readDepth();
    }

    /** Rejects it later, unless it is decided first; on the listener's loop. */
    void startTimeout() {
        listener.loop().schedule(this::refuse, listener.provider().decisionMillis(), TimeUnit.MILLISECONDS);
    }

    /** Rejects it without a reason, unless it is decided. */
    void refuse() {
        if (tryDecide()) {
            client.rejected(new byte[0]);
        }
    }

    private boolean tryDecide() {
        boolean now = decided.compareAndSet(false, true);
        if (now) {
            listener.decided(this);
        }
        return now;
    }

    private void decide() {
        if (!tryDecide()) {
            throw new IllegalStateException("the connect request of " + remoteAddress()
                    + " was already accepted or rejected, or has waited too long");
        }
    }

    InProcessEndpoint client() {
        return client;
    }

    int readDepth() {
        return readDepth;
    }

    /** The client has given up. */
    void leave() {
        gone = true;
    }

    boolean isGone() {
        return gone;
    }

    @Override
    public InetSocketAddress localAddress() {
        return client.remoteAddress();
    }

    @Override
    public InetSocketAddress remoteAddress() {
        return from;
    }

    @Override
    public byte[] privateData() {
        return privateData.clone();
    }

    @Override
    public boolean isPending() {
        return !gone && !decided.get();
    }

    @Override
    public Endpoint accept(IoEventLoop loop, EndpointOptions options, EndpointHandler handler) {
        InProcessProvider.checkLoop(loop);
        decide();
        InProcessEndpoint server =
                new InProcessEndpoint(loop, listener.provider().domain(), options, handler, remoteAddress(), false);
        try {
            loop.execute(() -> server.accept(this));
        } catch (RejectedExecutionException e) {
            // The program has ended the loop: no thread of the endpoint is left that could report its end.
            LOG.debug("accepting on a loop that has ended", e);
            client.rejected(new byte[0]);
            handler.onDisconnected(
                    server,
                    new ConnectionException(
                            "accepting from " + remoteAddress() + ": the event loop that was to serve it has ended",
                            e));
        }
        return server;
    }

    @Override
    public void reject(byte[] reason) {
        if (reason.length > EndpointOptions.MAX_PRIVATE_DATA_BYTES) {
            throw new IllegalArgumentException("private data of " + reason.length + " bytes is over the limit of "
                    + EndpointOptions.MAX_PRIVATE_DATA_BYTES);
        }
        decide();
        client.rejected(reason.clone());
    }
}
