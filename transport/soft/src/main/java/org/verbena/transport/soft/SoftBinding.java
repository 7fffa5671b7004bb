package org.verbena.transport.soft;

import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.software.SoftwareIoHandler;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.LocalBinding;

/** A TCP channel that is bound and not connected. */
final class SoftBinding implements LocalBinding {
    private final SoftContext context;
    private final InetSocketAddress localAddress;

    /** Null once it is an endpoint's, or closed. */
    private final AtomicReference<@Nullable SocketChannel> channel;

    private SoftBinding(SoftContext context, SocketChannel channel, InetSocketAddress localAddress) {
        this.context = context;
        this.channel = new AtomicReference<>(channel);
        this.localAddress = localAddress;
    }

    /**
     * Binds.
     *
     * @param context of the provider
     * @param wanted the address
     * @return holds the address
     * @throws ConnectionException it cannot be had
     */
    static SoftBinding of(SoftContext context, InetSocketAddress wanted) {
        SocketChannel made = null;
        try {
            made = LoopSocket.open(SocketChannel::open);
            made.bind(wanted);
            return new SoftBinding(context, made, (InetSocketAddress) made.getLocalAddress());
        } catch (IOException | RuntimeException e) {
            if (made != null) {
                LoopSocket.closeQuietly(made);
            }
            throw new ConnectionException("binding to " + wanted + ": " + e.getMessage(), e);
        }
    }

    @Override
    public InetSocketAddress localAddress() {
        return localAddress;
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        SoftProvider.checkLoop(loop);
        SoftwareIoHandler.checkResolved(remoteAddress);
        SocketChannel bound = channel.getAndSet(null);
        if (bound == null) {
            throw new IllegalStateException("the binding to " + localAddress + " has been used, or closed");
        }
        return SoftEndpoint.connecting(loop, context, options, handler, remoteAddress, bound);
    }

    @Override
    public void close() {
        SocketChannel bound = channel.getAndSet(null);
        if (bound != null) {
            LoopSocket.closeQuietly(bound);
        }
    }
}
