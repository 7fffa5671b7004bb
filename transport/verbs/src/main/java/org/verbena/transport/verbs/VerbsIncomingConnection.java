package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmId;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;

/** The id of a connection request, until the program has decided on it. Any thread. */
final class VerbsIncomingConnection implements IncomingConnection, CmEventSink {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsIncomingConnection.class);

    private final VerbsProvider provider;
    private final CmEvent request;
    private final CmId id;
    private final InetSocketAddress localAddress;
    private final InetSocketAddress remoteAddress;
    private final Future<?> forgotten;

    /** The setup loop of its device. */
    private final SetupLoop loop;

    /** Guarded by this. */
    private boolean decided;

    /** What ended the request before it was decided on. Guarded by this. */
    private @Nullable CmEvent ended;

    /**
     * Takes over the request's id.
     *
     * @param provider whose connection loop this is called on: that of the listener
     * @param request the event
     */
    VerbsIncomingConnection(VerbsProvider provider, CmEvent request) {
        this.provider = provider;
        this.request = request;
        id = request.id();
        localAddress = VerbsProvider.orWildcard(id.localAddress());
        remoteAddress = VerbsProvider.orWildcard(id.remoteAddress());
        id.attach(this);
        loop = new SetupLoop(provider);
        forgotten = provider.connectionLoop()
                .loop()
                .schedule(this::turnAway, provider.decisionMillis(), TimeUnit.MILLISECONDS);
        Context device = id.device();
        if (device != null) {
            loop.moveTo(device, id);
        }
    }

    @Override
    public InetSocketAddress localAddress() {
        return localAddress;
    }

    @Override
    public InetSocketAddress remoteAddress() {
        return remoteAddress;
    }

    @Override
    public byte[] privateData() {
        return request.privateData();
    }

    @Override
    public synchronized boolean isPending() {
        return !decided && ended == null;
    }

    @Override
    public Endpoint accept(IoEventLoop on, EndpointOptions options, EndpointHandler handler) {
        provider.requireOwnLoop(on);
        VerbsEndpoint endpoint =
                VerbsEndpoints.accepted(provider, on, options, handler, request, localAddress, remoteAddress, loop);
        synchronized (this) {
            decide();
            CmEvent before = ended;
            if (before == null) {
                id.attach(endpoint.cmEventSink());
            } else {
                endpoint.endedBeforeAccepted(before);
            }
        }
        try {
            endpoint.start();
        } catch (RejectedExecutionException ended) {
            loop.execute(() -> reject0(new byte[0]));
            throw ended;
        }
        return endpoint;
    }

    @Override
    public void reject(byte[] privateData) {
        if (privateData.length > EndpointOptions.MAX_PRIVATE_DATA_BYTES) {
            throw new IllegalArgumentException("private data of " + privateData.length + " bytes is over the limit of "
                    + EndpointOptions.MAX_PRIVATE_DATA_BYTES);
        }
        byte[] reason = privateData.clone();
        synchronized (this) {
            decide();
        }
        loop.execute(() -> reject0(reason));
    }

    private void decide() {
        if (decided) {
            throw new IllegalStateException("the connection request of " + VerbsProvider.format(remoteAddress)
                    + " was already accepted or rejected, or waited longer than " + provider.decisionMillis() + " ms");
        }
        decided = true;
        forgotten.cancel(false);
    }

    /** Rejects it without a reason, if it is not decided. */
    void turnAway() {
        synchronized (this) {
            if (decided) {
                return;
            }
            decided = true;
        }
        forgotten.cancel(false);
        loop.execute(() -> reject0(new byte[0]));
    }

    private void reject0(byte[] reason) {
        try {
            id.reject(reason);
        } catch (NativeRdmaException gone) {
            LOG.debug(
                    "The request of {} could not be rejected: it no longer exists",
                    VerbsProvider.format(remoteAddress),
                    gone);
        }
        try {
            id.close();
        } catch (NativeRdmaException failure) {
            LOG.warn(
                    "The id of a rejected request of {} could not be destroyed",
                    VerbsProvider.format(remoteAddress),
                    failure);
        }
    }

    @Override
    public void onCmEvent(CmEvent event) {
        Object sink;
        synchronized (this) {
            sink = id.attachment();
            if (sink == this) {
                ended = event;
                return;
            }
        }
        // It was accepted between the look-up of the attachment and here.
        if (sink instanceof CmEventSink endpoint) {
            endpoint.onCmEvent(event);
        }
    }

    @Override
    public String toString() {
        return "VerbsIncomingConnection[" + VerbsProvider.format(remoteAddress) + "]";
    }
}
