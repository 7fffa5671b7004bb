package org.verbena.grpc.internal.nativetransport;

import io.grpc.ChannelCredentials;
import io.grpc.ChannelLogger;
import io.grpc.internal.AtomicBackoff;
import io.grpc.internal.ClientTransportFactory;
import io.grpc.internal.ConnectionClientTransport;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;

/** Makes a channel's connections: native ones, and of HTTP/2 where a server does not speak the native transport. */
public final class NativeTransportFactory implements ClientTransportFactory {
    private final NativeSettings settings;
    private final RdmaEventLoopGroup group;
    private final @Nullable ClientTransportFactory http2;

    /** Doubles when a server says that it got too many pings. */
    private final AtomicBackoff keepAlive;

    /**
     * Makes no connection yet.
     *
     * @param settings of the connections, which are copied
     * @param group their loops
     * @param http2 for servers that reject native connections; closed with this one. Null to fail then
     */
    public NativeTransportFactory(
            NativeSettings settings, RdmaEventLoopGroup group, @Nullable ClientTransportFactory http2) {
        this.settings = settings.copy();
        this.group = group;
        this.http2 = http2;
        keepAlive = new AtomicBackoff("keepalive time nanos", settings.keepAliveNanos);
    }

    @Override
    public ConnectionClientTransport newClientTransport(
            SocketAddress address, ClientTransportOptions options, ChannelLogger log) {
        AtomicBackoff.State backoff = keepAlive.getState();
        NativeClientTransport made = new NativeClientTransport(
                address,
                options.getAuthority(),
                options.getUserAgent(),
                options.getEagAttributes(),
                settings,
                backoff.get(),
                backoff::backoff);
        ClientTransportFactory other = http2;
        return new NativeOrHttp2(
                made, group, address, other == null ? null : () -> other.newClientTransport(address, options, log));
    }

    @Override
    public ScheduledExecutorService getScheduledExecutorService() {
        return group;
    }

    /** Credentials cannot be changed: the native transport has no TLS. */
    @Override
    public @Nullable SwapChannelCredentialsResult swapChannelCredentials(ChannelCredentials credentials) {
        return null;
    }

    @Override
    public void close() {
        if (http2 != null) {
            http2.close();
        }
    }

    @Override
    public Collection<Class<? extends SocketAddress>> getSupportedSocketAddressTypes() {
        return List.of(InetSocketAddress.class);
    }
}
