package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmId;
import org.verbena.transport.QueuePairExchange;
import org.verbena.transport.QueuePairRoute;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;

/** Makes endpoints, each with its setup. */
final class VerbsEndpoints {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsEndpoints.class);
    private static final byte[] NOTHING = {};

    private VerbsEndpoints() {}

    /** An endpoint that will connect, with an id that is bound or with a new one. */
    static VerbsEndpoint connecting(
            VerbsProvider provider,
            IoEventLoop loop,
            EndpointOptions options,
            EndpointHandler handler,
            InetSocketAddress remoteAddress,
            @Nullable CmId bound) {
        return new VerbsEndpoint(
                provider,
                loop,
                options,
                handler,
                remoteAddress,
                null,
                null,
                made -> new ConnectionSetup(
                        made, provider, options, remoteAddress, null, bound, new SetupLoop(provider)));
    }

    /** An endpoint that will be connected by hand. */
    static VerbsEndpoint byHand(
            VerbsProvider provider,
            IoEventLoop loop,
            EndpointOptions options,
            EndpointHandler handler,
            QueuePairRoute route,
            QueuePairExchange exchange) {
        return new VerbsEndpoint(
                provider,
                loop,
                options,
                handler,
                VerbsProvider.orWildcard(null),
                null,
                null,
                made -> new ExchangeSetup(made, provider, route, exchange, options));
    }

    /** An endpoint that will accept. */
    static VerbsEndpoint accepted(
            VerbsProvider provider,
            IoEventLoop loop,
            EndpointOptions options,
            EndpointHandler handler,
            CmEvent request,
            InetSocketAddress localAddress,
            InetSocketAddress remoteAddress,
            SetupLoop setupLoop) {
        return new VerbsEndpoint(
                provider,
                loop,
                options,
                handler,
                remoteAddress,
                request,
                localAddress,
                made -> new ConnectionSetup(made, provider, options, remoteAddress, request, null, setupLoop));
    }

    /** A handler's rejection of a peer that still waits for the answer to its request; empty if it cannot be sent. */
    static byte[] rejection(EndpointHandler handler, VerbsEndpoint endpoint) {
        try {
            byte[] reason = handler.rejection(endpoint);
            if (reason.length <= EndpointOptions.MAX_PRIVATE_DATA_BYTES) {
                return reason;
            }
            LOG.warn(
                    "the handler of {} gave a rejection of {} bytes, which is too long",
                    endpoint.connection(),
                    reason.length);
        } catch (Throwable thrown) {
            LOG.warn("rejection of {} threw", endpoint.connection(), thrown);
        }
        return NOTHING;
    }
}
