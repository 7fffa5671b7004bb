package org.verbena.bench.connect;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.ProviderCounters;
import org.verbena.transport.spi.RdmaProvider;

/** A rung that does not connect: another provider, whose connections all go to one address. */
final class Detour implements RdmaProvider {
    private final RdmaProvider inner;
    private final String name;
    private final InetSocketAddress where;

    Detour(RdmaProvider inner, String name, InetSocketAddress where) {
        this.inner = inner;
        this.name = name;
        this.where = where;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public int rank() {
        return 1;
    }

    @Override
    public @Nullable Throwable unavailabilityCause() {
        return null;
    }

    @Override
    public boolean serves(InetSocketAddress address) {
        return true;
    }

    @Override
    public String description() {
        return inner.description() + ", to " + where;
    }

    @Override
    public ProviderCounters counters() {
        return inner.counters();
    }

    @Override
    public IoHandlerFactory newIoHandlerFactory(CompletionLoopOptions options) {
        return inner.newIoHandlerFactory(options);
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        return inner.connect(loop, where, options, handler);
    }

    @Override
    public LocalBinding bind(InetSocketAddress localAddress) {
        return inner.bind(localAddress);
    }

    @Override
    public Listener listen(
            IoEventLoop loop, InetSocketAddress localAddress, ListenOptions options, ListenerHandler handler) {
        return inner.listen(loop, localAddress, options, handler);
    }
}
