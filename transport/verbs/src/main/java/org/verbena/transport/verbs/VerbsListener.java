package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoRegistration;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmId;
import org.verbena.transport.spi.ConnectionException;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.verbs.NativeRdmaException;

/**
 * A listening id.
 *
 * <pre>
 * NEW --start0--> LISTENING --close(), or the device is gone--> CLOSED
 *   |                                                             ^
 *   +--cannot listen----------------------------------------------+
 * </pre>
 */
final class VerbsListener implements Listener, VerbsHandle, CmEventSink {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsListener.class);

    private enum State {
        NEW,
        LISTENING,
        CLOSED
    }

    private final VerbsProvider provider;
    private final IoEventLoop loop;
    private final InetSocketAddress requestedAddress;
    private final ListenOptions options;
    private final ListenerHandler listenerHandler;

    /** Written by the loop, read by any thread. */
    private volatile @Nullable InetSocketAddress localAddress;

    // The loop's thread alone.
    private State state = State.NEW;
    private @Nullable IoRegistration registration;
    private @Nullable CmId id;

    VerbsListener(
            VerbsProvider provider,
            IoEventLoop loop,
            InetSocketAddress requestedAddress,
            ListenOptions options,
            ListenerHandler listenerHandler) {
        this.provider = provider;
        this.loop = loop;
        this.requestedAddress = requestedAddress;
        this.options = options;
        this.listenerHandler = listenerHandler;
    }

    /** Listens; the handler hears how it went. Any thread. */
    void start() {
        loop.execute(this::start0);
    }

    private void start0() {
        Future<IoRegistration> registered = loop.register(this);
        if (!registered.isSuccess()) {
            throw new IllegalStateException("not a loop of the verbs provider", registered.cause());
        }
        registration = registered.getNow();
        if (state == State.CLOSED) {
            finish(null);
            return;
        }
        try {
            CmId listening = provider.connectionLoop().newId(this);
            id = listening;
            listening.setReuseAddress(options.reuseAddress());
            listening.bind(requestedAddress);
            listening.listen(options.backlog());
            localAddress = listening.localAddress();
        } catch (NativeRdmaException | UnsupportedOperationException refused) {
            state = State.CLOSED;
            finish(new ConnectionException(
                    "cannot listen on " + VerbsProvider.format(requestedAddress) + ": " + refused.getMessage(),
                    refused));
            return;
        }
        state = State.LISTENING;
        try {
            listenerHandler.onListening(this);
        } catch (RuntimeException thrown) {
            state = State.CLOSED;
            finish(thrown);
        }
    }

    @Override
    public InetSocketAddress localAddress() {
        InetSocketAddress known = localAddress;
        if (known == null) {
            throw new IllegalStateException("the listener for " + VerbsProvider.format(requestedAddress)
                    + " does not listen yet: wait for onListening");
        }
        return known;
    }

    @Override
    public void close() {
        try {
            loop.execute(this::close0);
        } catch (RejectedExecutionException ended) {
            LOG.trace("Closed with its loop", ended);
        }
    }

    private void close0() {
        if (state == State.NEW) {
            // start0 comes behind this task only if the loop ends meanwhile; it finds the state.
            state = State.CLOSED;
        } else if (state == State.LISTENING) {
            state = State.CLOSED;
            finish(null);
        }
    }

    @Override
    public void destroy() {
        close0();
    }

    private void finish(@Nullable Throwable cause) {
        if (id != null) {
            try {
                id.close();
            } catch (NativeRdmaException failure) {
                LOG.warn(
                        "The listening id for {} could not be destroyed",
                        VerbsProvider.format(requestedAddress),
                        failure);
            }
        }
        if (registration != null) {
            registration.cancel();
        }
        try {
            listenerHandler.onClosed(this, cause);
        } catch (RuntimeException thrown) {
            LOG.warn("onClosed threw", thrown);
        }
    }

    @Override
    public void onCmEvent(CmEvent event) {
        switch (event.type()) {
            case CONNECT_REQUEST -> {
                VerbsIncomingConnection request = new VerbsIncomingConnection(provider, event);
                try {
                    loop.execute(() -> requested0(request));
                } catch (RejectedExecutionException ended) {
                    request.turnAway();
                }
            }
            case DEVICE_REMOVAL ->
                loop.execute(() -> {
                    if (state == State.LISTENING) {
                        state = State.CLOSED;
                        finish(new ConnectionException.Lost(
                                "the device that served " + VerbsProvider.format(localAddress()) + " was removed"));
                    }
                });
            default -> LOG.debug("Listener on {}: {}", VerbsProvider.format(requestedAddress), event.describe());
        }
    }

    private void requested0(VerbsIncomingConnection request) {
        if (state != State.LISTENING) {
            request.turnAway();
            return;
        }
        try {
            listenerHandler.onConnectRequest(this, request);
        } catch (RuntimeException thrown) {
            LOG.warn("onConnectRequest threw; the request of {} is rejected", request.remoteAddress(), thrown);
            request.turnAway();
        }
    }

    @Override
    public String toString() {
        return "VerbsListener[" + VerbsProvider.format(requestedAddress) + ", " + state + "]";
    }
}
