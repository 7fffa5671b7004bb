package org.verbena.api.testsuite;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.testsuite.transport.TestsuitePermutation.BootstrapComboFactory;
import io.netty.testsuite.transport.TestsuitePermutation.BootstrapFactory;
import io.netty.testsuite.transport.socket.SocketTestPermutation;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.transport.ProviderChoice;
import org.verbena.transport.spi.CompletionLoopOptions;

/**
 * Both ends over RDMA: as they are by default, with rendezvous for each write and registered memory, and with the shared
 * receive queue. Each of these is a permutation of its own, with the same at both ends.
 */
final class RdmaSocketTestPermutation extends SocketTestPermutation {
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

    private final EventLoopGroup group;

    RdmaSocketTestPermutation(String provider) {
        group = new RdmaEventLoopGroup(
                ProviderChoice.choose(provider, null),
                NUM_THREADS,
                new DefaultThreadFactory("testsuite-" + provider, true),
                CompletionLoopOptions.DEFAULTS);
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
                    ServerBootstrap server = new ServerBootstrap().group(group).channel(RdmaServerSocketChannel.class);
                    variant.forEach((option, value) -> server.childOption(any(option), value));
                    return server;
                })
                .toList();
    }

    @Override
    public List<BootstrapFactory<Bootstrap>> clientSocket() {
        return VARIANTS.stream()
                .<BootstrapFactory<Bootstrap>>map(variant -> () -> {
                    Bootstrap client = new Bootstrap().group(group).channel(RdmaSocketChannel.class);
                    variant.forEach((option, value) -> client.option(any(option), value));
                    return client;
                })
                .toList();
    }

    @SuppressWarnings("unchecked") // the table above has the right value for each
    private static ChannelOption<Object> any(ChannelOption<?> option) {
        return (ChannelOption<Object>) option;
    }
}
