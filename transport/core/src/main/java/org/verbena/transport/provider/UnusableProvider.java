package org.verbena.transport.provider;

import io.netty.channel.IoEventLoop;
import io.netty.channel.IoHandlerFactory;
import java.net.InetSocketAddress;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ProviderUnavailableException;
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
 * Stands for a provider that is installed and could not be created, for example because one of its system properties is
 * malformed: asking for it fails with the reason, and the others work.
 *
 * @param name the provider's, or its class where that is unknown
 * @param unavailabilityCause what its constructor threw
 */
record UnusableProvider(String name, Throwable unavailabilityCause) implements RdmaProvider {

    /** It is asked last: it serves nothing. */
    @Override
    public int rank() {
        return Integer.MAX_VALUE;
    }

    @Override
    public boolean serves(InetSocketAddress address) {
        return false;
    }

    @Override
    public String description() {
        return "unusable: " + unavailabilityCause;
    }

    @Override
    public ProviderCounters counters() {
        return new ProviderCounters(0, 0, 0, 0, 0);
    }

    private ProviderUnavailableException refusal() {
        return new ProviderUnavailableException(
                "the RDMA provider " + name + " could not be created: " + unavailabilityCause, unavailabilityCause);
    }

    @Override
    public IoHandlerFactory newIoHandlerFactory(CompletionLoopOptions options) {
        throw refusal();
    }

    @Override
    public Endpoint connect(
            IoEventLoop loop, InetSocketAddress remoteAddress, EndpointOptions options, EndpointHandler handler) {
        throw refusal();
    }

    @Override
    public LocalBinding bind(InetSocketAddress localAddress) {
        throw refusal();
    }

    @Override
    public Listener listen(
            IoEventLoop loop, InetSocketAddress localAddress, ListenOptions options, ListenerHandler handler) {
        throw refusal();
    }
}
