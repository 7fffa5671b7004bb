package org.verbena.api;

import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelOption;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import org.verbena.transport.ProviderChoice;
import org.verbena.transport.spi.CompletionLoopOptions;
import org.verbena.transport.spi.ConnectionException;

/** What {@link RdmaServer} and {@link RdmaClient} share. */
final class ShortForm {

    /** Event loops of a server: as many as there are processors, but no more than most servers can use. */
    static final int SERVER_THREADS = Math.clamp(Runtime.getRuntime().availableProcessors(), 1, 8);

    private ShortForm() {}

    /** Names are looked up here, because the provider is chosen for the address. */
    static InetSocketAddress resolve(String purpose, String host, int port) {
        try {
            return new InetSocketAddress(InetAddress.getByName(host), port);
        } catch (UnknownHostException unknown) {
            throw new ConnectionException.Unreachable(
                    purpose + host + ":" + port + ": looking up the name failed: no such host", unknown);
        }
    }

    static RdmaEventLoopGroup newGroup(
            String provider, InetSocketAddress address, int threads, CompletionLoopOptions options) {
        return new RdmaEventLoopGroup(ProviderChoice.choose(provider, address), threads, null, options);
    }

    /** Waits; what went wrong is thrown as it is. */
    static ChannelFuture await(ChannelFuture future) {
        return future.syncUninterruptibly();
    }

    /** For options out of a map, where each value has its option's type. */
    @SuppressWarnings("unchecked")
    static ChannelOption<Object> untyped(ChannelOption<?> option) {
        return (ChannelOption<Object>) option;
    }
}
