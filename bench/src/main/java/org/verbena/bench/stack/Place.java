package org.verbena.bench.stack;

import io.netty.channel.IoEventLoop;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.verbena.bench.Endpoints;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.RdmaProvider;

/** Two endpoints on one loop of a provider. */
record Place(IoEventLoop loop, Listener listener, Endpoint client, Endpoint server) {
    /** The stub's device serves 10.0.0.x. */
    private static final String STUB_HOST = "10.0.0.1";

    static String host(String provider) {
        return provider.equals("verbs")
                ? STUB_HOST
                : InetAddress.getLoopbackAddress().getHostAddress();
    }

    /**
     * Connects two endpoints without anything above them.
     *
     * @param options of both, with the private data
     * @return all of it, which ends with the process
     */
    static Place connect(String name, EndpointOptions options, EndpointHandler client, EndpointHandler server)
            throws Exception {
        RdmaProvider provider = Endpoints.provider(name);
        return connect(provider, Endpoints.loop(provider), options, client, server);
    }

    /** The same on a loop that is there. */
    static Place connect(
            RdmaProvider provider,
            IoEventLoop loop,
            EndpointOptions options,
            EndpointHandler client,
            EndpointHandler server)
            throws Exception {
        Endpoints.Accepting accepting = Endpoints.accept(
                provider, loop, new InetSocketAddress(host(provider.name()), 0), options, () -> server);
        Endpoint connecting = provider.connect(loop, accepting.address(), options, client);
        Endpoint accepted = accepting.first().get(Endpoints.SECONDS_TO_CONNECT, TimeUnit.SECONDS);
        return new Place(loop, accepting.listener(), connecting, accepted);
    }
}
