package org.verbena.testing;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicBoolean;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.LocalBinding;

/** A port that was taken for one connection. Any thread. */
final class InProcessBinding implements LocalBinding {
    private final InProcessProvider provider;
    private final InetSocketAddress address;
    private final AtomicBoolean used = new AtomicBoolean();

    InProcessBinding(InProcessProvider provider, InetSocketAddress wanted) {
        this.provider = provider;
        address = Ports.take(wanted, this);
    }

    @Override
    public InetSocketAddress localAddress() {
        return address;
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        InProcessProvider.checkLoop(loop);
        SoftwareIoHandler.checkResolved(remoteAddress);
        if (!used.compareAndSet(false, true)) {
            throw new IllegalStateException("the binding to " + address + " has been used, or closed");
        }
        return provider.connect(loop, remoteAddress, options, handler, this);
    }

    @Override
    public void close() {
        if (used.compareAndSet(false, true)) {
            release();
        }
    }

    /** The port is free again. */
    void release() {
        Ports.release(address.getPort(), this);
    }
}
