package org.verbena.api;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.testsuite.transport.TestsuitePermutation.BootstrapComboFactory;
import io.netty.testsuite.transport.TestsuitePermutation.BootstrapFactory;
import io.netty.testsuite.transport.socket.SocketTestPermutation;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.testsuite.NettySuite;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;

/**
 * Netty's suite with clients that climb: to a rung on another loop, to one on their own, and to plain TCP. For the full
 * run: every day {@link LadderStreamSuite} runs.
 */
@Tag("full")
class LadderNettySuiteTest extends NettySuite {
    private static final RdmaEventLoopGroup SERVERS = new RdmaEventLoopGroup("soft", 4);
    private static final RdmaEventLoopGroup CLIENTS = new RdmaEventLoopGroup(
            new ProviderSet(
                    List.of(
                            new ProviderChoice(new StagedProvider(), "for a test"),
                            ProviderChoice.choose("soft", null)),
                    Set.of()),
            4,
            null,
            CompletionLoopOptions.DEFAULTS);

    private static final List<String> RUNGS = List.of("soft", StagedProvider.NAME, Carrier.TCP);

    private static final SocketTestPermutation PERMUTATION = new SocketTestPermutation() {
        @Override
        public List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> socket() {
            List<BootstrapFactory<ServerBootstrap>> servers = serverSocket();
            List<BootstrapFactory<Bootstrap>> clients = clientSocket();
            return IntStream.range(0, RUNGS.size())
                    .mapToObj(i -> combo(List.of(servers.get(i)), List.of(clients.get(i))))
                    .flatMap(List::stream)
                    .toList();
        }

        @Override
        public List<BootstrapFactory<ServerBootstrap>> serverSocket() {
            return RUNGS.stream()
                    .<BootstrapFactory<ServerBootstrap>>map(rung -> () -> new ServerBootstrap()
                            .group(SERVERS)
                            .channel(
                                    rung.equals(Carrier.TCP)
                                            ? NioServerSocketChannel.class
                                            : RdmaServerSocketChannel.class))
                    .toList();
        }

        @Override
        public List<BootstrapFactory<Bootstrap>> clientSocket() {
            return RUNGS.stream()
                    .<BootstrapFactory<Bootstrap>>map(rung -> () -> new Bootstrap()
                            .group(CLIENTS)
                            .channel(LadderSocketChannel.class)
                            .option(RdmaChannelOption.LADDER, LadderOptions.DEFAULTS.withRungs(rung)))
                    .toList();
        }
    };

    @Override
    protected SocketTestPermutation permutation() {
        return PERMUTATION;
    }

    @AfterAll
    static void closeChannels() {
        CLIENTS.close();
        SERVERS.close();
    }
}
