package org.verbena.bench;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.net.InetSocketAddress;
import java.util.ServiceLoader;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.RdmaProvider;

/** A provider's endpoints with nothing of Verbena above them. */
public final class Endpoints {
    /** For one to be there or connected. */
    public static final int SECONDS_TO_CONNECT = 20;

    private Endpoints() {}

    /**
     * The provider of a name.
     *
     * @param name as in {@link RdmaProvider#name}
     * @return null if there is none here
     */
    public static @Nullable RdmaProvider findProvider(String name) {
        for (RdmaProvider provider : ServiceLoader.load(RdmaProvider.class)) {
            if (provider.name().equals(name)) {
                return provider;
            }
        }
        return null;
    }

    /**
     * The provider of a name.
     *
     * @param name as in {@link RdmaProvider#name}
     * @return the provider
     * @throws IllegalStateException there is none here
     */
    public static RdmaProvider provider(String name) {
        RdmaProvider provider = findProvider(name);
        if (provider == null) {
            throw new IllegalStateException("there is no provider " + name);
        }
        return provider;
    }

    /**
     * A loop of a provider.
     *
     * @param provider whose endpoints it will run
     * @return the only one of its group
     */
    public static IoEventLoop loop(RdmaProvider provider) {
        return new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS)).next();
    }

    /**
     * What a channel asks for.
     *
     * @param messages of the connection
     * @return with its private data
     */
    public static EndpointOptions optionsFor(MessageOptions messages) {
        return EndpointOptions.DEFAULTS.with(o -> {
            o.receiveDepth = MessageOptions.GREATEST_DEFAULT_DEPTH;
            o.privateData = PrivateData.of(messages);
        });
    }

    /**
     * Accepts everybody.
     *
     * @param provider listens
     * @param loop of the listener and of all that it accepts
     * @param address port 0 for any
     * @param options of each that is accepted
     * @param handlers of each
     * @return when it listens
     * @throws Exception it could not listen, or not in time
     */
    public static Accepting accept(
            RdmaProvider provider,
            IoEventLoop loop,
            InetSocketAddress address,
            EndpointOptions options,
            Supplier<? extends EndpointHandler> handlers)
            throws Exception {
        CompletableFuture<InetSocketAddress> bound = new CompletableFuture<>();
        CompletableFuture<Endpoint> first = new CompletableFuture<>();
        provider.listen(loop, address, ListenOptions.DEFAULTS, new ListenerHandler() {
            @Override
            public void onListening(Listener open) {
                bound.complete(open.localAddress());
            }

            @Override
            public void onConnectRequest(Listener open, IncomingConnection connection) {
                first.complete(connection.accept(loop, options, handlers.get()));
            }

            @Override
            public void onClosed(Listener closed, @Nullable Throwable cause) {
                if (cause != null) {
                    bound.completeExceptionally(cause);
                }
            }
        });
        return new Accepting(bound.get(SECONDS_TO_CONNECT, TimeUnit.SECONDS), first);
    }

    /**
     * What accepts.
     *
     * @param address with its port
     * @param first that was accepted, when there is one
     */
    public record Accepting(InetSocketAddress address, CompletableFuture<Endpoint> first) {}
}
