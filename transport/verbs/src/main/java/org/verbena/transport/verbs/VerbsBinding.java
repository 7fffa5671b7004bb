package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmId;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.verbs.NativeRdmaException;

/** An id that is bound and not connected. It has an event channel of its own, on which nothing comes. */
final class VerbsBinding implements LocalBinding {
    private final VerbsProvider provider;
    private final InetSocketAddress localAddress;

    /** Null once it is an endpoint's, or closed. */
    private final AtomicReference<@Nullable CmId> id;

    private VerbsBinding(VerbsProvider provider, CmId id, InetSocketAddress localAddress) {
        this.provider = provider;
        this.id = new AtomicReference<>(id);
        this.localAddress = localAddress;
    }

    /**
     * Binds.
     *
     * @param provider the endpoint's
     * @param wanted the address
     * @return holds the address
     * @throws ConnectionException no device has the address, or the port is taken
     */
    static VerbsBinding of(VerbsProvider provider, InetSocketAddress wanted) {
        CmId made = null;
        try {
            made = provider.connectionLoop().newId(event -> {}); // no event matters before it connects
            made.bind(wanted);
            return new VerbsBinding(provider, made, Objects.requireNonNull(made.localAddress()));
        } catch (NativeRdmaException refused) {
            if (made != null) {
                made.close();
            }
            throw ConnectFailures.of("binding to " + VerbsProvider.format(wanted), refused);
        }
    }

    @Override
    public InetSocketAddress localAddress() {
        return localAddress;
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        provider.requireOwnLoop(loop);
        VerbsProvider.requireResolved(remoteAddress);
        CmId bound = id.getAndSet(null);
        if (bound == null) {
            throw new IllegalStateException("the binding to " + localAddress + " has been used, or closed");
        }
        VerbsEndpoint endpoint = VerbsEndpoints.connecting(provider, loop, options, handler, remoteAddress, bound);
        endpoint.start();
        return endpoint;
    }

    @Override
    public void close() {
        CmId bound = id.getAndSet(null);
        if (bound != null) {
            bound.close();
        }
    }
}
