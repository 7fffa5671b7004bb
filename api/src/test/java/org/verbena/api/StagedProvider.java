package org.verbena.api;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicInteger;
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

/** A provider above soft whose connections do what a test wants of them: soft's, to another address, or none. */
final class StagedProvider implements RdmaProvider {
    static final String NAME = "better";

    private final SoftProvider inner = new SoftProvider(SoftOptions.DEFAULTS);
    private final AtomicInteger connects = new AtomicInteger();
    private volatile UnaryOperator<InetSocketAddress> where = UnaryOperator.identity();
    private volatile UnaryOperator<EndpointOptions> what = UnaryOperator.identity();
    private volatile boolean serves = true;

    /** Where it connects to instead; may throw. */
    void connectTo(UnaryOperator<InetSocketAddress> value) {
        where = value;
    }

    /** With which options it connects. */
    void connectWith(UnaryOperator<EndpointOptions> value) {
        what = value;
    }

    void serve(boolean value) {
        serves = value;
    }

    /** How often it was asked to connect. */
    int connects() {
        return connects.get();
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public int rank() {
        return 1;
    }

    @Override
    public Throwable unavailabilityCause() {
        return null;
    }

    @Override
    public boolean serves(InetSocketAddress address) {
        return serves;
    }

    @Override
    public String description() {
        return "soft, staged";
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
        connects.incrementAndGet();
        return inner.connect(loop, where.apply(remoteAddress), what.apply(options), handler);
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
