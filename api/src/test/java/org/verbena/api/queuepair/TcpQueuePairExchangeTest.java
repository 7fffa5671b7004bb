package org.verbena.api.queuepair;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.QueuePairEnd;
import org.verbena.transport.QueuePairRoute;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.Patience;

/** Exchanges over TCP, without queue pairs. */
@Timeout(240)
class TcpQueuePairExchangeTest {
    private static final MemoryDomain NONE = new MemoryDomain() {
        @Override
        public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
            throw new UnsupportedOperationException();
        }

        @Override
        public long registeredBytes() {
            return 0;
        }
    };

    private static QueuePairEnd end(int number) {
        return new QueuePairEnd(number, 77, 0, 0, 0x0000_ffff_7f00_0001L, 4096, 16, new byte[0]);
    }

    private static TcpQueuePairExchange server() {
        return TcpQueuePairExchange.accepting(new InetSocketAddress("127.0.0.1", 0));
    }

    @Test
    void bothEndsLearnOfTheOther() {
        TcpQueuePairExchange server = server();
        TcpQueuePairExchange client = TcpQueuePairExchange.connecting(server.localAddress());
        assertThat(server.answers()).isTrue();
        assertThat(client.answers()).isFalse();
        QueuePairEnd ofServer = end(11);
        QueuePairEnd ofClient = end(12);
        CompletableFuture<QueuePairEnd> atServer =
                server.exchange(ofServer, NONE).toCompletableFuture();
        CompletableFuture<QueuePairEnd> atClient =
                client.exchange(ofClient, NONE).toCompletableFuture();
        QueuePairEnd learnt = Patience.await("the client's end", atServer);
        assertThat(learnt.queuePairNumber()).isEqualTo(12);
        assertThat(learnt.packetSequenceNumber()).isEqualTo(77);
        assertThat(learnt.gidInterface()).isEqualTo(end(1).gidInterface());
        CompletableFuture<Void> serverReady = server.ready().toCompletableFuture();
        assertThat(Patience.await("the server's end", atClient).queuePairNumber())
                .isEqualTo(11);
        assertThat(serverReady).isNotDone();
        CompletableFuture<Void> clientReady = client.ready().toCompletableFuture();
        Patience.await("the server is ready", serverReady);
        Patience.await("the client is ready", clientReady);
        assertThatThrownBy(() -> server.exchange(ofServer, NONE)).hasMessageContaining("make one for each connection");
        server.close();
        client.close();
    }

    /** A server of many peers listens itself, and has an exchange for each that it accepts. */
    @Test
    void aServerThatAcceptsItselfHasAnExchangeForEachPeer() throws Exception {
        try (ServerSocket listening = new ServerSocket(0, 2, InetAddress.getLoopbackAddress())) {
            InetSocketAddress at = (InetSocketAddress) listening.getLocalSocketAddress();
            for (int peer = 1; peer <= 2; peer++) {
                try (TcpQueuePairExchange client = TcpQueuePairExchange.connecting(at)) {
                    CompletableFuture<QueuePairEnd> atClient =
                            client.exchange(end(10 + peer), NONE).toCompletableFuture();
                    try (TcpQueuePairExchange server = TcpQueuePairExchange.accepted(listening.accept())) {
                        assertThat(server.answers()).isTrue();
                        CompletableFuture<QueuePairEnd> atServer =
                                server.exchange(end(20 + peer), NONE).toCompletableFuture();
                        assertThat(Patience.await("the client's end", atServer).queuePairNumber())
                                .isEqualTo(10 + peer);
                        CompletableFuture<Void> ready = server.ready().toCompletableFuture();
                        assertThat(Patience.await("the server's end", atClient).queuePairNumber())
                                .isEqualTo(20 + peer);
                        Patience.await("the client is ready", client.ready().toCompletableFuture());
                        Patience.await("the server is ready", ready);
                    }
                }
            }
        }
    }

    @Test
    void garbageIsRefused() throws Exception {
        try (ServerSocket listening = new ServerSocket(0, 2, InetAddress.getLoopbackAddress())) {
            for (int filling : new int[] {0xff, 0, 'x'}) {
                try (Socket stranger = new Socket(listening.getInetAddress(), listening.getLocalPort());
                        TcpQueuePairExchange server = TcpQueuePairExchange.accepted(listening.accept())) {
                    CompletableFuture<QueuePairEnd> came =
                            server.exchange(end(11), NONE).toCompletableFuture();
                    stranger.getOutputStream().write(filled(filling));
                    Patience.until("it has an outcome", came::isDone);
                    assertThat(came.exceptionNow()).isInstanceOf(ConnectionException.class);
                }
            }
        }
    }

    private static byte[] filled(int filling) {
        byte[] bytes = new byte[1000];
        Arrays.fill(bytes, (byte) filling);
        return bytes;
    }

    /** They end, they are silent, more of them than there are places, or they say something else. */
    @Test
    void strangersHarmNoExchange() throws Exception {
        List<Socket> strangers = new ArrayList<>();
        try (TcpQueuePairExchange server = server()) {
            InetSocketAddress at = server.localAddress();
            CompletableFuture<QueuePairEnd> atServer =
                    server.exchange(end(11), NONE).toCompletableFuture();
            for (int i = 0; i < 2 * ExchangeAcceptor.MAX_VISITORS; i++) {
                new Socket(at.getAddress(), at.getPort()).close();
                strangers.add(new Socket(at.getAddress(), at.getPort()));
                try (Socket speaks = new Socket(at.getAddress(), at.getPort())) {
                    speaks.getOutputStream().write(filled(new int[] {0, 0xff, 'G'}[i % 3]));
                    closed(speaks);
                }
            }
            assertThat(atServer).isNotDone();
            try (TcpQueuePairExchange client = TcpQueuePairExchange.connecting(at)) {
                CompletableFuture<QueuePairEnd> atClient =
                        client.exchange(end(12), NONE).toCompletableFuture();
                assertThat(Patience.await("the client's end", atServer).queuePairNumber())
                        .isEqualTo(12);
                CompletableFuture<Void> ready = server.ready().toCompletableFuture();
                assertThat(Patience.await("the server's end", atClient).queuePairNumber())
                        .isEqualTo(11);
                Patience.await("the client is ready", client.ready().toCompletableFuture());
                Patience.await("the server is ready", ready);
            }
            for (Socket stranger : strangers) {
                closed(stranger);
            }
        } finally {
            for (Socket stranger : strangers) {
                stranger.close();
            }
        }
    }

    /** The other end has closed it, in order or with bytes unread. */
    private static void closed(Socket socket) throws IOException {
        socket.setSoTimeout((int) Patience.LIMIT.toMillis());
        try {
            assertThat(socket.getInputStream().read()).isEqualTo(-1);
        } catch (SocketException reset) {
            // A wait that is too long ends with another class.
        }
    }

    @Test
    void givingUpEndsWhatIsUnderWay() {
        TcpQueuePairExchange server = server();
        CompletableFuture<QueuePairEnd> came = server.exchange(end(1), NONE).toCompletableFuture();
        server.giveUp();
        Patience.until("it has an outcome", came::isDone);
        assertThat(came.exceptionNow()).isInstanceOf(ConnectionException.class);
        awaitDeaf(server);
    }

    private static void awaitDeaf(TcpQueuePairExchange exchange) {
        Patience.until("it listens no more", () -> {
            try {
                new Socket("127.0.0.1", exchange.localAddress().getPort()).close();
                return false;
            } catch (IOException refused) {
                return true;
            }
        });
    }

    /** It is refused by name, and the exchange is given up. */
    @Test
    void softHasNoQueuePairsToConnectByHand() {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup("soft", 1);
        TcpQueuePairExchange exchange = server();
        try {
            assertThat(group.provider().connectsByHand()).isFalse();
            ChannelFuture connecting = new Bootstrap()
                    .group(group)
                    .channel(RdmaChannel.class)
                    .handler(new ChannelInboundHandlerAdapter())
                    .connect(new QueuePairExchangeAddress(QueuePairRoute.ofDevice("rxe0"), exchange));
            assertThat(connecting.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                    .isTrue();
            assertThat(connecting.cause())
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("provider soft");
            Patience.until("the channel is closed", () -> !connecting.channel().isOpen());
            awaitDeaf(exchange);
        } finally {
            group.shutdownGracefully(0, 5, TimeUnit.SECONDS).awaitUninterruptibly();
        }
    }
}
