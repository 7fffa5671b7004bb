package org.verbena.api;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetSocketAddress;
import java.util.function.UnaryOperator;
import org.verbena.transport.soft.SoftOptions;
import org.verbena.transport.soft.SoftProvider;
import org.verbena.transport.spi.CompletionLoopOptions;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.LocalBinding;
import org.verbena.transport.spi.ProviderCounters;
import org.verbena.transport.spi.RdmaProvider;

/**
 * A second provider: soft, which listens at another address than it is told, so that its ports are not those of the
 * first, as those of RoCE are not TCP's.
 */
final class ElsewhereProvider implements RdmaProvider {
    private final SoftProvider inner = new SoftProvider(SoftOptions.DEFAULTS);
    private final UnaryOperator<InetSocketAddress> where;

    ElsewhereProvider(UnaryOperator<InetSocketAddress> where) {
        this.where = where;
    }

    @Override
    public String name() {
        return "elsewhere";
    }

    @Override
    public int rank() {
        return 2000;
    }

    @Override
    public Throwable unavailabilityCause() {
        return null;
    }

    @Override
    public boolean serves(InetSocketAddress address) {
        return true;
    }

    @Override
    public String description() {
        return "soft at another address";
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
        return inner.listen(loop, where.apply(localAddress), options, handler);
    }
}
