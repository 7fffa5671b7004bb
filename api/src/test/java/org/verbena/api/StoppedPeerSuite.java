package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.Future;
import java.net.SocketAddress;
import java.net.SocketException;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/**
 * A peer whose process is stopped: its kernel or adapter goes on acknowledging what it is sent, and it answers nothing.
 */
public abstract class StoppedPeerSuite extends ApiSuite {
    /**
     * What a connection may take to find that out by default: a keepalive without a sign of the peer, and one for the
     * answer.
     */
    private static final Duration AT_MOST = Duration.ofMinutes(1);

    @ParameterizedTest(name = "stream: {0}")
    @ValueSource(booleans = {false, true})
    void isGivenUpByTheKeepalive(boolean stream) throws Exception {
        TrafficPeer peer = TrafficPeer.start(provider(), host());
        try {
            BlockingQueue<Throwable> failures = new LinkedBlockingQueue<>();
            BlockingQueue<Integer> echoed = new LinkedBlockingQueue<>();
            Bootstrap bootstrap = new Bootstrap()
                    .group(group)
                    .channel(stream ? RdmaSocketChannel.class : RdmaChannel.class)
                    .handler(new ChannelInboundHandlerAdapter() {
                        @Override
                        public boolean isSharable() {
                            return true;
                        }

                        @Override
                        public void channelRead(ChannelHandlerContext context, Object message) {
                            ByteBuf bytes = (ByteBuf) message;
                            echoed.add(bytes.readableBytes());
                            bytes.release();
                        }

                        @Override
                        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
                            failures.add(cause);
                        }
                    });
            Channel client = first(bootstrap, stream ? peer.streamAddress() : peer.address());
            Integer usual = client.config().getOption(RdmaChannelOption.KEEP_ALIVE_MILLIS);
            assertThat(usual).isPositive();
            assertThat(Duration.ofMillis(2L * usual)).isLessThan(AT_MOST);
            done("closing", client.close());

            bootstrap.option(RdmaChannelOption.KEEP_ALIVE_MILLIS, 1000);
            Channel idle = talking(bootstrap, stream ? peer.streamAddress() : peer.address(), echoed);
            failures.clear(); // of those that a slow peer answered too late
            peer.stop();
            done("giving up", idle.closeFuture());
            assertThat(Patience.take("why", failures))
                    .isInstanceOf(stream ? SocketException.class : ConnectionException.TimedOut.class)
                    .hasMessageContaining("did not answer a keepalive");
        } finally {
            peer.kill();
        }
    }

    /** Its loops end while the connection still waits for the peer's answer. */
    @Test
    void closingAClientOfOneSaysNothing() throws Exception {
        TrafficPeer peer = TrafficPeer.start(provider(), host());
        try {
            RdmaClient client = firstClient(peer.requestPort());
            try (LoggedWarnings netty = new LoggedWarnings("io.netty");
                    LoggedWarnings verbena = new LoggedWarnings("org.verbena")) {
                peer.stop();
                CompletableFuture<byte[]> request = client.request(new byte[10]);
                Future<ByteBuf> same = client.request(Unpooled.buffer(10).writeZero(10));
                BlockingQueue<Throwable> told = new LinkedBlockingQueue<>();
                same.addListener(done -> told.add(done.cause()));
                client.close();
                assertThat(failure("the request", request)).isInstanceOf(ConnectionException.class);
                assertThat(Patience.take("its listener", told)).isInstanceOf(ConnectionException.class);
                assertThat(netty.texts()).isEmpty();
                assertThat(verbena.texts()).isEmpty();
            }
        } finally {
            peer.kill();
        }
    }

    /** siw gives a peer 10 s to answer, and a JVM that is new and slow may need longer for its first connection. */
    private static Channel first(Bootstrap bootstrap, SocketAddress address) {
        AtomicReference<Channel> connected = new AtomicReference<>();
        Patience.until("a first connection", () -> {
            ChannelFuture connecting = bootstrap.connect(address).awaitUninterruptibly();
            connected.set(connecting.channel());
            return connecting.isSuccess();
        });
        return connected.get();
    }

    /** A connection whose peer has sent a message back: a slow one may be given up before it does. */
    private static Channel talking(Bootstrap bootstrap, SocketAddress address, BlockingQueue<Integer> echoed) {
        AtomicReference<Channel> talking = new AtomicReference<>();
        Patience.until("a message comes back", () -> {
            Channel channel = first(bootstrap, address);
            talking.set(channel);
            channel.writeAndFlush(channel.alloc().buffer(10).writeZero(10));
            Patience.until("it is back, or the peer is given up", () -> !echoed.isEmpty() || !channel.isOpen());
            return echoed.poll() != null && channel.isOpen();
        });
        return talking.get();
    }

    private RdmaClient firstClient(int port) {
        AtomicReference<RdmaClient> connected = new AtomicReference<>();
        Patience.until("a first client", () -> {
            try {
                connected.set(RdmaClient.builder().provider(provider()).connect(host(), port));
                return true;
            } catch (ConnectionException slow) {
                return false;
            }
        });
        return connected.get();
    }
}
