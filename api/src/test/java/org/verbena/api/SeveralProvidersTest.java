package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.socket.SocketChannel;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.RequestException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.Patience;

/** A server that listens with two providers on one port: soft, and one whose ports are its own. */
@Timeout(120)
class SeveralProvidersTest {
    private static final String FIRST = "127.0.0.1";
    private static final String SECOND = "127.0.0.2";

    private final BlockingQueue<Channel> children = new LinkedBlockingQueue<>();
    private final List<ServerSocket> takers = new ArrayList<>();
    private RdmaEventLoopGroup group;

    @AfterEach
    void close() throws IOException {
        if (group != null) {
            group.close();
            assertThat(group.isTerminated()).isTrue();
        }
        for (ServerSocket taker : takers) {
            taker.close();
        }
    }

    private static InetSocketAddress atSecond(InetSocketAddress address) {
        return new InetSocketAddress(SECOND, address.getPort());
    }

    private static InetSocketAddress address(String host, int port) {
        return new InetSocketAddress(host, port);
    }

    private ElsewhereProvider open(UnaryOperator<InetSocketAddress> where, String... required) {
        ElsewhereProvider second = new ElsewhereProvider(where);
        ProviderChoice soft = ProviderChoice.choose("soft", null);
        group = new RdmaEventLoopGroup(
                new ProviderSet(List.of(soft, new ProviderChoice(second, "for a test")), Set.of(required)),
                2,
                null,
                CompletionLoopOptions.DEFAULTS);
        return second;
    }

    private ServerBootstrap streams() {
        return new ServerBootstrap()
                .group(group)
                .channel(RdmaServerSocketChannel.class)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel child) {
                        children.add(child);
                    }
                });
    }

    private RdmaServer echo(int port) {
        return RdmaServer.builder()
                .group(group)
                .bind(FIRST, port, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
    }

    private static String ask(String host, int port) throws InterruptedException, ExecutionException {
        try (RdmaClient client = RdmaClient.builder().provider("soft").connect(host, port)) {
            return new String(client.request("hello".getBytes(US_ASCII)).get(), US_ASCII);
        }
    }

    @Test
    void listensWithBothOnOnePort() throws Exception {
        ElsewhereProvider second = open(SeveralProvidersTest::atSecond, "soft", "elsewhere");
        try (RdmaServer server = echo(0)) {
            assertThat(server.provider()).isEqualTo("soft+elsewhere");
            assertThat(server.channel().providers()).containsExactly("soft", "elsewhere");
            assertThat(ask(FIRST, server.port())).isEqualTo("hello");
            assertThat(ask(SECOND, server.port())).isEqualTo("hello");
            try (RdmaClient first = RdmaClient.connect(FIRST, server.port());
                    RdmaClient other = RdmaClient.connect(SECOND, server.port())) {
                assertThat(first.request(new byte[1]).get()).hasSize(1);
                assertThat(other.request(new byte[1]).get()).hasSize(1);
                Patience.until(
                        "those of the clients before are gone",
                        () -> server.connections().size() == 2);
                assertThat(List.copyOf(server.connections()))
                        .extracting(child -> Carrier.of(child).name())
                        .containsExactlyInAnyOrder("soft", "elsewhere");
                assertThat(List.copyOf(server.connections()))
                        .allSatisfy(child -> assertThat(
                                        LoopGroup.providerOf(child.eventLoop()).name())
                                .isEqualTo(Carrier.of(child).name()));
            }
            assertThat(ProviderStatistics.of(second).connections()).isEqualTo(2);
        }
    }

    @Test
    void countsRefusedRequestsWhereTheyCame() throws Exception {
        ElsewhereProvider second = open(SeveralProvidersTest::atSecond, "soft", "elsewhere");
        CountDownLatch go = new CountDownLatch(1);
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(true)
                        .maxHandlers(1, 0)
                        .bind(FIRST, 0, MessageHandler.ofBytes((exchange, message) -> {
                            Patience.until("the other was refused", () -> go.getCount() == 0);
                            exchange.reply(message);
                        }));
                RdmaClient client = RdmaClient.builder().provider("soft").connect(SECOND, server.port())) {
            Future<byte[]> taken = client.request(new byte[1]);
            Future<byte[]> refused = client.request(new byte[1]);
            assertThatThrownBy(refused::get).hasCauseInstanceOf(RequestException.Overloaded.class);
            go.countDown();
            assertThat(taken.get()).hasSize(1);
            assertThat(server.overloadedRequests()).isEqualTo(1);
            assertThat(ProviderStatistics.of(second).overloadedRequests()).isEqualTo(1);
        }
    }

    @Test
    void oneCloseFreesThePortOfBoth() throws Exception {
        open(SeveralProvidersTest::atSecond, "soft", "elsewhere");
        Channel server = streams().bind(address(FIRST, 0)).syncUninterruptibly().channel();
        int port = ((InetSocketAddress) server.localAddress()).getPort();
        server.close().syncUninterruptibly();
        for (String host : List.of(FIRST, SECOND)) {
            ServerSocket taker = new ServerSocket();
            takers.add(taker);
            taker.bind(address(host, port));
        }
    }

    @Test
    void theGroupEndsWithBothKindsOfChildrenOpen() throws Exception {
        open(SeveralProvidersTest::atSecond, "soft", "elsewhere");
        Channel server = streams().bind(address(FIRST, 0)).syncUninterruptibly().channel();
        int port = ((InetSocketAddress) server.localAddress()).getPort();
        try (RdmaEventLoopGroup clients = new RdmaEventLoopGroup("soft", 1)) {
            for (String host : List.of(FIRST, SECOND)) {
                new Bootstrap()
                        .group(clients)
                        .channel(RdmaSocketChannel.class)
                        .handler(new ChannelInitializer<>() {
                            @Override
                            protected void initChannel(Channel channel) {}
                        })
                        .connect(address(host, port))
                        .syncUninterruptibly();
            }
            Channel one = Patience.take("a child", children);
            Channel other = Patience.take("a child", children);
            assertThat(group.shutdownGracefully(0, 5, TimeUnit.SECONDS).awaitUninterruptibly(60, TimeUnit.SECONDS))
                    .isTrue();
            assertThat(List.of(server, one, other))
                    .allSatisfy(channel ->
                            assertThat(channel.closeFuture().isDone()).isTrue());
            assertThat(group.isTerminated()).isTrue();
            assertThat(group.awaitTermination(1, TimeUnit.SECONDS)).isTrue();
        }
    }

    /** As the TCP port of an iWARP device, which its kernel holds. */
    @Test
    void doesWithoutAnOptionalOneThatCannotListen() throws Exception {
        ElsewhereProvider second = open(UnaryOperator.identity());
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getByName(FIRST))) {
            port = free.getLocalPort();
        }
        try (LoggedWarnings warnings = new LoggedWarnings("org.verbena.api");
                RdmaServer server = echo(port)) {
            assertThat(server.provider()).isEqualTo("soft");
            assertThat(server.port()).isEqualTo(port);
            assertThat(ask(FIRST, port)).isEqualTo("hello");
            assertThat(warnings.texts())
                    .singleElement()
                    .asString()
                    .contains("elsewhere cannot listen")
                    .contains("already in use");
            assertThat(ProviderStatistics.of(second).failedListens()).isEqualTo(1);
        }
    }

    @Test
    void failsAsAWholeWithoutARequiredOne() throws Exception {
        open(UnaryOperator.identity(), "soft", "elsewhere");
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getByName(FIRST))) {
            port = free.getLocalPort();
        }
        assertThatThrownBy(() -> streams().bind(address(FIRST, port)).syncUninterruptibly())
                .isInstanceOf(BindException.class)
                .hasMessageContaining("already in use");
        try (ServerSocket taker = new ServerSocket()) {
            taker.bind(address(FIRST, port));
        }
    }

    /** Nothing is left over of the numbers that were tried. */
    @Test
    void takesAnotherNumberWhereTheSecondCannotHaveIt() throws Exception {
        List<Integer> tried = new ArrayList<>();
        open(
                wanted -> {
                    tried.add(wanted.getPort());
                    if (tried.size() <= 2) {
                        take(wanted.getPort());
                    }
                    return atSecond(wanted);
                },
                "soft",
                "elsewhere");
        try (RdmaServer server = echo(0)) {
            assertThat(tried).hasSize(3).doesNotHaveDuplicates().endsWith(server.port());
            assertThat(ask(SECOND, server.port())).isEqualTo("hello");
            for (int gone : tried.subList(0, 2)) {
                try (ServerSocket taker = new ServerSocket()) {
                    taker.bind(address(FIRST, gone));
                }
            }
        }
    }

    @Test
    void givesUpWhenNoNumberWillDo() {
        List<Integer> tried = new ArrayList<>();
        open(
                wanted -> {
                    tried.add(wanted.getPort());
                    return wanted; // which soft has
                },
                "soft",
                "elsewhere");
        assertThatThrownBy(() -> echo(0)).hasMessageContaining("already in use");
        assertThat(tried).hasSize(8);
    }

    private void take(int port) {
        try {
            ServerSocket taker = new ServerSocket();
            takers.add(taker);
            taker.bind(address(SECOND, port));
        } catch (IOException failure) {
            throw new AssertionError(failure);
        }
    }

    @Test
    void aServerOfAllHasWhatServesHere() throws Exception {
        try (RdmaServer server = RdmaServer.builder()
                .provider("all+soft")
                .threadsPerProvider(1)
                .bind(FIRST, 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)))) {
            assertThat(server.provider()).isEqualTo("soft");
            assertThat(ask(FIRST, server.port())).isEqualTo("hello");
        }
    }

    @Test
    void plainTcpNeedsAProviderThatListensOnIt() {
        ElsewhereProvider second = new ElsewhereProvider(UnaryOperator.identity());
        group = new RdmaEventLoopGroup(new ProviderChoice(second, "alone"), 1, null, CompletionLoopOptions.DEFAULTS);
        assertThatThrownBy(() -> streams()
                        .option(RdmaChannelOption.PLAIN_TCP, true)
                        .bind(address(FIRST, 0))
                        .syncUninterruptibly())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("elsewhere+soft");
    }
}
