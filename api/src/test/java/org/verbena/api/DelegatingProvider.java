package org.verbena.api;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetSocketAddress;
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

/** Another provider: tests change what they need. */
abstract class DelegatingProvider implements RdmaProvider {
    private final RdmaProvider inner;

    DelegatingProvider(RdmaProvider inner) {
        this.inner = inner;
    }

    @Override
    public String name() {
        return inner.name();
    }

    @Override
    public int rank() {
        return inner.rank();
    }

    @Override
    public Throwable unavailabilityCause() {
        return inner.unavailabilityCause();
    }

    @Override
    public boolean serves(InetSocketAddress address) {
        return inner.serves(address);
    }

    @Override
    public int usualSges() {
        return inner.usualSges();
    }

    @Override
    public int usualStreamReceives() {
        return inner.usualStreamReceives();
    }

    @Override
    public String description() {
        return inner.description();
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
        return inner.connect(loop, remoteAddress, options, handler);
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
