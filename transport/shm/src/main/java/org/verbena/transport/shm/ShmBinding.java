package org.verbena.transport.shm;

import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.LocalBinding;

/** A local address, kept by a bound socket that does not listen. */
final class ShmBinding implements LocalBinding {
    private static final Logger LOG = LoggerFactory.getLogger(ShmBinding.class);

    private final ShmContext context;
    private final SocketDirectory.Bound bound;
    private final AtomicBoolean used = new AtomicBoolean();

    private ShmBinding(ShmContext context, SocketDirectory.Bound bound) {
        this.context = context;
        this.bound = bound;
    }

    static ShmBinding of(ShmContext context, InetSocketAddress wanted) {
        try {
            return new ShmBinding(
                    context, SocketDirectory.open(context.options().directory()).bind(wanted, 1));
        } catch (IOException e) {
            throw new ConnectionException("binding to " + wanted + ": " + e.getMessage(), e);
        }
    }

    @Override
    public InetSocketAddress localAddress() {
        return bound.address();
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        ShmProvider.checkLoop(loop);
        SoftwareIoHandler.checkResolved(remoteAddress);
        ShmEndpoint.checkOptions(options);
        if (!used.compareAndSet(false, true)) {
            throw new IllegalStateException("the binding to " + localAddress() + " has been used, or closed");
        }
        return ShmProvider.connect(loop, context, remoteAddress, options, handler, this);
    }

    @Override
    public void close() {
        if (used.compareAndSet(false, true)) {
            release();
        }
    }

    /** The address is free again. */
    void release() {
        try {
            bound.close();
        } catch (IOException e) {
            LOG.debug("closing the binding to {}", localAddress(), e);
        }
    }
}
