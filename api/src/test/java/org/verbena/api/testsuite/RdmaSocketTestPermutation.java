package org.verbena.api.testsuite;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler.Sharable;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.testsuite.transport.TestsuitePermutation.BootstrapComboFactory;
import io.netty.testsuite.transport.TestsuitePermutation.BootstrapFactory;
import io.netty.testsuite.transport.socket.SocketTestPermutation;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;

/**
 * RDMA channels with the same options at both ends: those of the default, rendezvous for all but short writes, and the
 * shared receive queue. Netty's tests leave channels open; {@link #close()} closes them, and checks that all buffers
 * came back.
 */
public final class RdmaSocketTestPermutation extends SocketTestPermutation implements AutoCloseable {
    /** So that small writes of a test go as messages and larger ones by rendezvous. */
    private static final int RENDEZVOUS_BYTES = 1024;

    private static final List<Map<ChannelOption<?>, Object>> VARIANTS = List.of(
            Map.of(),
            Map.of(
                    RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES,
                    RENDEZVOUS_BYTES,
                    RdmaChannelOption.REGISTERED_ALLOCATOR,
                    true),
            Map.of(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true));

    private final RdmaEventLoopGroup group;
    private final OnHost onHost;
    private final long usedBefore;

    /**
     * Starts the loops.
     *
     * @param provider {@code soft} or {@code verbs}
     * @param host the address to use wherever a test names the loopback address
     */
    public RdmaSocketTestPermutation(String provider, String host) {
        group = new RdmaEventLoopGroup(
                ProviderChoice.choose(provider, null),
                NUM_THREADS,
                new DefaultThreadFactory("testsuite-" + provider, true),
                CompletionLoopOptions.DEFAULTS);
        onHost = new OnHost(host);
        usedBefore = usedBytes();
    }

    private long usedBytes() {
        ProviderStatistics now = group.providerStatistics();
        return now.sendBuffers().usedBytes() + now.receiveBuffers().usedBytes();
    }

    /** Closes all channels, ends the loops, and waits for the registered buffers. */
    @Override
    public void close() {
        group.close();
        Patience.until("all registered buffers are home", () -> usedBytes() <= usedBefore);
    }

    @Override
    public List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> socket() {
        List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> pairs = new ArrayList<>();
        List<BootstrapFactory<ServerBootstrap>> servers = serverSocket();
        List<BootstrapFactory<Bootstrap>> clients = clientSocket();
        for (int i = 0; i < servers.size(); i++) {
            pairs.addAll(combo(List.of(servers.get(i)), List.of(clients.get(i))));
        }
        return pairs;
    }

    @Override
    public List<BootstrapFactory<ServerBootstrap>> serverSocket() {
        return VARIANTS.stream()
                .<BootstrapFactory<ServerBootstrap>>map(variant -> () -> {
                    ServerBootstrap server = new ServerBootstrap()
                            .group(group)
                            .channelFactory(() -> onHost.place(new RdmaServerSocketChannel()));
                    variant.forEach((option, value) -> server.childOption(any(option), value));
                    return server;
                })
                .toList();
    }

    @Override
    public List<BootstrapFactory<Bootstrap>> clientSocket() {
        return VARIANTS.stream()
                .<BootstrapFactory<Bootstrap>>map(variant -> () -> {
                    Bootstrap client =
                            new Bootstrap().group(group).channelFactory(() -> onHost.place(new RdmaSocketChannel()));
                    variant.forEach((option, value) -> client.option(any(option), value));
                    return client;
                })
                .toList();
    }

    @SuppressWarnings("unchecked") // the table above has the right value for each
    private static ChannelOption<Object> any(ChannelOption<?> option) {
        return (ChannelOption<Object>) option;
    }

    /** Binds and connects to a host where a test says loopback, which devices do not have. */
    @Sharable
    private static final class OnHost extends ChannelOutboundHandlerAdapter {
        private final String host;

        OnHost(String host) {
            this.host = host;
        }

        <C extends Channel> C place(C channel) {
            channel.pipeline().addFirst(this);
            return channel;
        }

        private @Nullable SocketAddress there(@Nullable SocketAddress address) {
            return address instanceof InetSocketAddress internet
                            && internet.getAddress() != null
                            && internet.getAddress().isLoopbackAddress()
                    ? new InetSocketAddress(host, internet.getPort())
                    : address;
        }

        @Override
        public void bind(ChannelHandlerContext context, SocketAddress local, ChannelPromise promise) {
            context.bind(there(local), promise);
        }

        @Override
        public void connect(
                ChannelHandlerContext context,
                SocketAddress remote,
                @Nullable SocketAddress local,
                ChannelPromise promise) {
            context.connect(there(remote), there(local), promise);
        }
    }
}
