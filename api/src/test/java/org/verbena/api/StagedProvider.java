package org.verbena.api;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.verbena.transport.soft.SoftOptions;
import org.verbena.transport.soft.SoftProvider;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;

/** A provider above soft whose connections do what a test wants of them: soft's, to another address, or none. */
final class StagedProvider extends DelegatingProvider {
    static final String NAME = "better";

    private final AtomicInteger connects = new AtomicInteger();
    private volatile UnaryOperator<InetSocketAddress> where = UnaryOperator.identity();
    private volatile UnaryOperator<EndpointOptions> what = UnaryOperator.identity();
    private volatile boolean serves = true;

    StagedProvider() {
        super(new SoftProvider(SoftOptions.ofSystemProperties()));
    }

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
    public boolean serves(InetSocketAddress address) {
        return serves;
    }

    @Override
    public String description() {
        return "soft, staged";
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        connects.incrementAndGet();
        return super.connect(loop, where.apply(remoteAddress), what.apply(options), handler);
    }
}
