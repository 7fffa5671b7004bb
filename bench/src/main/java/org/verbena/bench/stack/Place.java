package org.verbena.bench.stack;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ServiceLoader;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.CompletionLoopOptions;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.RdmaProvider;

/** Two endpoints on one loop of a provider. */
record Place(IoEventLoop loop, Listener listener, Endpoint client, Endpoint server) {
    /** The stub's device serves 10.0.0.x. */
    private static final String STUB_HOST = "10.0.0.1";

    static final int SECONDS_TO_CONNECT = 20;

    /** The provider of a name; null if there is none here. */
    static @Nullable RdmaProvider provider(String name) {
        for (RdmaProvider provider : ServiceLoader.load(RdmaProvider.class)) {
            if (provider.name().equals(name)) {
                return provider;
            }
        }
        return null;
    }

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
        RdmaProvider provider = provider(name);
        if (provider == null) {
            throw new IllegalStateException("there is no provider " + name);
        }
        IoEventLoop loop =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS)).next();
        CompletableFuture<InetSocketAddress> address = new CompletableFuture<>();
        CompletableFuture<Endpoint> accepted = new CompletableFuture<>();
        Listener listener = provider.listen(
                loop, new InetSocketAddress(host(name), 0), ListenOptions.DEFAULTS, new ListenerHandler() {
                    @Override
                    public void onListening(Listener open) {
                        address.complete(open.localAddress());
                    }

                    @Override
                    public void onConnectRequest(Listener open, IncomingConnection connection) {
                        accepted.complete(connection.accept(loop, options, server));
                    }

                    @Override
                    public void onClosed(Listener closed, @Nullable Throwable cause) {
                        if (cause != null) {
                            address.completeExceptionally(cause);
                        }
                    }
                });
        Endpoint connecting =
                provider.connect(loop, address.get(SECONDS_TO_CONNECT, TimeUnit.SECONDS), options, client);
        return new Place(loop, listener, connecting, accepted.get(SECONDS_TO_CONNECT, TimeUnit.SECONDS));
    }
}
