package org.verbena.bench.stack;

import io.netty.channel.IoEventLoop;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.verbena.bench.Endpoints;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.RdmaProvider;

/** Where two endpoints on one loop of a provider meet. */
final class Place {
    /** The stub's device serves 10.0.0.x. */
    private static final String STUB_HOST = "10.0.0.1";

    private Place() {}

    static String host(String provider) {
        return provider.equals("verbs")
                ? STUB_HOST
                : InetAddress.getLoopbackAddress().getHostAddress();
    }

    /**
     * Connects two endpoints without anything above them. They end with the process.
     *
     * @param options of both, with the private data
     */
    static void connect(
            RdmaProvider provider,
            IoEventLoop loop,
            EndpointOptions options,
            EndpointHandler client,
            EndpointHandler server)
            throws Exception {
        Endpoints.Accepting accepting = Endpoints.accept(
                provider, loop, new InetSocketAddress(host(provider.name()), 0), options, () -> server);
        provider.connect(loop, accepting.address(), options, client);
        accepting.first().get(Endpoints.SECONDS_TO_CONNECT, TimeUnit.SECONDS);
    }
}
