package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInitializer;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/**
 * What the suites of the Channel API share. A subclass names the provider; everything is then the same on all of them.
 */
@Timeout(350)
public abstract class ApiSuite {
    static {
        LeakWatch.start();
    }

    private static final int FIRST_LASTING_PORT = 20_000;
    private static final int END_OF_LASTING_PORTS = 32_000;

    // Of the frames of the short form, byte for byte.
    private static final byte REPLY = 2;
    private static final byte TIMED_REQUEST = 4;
    private static final int TIMED_HEADER_BYTES = 12;

    /** The loops of both ends. */
    protected RdmaEventLoopGroup group;

    private static int leaksBefore;

    /** Leaks of earlier tests are their failures, not this one's. */
    private long usedBefore;

    /** Which provider. */
    protected abstract String provider();

    /** Where servers listen and clients connect to. */
    protected String host() {
        return "127.0.0.1";
    }

    /** How many times longer than a host this machine takes for what a test gives little time. */
    protected int slowness() {
        return 1;
    }

    /** A time that is short, but enough for a request to arrive, or for a reply. */
    protected final Duration brief(int millis) {
        return Duration.ofMillis((long) millis * slowness());
    }

    @BeforeEach
    void openGroup() {
        usedBefore = ChannelBuffers.usedBytes();
        group = newGroup();
    }

    protected RdmaEventLoopGroup newGroup() {
        return new RdmaEventLoopGroup(provider(), 3);
    }

    @AfterEach
    void everythingIsReleased() {
        group.shutdownGracefully(0, Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)
                .awaitUninterruptibly(2 * Patience.LIMIT.toMillis());
        assertThat(group.isTerminated()).as("the loops have ended").isTrue();
        try {
            Patience.until("all registered buffers are home", () -> ChannelBuffers.usedBytes() <= usedBefore);
        } catch (AssertionError lost) {
            throw new AssertionError(ChannelBuffers.describe(), lost);
        }
    }

    @BeforeAll
    static void countLeaks() {
        leaksBefore = LeakWatch.count();
    }

    /** Once for all tests: the check takes a garbage collection. A leak's record says where the buffer was used. */
    @AfterAll
    static void nothingLeaked() {
        assertThat(LeakWatch.leaksSince(leaksBefore)).as("leaked buffers").isEmpty();
    }

    /**
     * A port for a server that goes and comes back. It is outside the range that the kernel takes clients' ports from:
     * nobody else gets it meanwhile, and no client that tries it connects to itself.
     */
    protected static int lastingPort() {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(FIRST_LASTING_PORT, END_OF_LASTING_PORTS);
            try (ServerSocket free = new ServerSocket()) {
                free.bind(new InetSocketAddress(port));
                return port;
            } catch (IOException taken) {
                // another one
            }
        }
    }

    /** A listening server whose connections are kept, with an {@link Inbox} each unless a handler is given. */
    protected final class Server implements AutoCloseable {
        public final BlockingQueue<RdmaChannel> accepted = new LinkedBlockingQueue<>();
        public final RdmaServerChannel channel;

        public Server(ServerBootstrap bootstrap, ChannelHandler... handlers) {
            this(bootstrap, group, handlers);
        }

        public Server(ServerBootstrap bootstrap, RdmaEventLoopGroup loops, ChannelHandler... handlers) {
            channel = (RdmaServerChannel) done(
                            "listening",
                            bootstrap
                                    .group(loops)
                                    .channel(RdmaServerChannel.class)
                                    .childHandler(new ChannelInitializer<>() {
                                        @Override
                                        protected void initChannel(Channel accepting) {
                                            accepting.pipeline().addLast(handlers);
                                            accepting.pipeline().addLast("inbox", new Inbox(accepted::add));
                                        }
                                    })
                                    .bind(host(), 0))
                    .channel();
        }

        public InetSocketAddress address() {
            return channel.localAddress();
        }

        /** The other end of the connection that came next. */
        public RdmaChannel next() {
            return Patience.take("a connection to be accepted", accepted);
        }

        @Override
        public void close() {
            done("the server closing", channel.close());
        }
    }

    protected Server listen(ChannelHandler... handlers) {
        return new Server(new ServerBootstrap(), handlers);
    }

    /** A server for clients of the short form, which gets and sends their frames byte for byte. */
    protected Server listenForFrames(ChannelHandler... handlers) {
        return new Server(new ServerBootstrap().childOption(RdmaChannelConfig.SHORT_FORM, true), handlers);
    }

    /** A client of the short form that is none: it gets and sends frames byte for byte. */
    protected RdmaChannel stranger(RdmaServer server, ChannelHandler... handlers) {
        return (RdmaChannel) done(
                        "connecting",
                        bootstrap(handlers)
                                .option(RdmaChannelConfig.SHORT_FORM, true)
                                .connect(server.localAddress()))
                .channel();
    }

    /** The next frame that is a request. */
    protected static byte[] nextRequest(RdmaChannel server) {
        while (true) {
            byte[] frame = inbox(server).next();
            if (isRequest(frame)) {
                return frame;
            }
        }
    }

    protected static boolean isRequest(byte[] frame) {
        return frame[0] == TIMED_REQUEST;
    }

    /** What a request without headers carries. */
    protected static byte[] payload(byte[] request) {
        return Arrays.copyOfRange(request, TIMED_HEADER_BYTES, request.length);
    }

    /** Answers a request without headers with its own message. */
    protected static void reply(RdmaChannel server, byte[] request) {
        server.writeAndFlush(Unpooled.wrappedBuffer(
                new byte[] {REPLY}, Arrays.copyOfRange(request, 1, Long.BYTES), payload(request)));
    }

    protected Bootstrap bootstrap(ChannelHandler... handlers) {
        return new Bootstrap().group(group).channel(RdmaChannel.class).handler(new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel connecting) {
                connecting.pipeline().addLast(handlers);
                connecting.pipeline().addLast("inbox", new Inbox(channel -> {}));
            }
        });
    }

    protected RdmaChannel connect(Server server, ChannelHandler... handlers) {
        return connect(bootstrap(handlers), server);
    }

    protected RdmaChannel connect(Bootstrap bootstrap, Server server) {
        return (RdmaChannel)
                done("connecting", bootstrap.connect(server.address())).channel();
    }

    /** Waits for a future and fails with its cause. */
    protected static <F extends Future<?>> F done(String what, F future) {
        assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                .as("waited for: " + what)
                .isTrue();
        if (!future.isSuccess()) {
            throw new AssertionError(what + " failed", future.cause());
        }
        return future;
    }

    /**
     * Fills the way to a peer, which reads nothing from now on: what is sent afterwards waits at this end, behind so
     * many messages.
     */
    protected static List<Future<Void>> fill(RdmaClient client, RdmaChannel peer, int behind) {
        peer.config().setAutoRead(false);
        List<Future<Void>> sends = new ArrayList<>();
        do {
            sends.add(client.send(Unpooled.wrappedBuffer(new byte[20_000])));
            settle(client.channel(), peer);
        } while (unsent(sends) < behind);
        return sends;
    }

    protected static long unsent(List<? extends Future<?>> sends) {
        return sends.stream().filter(send -> !send.isDone()).count();
    }

    /** Clients that connect to a server, of which one is up now, if any can be. */
    protected List<CompletableFuture<RdmaClient>> connectSome(RdmaServer server) {
        RdmaClient.Builder builder =
                RdmaClient.builder().group(group).failFast().connectTimeout(Patience.LIMIT);
        List<CompletableFuture<RdmaClient>> connecting = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            connecting.add(builder.connectAsync(host(), server.port()));
        }
        Patience.until(
                "one of them is there",
                () -> !server.connections().isEmpty() || connecting.stream().allMatch(CompletableFuture::isDone));
        return connecting;
    }

    /** Their server has stopped: they are up or not, and closed soon, and no request of theirs is answered. */
    protected static void assertNoneIsServed(List<CompletableFuture<RdmaClient>> connecting) {
        for (CompletableFuture<RdmaClient> each : connecting) {
            Patience.until("it is up, or not", each::isDone);
            if (each.isCompletedExceptionally()) {
                assertThat(each.exceptionNow()).isInstanceOf(ConnectionException.class);
                continue;
            }
            try (RdmaClient client = each.resultNow()) {
                assertThat(failure("a request", client.request(new byte[3], Patience.LIMIT)))
                        .isInstanceOf(ConnectionException.class);
                Patience.until(
                        "the server has closed it", () -> !client.channel().isOpen());
            }
        }
    }

    /** Gives what must not come between two ends its chance to come, as {@link Patience#turns}. */
    protected static void settle(Channel one, Channel other) {
        Patience.turns(one.eventLoop(), other.eventLoop());
    }

    /** What a future failed with. */
    protected static Throwable failure(String what, Future<?> future) {
        assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                .as("waited for: " + what)
                .isTrue();
        assertThat(future.isSuccess()).as(what + " must fail").isFalse();
        return future.cause();
    }

    /** What a future failed with. */
    protected static Throwable failure(String what, CompletableFuture<?> future) {
        Patience.until(what + " has ended", future::isDone);
        assertThat(future).as(what + " must fail").isCompletedExceptionally();
        return future.isCancelled() ? new CancellationException() : future.exceptionNow();
    }

    protected static Inbox inbox(Channel channel) {
        return channel.attr(Inbox.KEY).get();
    }

    /** A buffer of the channel's allocator with bytes that tell where they are. */
    protected static ByteBuf pattern(Channel channel, int bytes, int seed) {
        return channel.alloc().buffer(bytes, Math.max(1, bytes)).writeBytes(patternBytes(bytes, seed));
    }

    protected static byte patternByte(int index, int seed) {
        return (byte) (index * 31 + (index >> 8) * 7 + seed);
    }

    protected static byte[] patternBytes(int bytes, int seed) {
        byte[] all = new byte[bytes];
        for (int i = 0; i < bytes; i++) {
            all[i] = patternByte(i, seed);
        }
        return all;
    }
}
