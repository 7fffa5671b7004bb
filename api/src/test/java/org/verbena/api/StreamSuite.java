package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelProgressiveFuture;
import io.netty.channel.ChannelProgressiveFutureListener;
import io.netty.channel.ChannelProgressivePromise;
import io.netty.channel.DefaultFileRegion;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.FileRegion;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.ServerChannel;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.ChannelInputShutdownReadComplete;
import io.netty.channel.socket.ChannelOutputShutdownEvent;
import io.netty.channel.socket.ChannelOutputShutdownException;
import io.netty.channel.socket.ServerSocketChannel;
import io.netty.channel.socket.ServerSocketChannelConfig;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.SocketChannelConfig;
import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslHandshakeCompletionEvent;
import io.netty.handler.ssl.SslProvider;
import io.netty.util.AbstractReferenceCounted;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.WritableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLException;
import javax.net.ssl.TrustManagerFactory;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.api.ladder.LadderResult;
import org.verbena.transport.spi.Patience;

/** What a byte-stream channel does, whatever carries it: a subclass for TCP shows that it is what sockets do. */
@Timeout(350)
public abstract class StreamSuite {
    private static final String PASSWORD = "password";
    private static final AttributeKey<Reader> READER = AttributeKey.valueOf(StreamSuite.class, "reader");

    static {
        LeakWatch.start();
    }

    /** The loops of both ends. */
    protected EventLoopGroup group;

    private static int leaksBefore;

    /** Event loops for both ends. */
    protected abstract EventLoopGroup newGroup();

    /** What connects. */
    protected abstract Class<? extends Channel> channelClass();

    /** What listens. */
    protected abstract Class<? extends ServerChannel> serverChannelClass();

    /** Where servers listen and clients connect to. */
    protected String host() {
        return "127.0.0.1";
    }

    /** How many channels there are at once, where many are wanted. */
    protected int manyChannels() {
        return 200;
    }

    /** Bytes of a long stream. */
    protected int manyBytes() {
        return 20 << 20;
    }

    /** Leaks of earlier tests are their failures, not this one's. */
    private long usedBefore;

    @BeforeEach
    void openGroup() {
        usedBefore = ChannelBuffers.usedBytes();
        group = newGroup();
    }

    @AfterEach
    void everythingIsReleased() {
        group.shutdownGracefully(0, Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)
                .awaitUninterruptibly(2 * Patience.LIMIT.toMillis());
        assertThat(group.isTerminated()).as("the loops have ended").isTrue();
        Patience.until("all registered buffers are home", () -> ChannelBuffers.usedBytes() <= usedBefore);
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

    /** Reads all that comes: counts it, hashes it, and keeps what it is told. */
    protected static class Reader extends ChannelInboundHandlerAdapter {
        final BlockingQueue<Object> events = new LinkedBlockingQueue<>();
        final List<Throwable> failures = new CopyOnWriteArrayList<>();
        final List<String> life = new CopyOnWriteArrayList<>();
        volatile long bytes;
        private final MessageDigest digest = sha256();

        @Override
        public void handlerAdded(ChannelHandlerContext context) {
            context.channel().attr(READER).set(this);
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            life.add("active");
            context.fireChannelActive();
        }

        @Override
        @SuppressWarnings("NonAtomicOperationOnVolatileField") // only the loop writes it
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf buffer = (ByteBuf) message;
            digest(digest, buffer);
            bytes += buffer.readableBytes();
            read(context, buffer);
        }

        protected void read(ChannelHandlerContext context, ByteBuf buffer) {
            buffer.release();
        }

        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (!(event instanceof LadderResult)) { // which only clients that climb get
                events.add(event);
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            failures.add(cause);
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            life.add("inactive");
            context.fireChannelInactive();
        }

        String hash() {
            return HexFormat.of().formatHex(digest.digest());
        }
    }

    /** Sends back what comes, and stops reading while nobody takes it. */
    protected static final class Echo extends Reader {
        @Override
        protected void read(ChannelHandlerContext context, ByteBuf buffer) {
            context.write(buffer);
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }

        @Override
        public void channelWritabilityChanged(ChannelHandlerContext context) {
            context.channel().config().setAutoRead(context.channel().isWritable());
        }
    }

    /** A listening server whose connections are kept. */
    protected final class Server implements AutoCloseable {
        final BlockingQueue<Channel> accepted = new LinkedBlockingQueue<>();
        final Channel channel;

        Server(ServerBootstrap bootstrap, int port, Consumer<Channel> handlers) {
            channel = done(
                            "listening",
                            bootstrap
                                    .group(group)
                                    .channel(serverChannelClass())
                                    .option(ChannelOption.SO_BACKLOG, 256)
                                    .option(ChannelOption.SO_REUSEADDR, true)
                                    .childHandler(new ChannelInitializer<SocketChannel>() {
                                        @Override
                                        protected void initChannel(SocketChannel accepting) {
                                            handlers.accept(accepting);
                                            accepting.pipeline().addLast(new ChannelInboundHandlerAdapter() {
                                                @Override
                                                public void channelActive(ChannelHandlerContext context) {
                                                    accepted.add(context.channel());
                                                }
                                            });
                                        }
                                    })
                                    .bind(host(), port))
                    .channel();
        }

        int port() {
            return ((InetSocketAddress) channel.localAddress()).getPort();
        }

        /** The other end of the connection that came next. */
        Channel next() {
            return Patience.take("a connection to be accepted", accepted);
        }

        @Override
        public void close() {
            done("the server closing", channel.close());
        }
    }

    protected Server listen() {
        return new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Reader()));
    }

    /** What clients are made with: loops and channels. */
    protected Bootstrap newBootstrap() {
        return new Bootstrap().group(group).channel(channelClass());
    }

    protected Bootstrap bootstrap(ChannelHandler... handlers) {
        return newBootstrap().handler(new ChannelInitializer<SocketChannel>() {
            @Override
            protected void initChannel(SocketChannel connecting) {
                connecting.pipeline().addLast(handlers);
                connecting.pipeline().addLast(new Reader());
            }
        });
    }

    protected Channel connect(Server server, ChannelHandler... handlers) {
        return connect(bootstrap(handlers), server);
    }

    protected Channel connect(Bootstrap bootstrap, Server server) {
        return done("connecting", bootstrap.connect(host(), server.port())).channel();
    }

    protected static <F extends Future<?>> F done(String what, F future) {
        assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                .as("waited for: " + what)
                .isTrue();
        if (!future.isSuccess()) {
            throw new AssertionError(what + " failed", future.cause());
        }
        return future;
    }

    protected static Throwable failure(String what, Future<?> future) {
        assertThat(future.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                .as("waited for: " + what)
                .isTrue();
        assertThat(future.isSuccess()).as(what + " must fail").isFalse();
        return future.cause();
    }

    protected static Reader reader(Channel channel) {
        return channel.attr(READER).get();
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }

    private static void digest(MessageDigest digest, ByteBuf buffer) {
        for (var part : buffer.nioBuffers()) {
            digest.update(part);
        }
    }

    protected static void closeBoth(Channel client, Channel peer) {
        done("closing", client.close());
        done("the peer closing", peer.closeFuture());
    }

    /** A buffer of one of the kinds that handlers write. */
    private static ByteBuf randomBuffer(Channel channel, Random random, int bytes) {
        byte[] content = new byte[bytes];
        random.nextBytes(content);
        return switch (random.nextInt(5)) {
            case 0 -> Unpooled.wrappedBuffer(content);
            case 1 -> Unpooled.directBuffer(Math.max(1, bytes)).writeBytes(content);
            case 2 -> {
                CompositeByteBuf composite = channel.alloc().compositeBuffer(64);
                int at = 0;
                while (at < bytes) {
                    int part = Math.min(bytes - at, 1 + random.nextInt(1 + bytes / 4));
                    ByteBuf sge = random.nextBoolean() ? channel.alloc().buffer(part) : Unpooled.buffer(part);
                    composite.addComponent(true, sge.writeBytes(content, at, part));
                    at += part;
                }
                yield composite;
            }
            case 3 ->
                channel.alloc()
                        .buffer(bytes + 5)
                        .writeZero(5)
                        .skipBytes(5)
                        .writeBytes(content)
                        .slice();
            default -> channel.alloc().buffer(Math.max(1, bytes)).writeBytes(content);
        };
    }

    /** Writes random buffers up to so many bytes, as fast as the channel takes them. Returns their hash. */
    private static String writeRandomly(Channel channel, Random random, int total) {
        MessageDigest sent = sha256();
        int left = total;
        while (left > 0) {
            int bytes = Math.min(
                    left,
                    switch (random.nextInt(10)) {
                        case 0 -> random.nextInt(300_000);
                        case 1, 2 -> random.nextInt(40_000);
                        case 3 -> 0;
                        default -> random.nextInt(300);
                    });
            ByteBuf buffer = randomBuffer(channel, random, bytes);
            digest(sent, buffer);
            left -= bytes;
            ChannelFuture write = channel.write(buffer);
            if (random.nextInt(6) == 0 || left == 0) {
                channel.flush();
            }
            if (!channel.isWritable()) {
                channel.flush();
                done("a write", write);
            }
        }
        return HexFormat.of().formatHex(sent.digest());
    }

    /**
     * As one that throttles, or reads the first bytes of TLS: auto-read is on, and what it asks for stops at the
     * handler.
     */
    @Test
    void aHandlerThatHoldsBackReadsGetsNothing() {
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new HoldsBackReads(), new Reader()))) {
            Channel client = connect(server, new HoldsBackReads());
            Channel peer = server.next();
            client.writeAndFlush(Unpooled.wrappedBuffer(new byte[2000]));
            peer.writeAndFlush(Unpooled.wrappedBuffer(new byte[2000]));
            Patience.turns(client.eventLoop(), peer.eventLoop());
            assertThat(reader(client).bytes).isZero();
            assertThat(reader(peer).bytes).isZero();

            for (Channel end : List.of(client, peer)) {
                end.pipeline().remove(HoldsBackReads.class);
                end.read();
                Patience.until("the bytes come", () -> reader(end).bytes == 2000);
            }
            closeBoth(client, peer);
        }
    }

    /** Holds back what auto-read asks for. */
    private static final class HoldsBackReads extends ChannelDuplexHandler {
        @Override
        public void read(ChannelHandlerContext context) {
            // until it is removed
        }
    }

    /** Speaks first. */
    static final class Greeter extends Reader {
        private final byte[] greeting;

        Greeter(byte[] greeting) {
            this.greeting = greeting;
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            context.writeAndFlush(Unpooled.wrappedBuffer(greeting));
            super.channelActive(context);
        }
    }

    /** As HTTP/2 and many databases do. */
    @Test
    void theServerMaySpeakFirst() {
        byte[] greeting = {1, 2, 3, 4, 5, 6, 7};
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Greeter(greeting)))) {
            for (int i = 0; i < 20; i++) {
                Channel client = connect(server);
                Channel peer = server.next();
                Patience.until("the greeting comes", () -> reader(client).bytes == greeting.length);
                closeBoth(client, peer);
            }
        }
    }

    @Test
    void carriesBytesOfEveryKindAndSizeInOrder() throws Exception {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Echo()))) {
            Channel client = connect(server);
            Channel peer = server.next();
            String sent = writeRandomly(client, random, manyBytes());
            Patience.until("all bytes are back, seed " + seed, () -> reader(client).bytes == manyBytes());
            assertThat(reader(client).hash()).as("seed %d", seed).isEqualTo(sent);
            assertThat(reader(peer).hash()).as("seed %d", seed).isEqualTo(sent);
            closeBoth(client, peer);
            assertThat(reader(client).failures).isEmpty();
            assertThat(reader(peer).failures).isEmpty();
        }
    }

    @Test
    void carriesBytesBothWaysAtOnce() throws Exception {
        long seed = System.nanoTime();
        try (Server server = listen()) {
            Channel client = connect(server);
            Channel peer = server.next();
            int total = manyBytes() / 2;
            String[] hashes = new String[1];
            Thread other = new Thread(() -> hashes[0] = writeRandomly(peer, new Random(seed), total));
            other.start();
            String sent = writeRandomly(client, new Random(seed + 1), total);
            other.join();
            Patience.until(
                    "all bytes have come, seed " + seed,
                    () -> reader(client).bytes == total && reader(peer).bytes == total);
            assertThat(reader(peer).hash()).isEqualTo(sent);
            assertThat(reader(client).hash()).isEqualTo(hashes[0]);
            closeBoth(client, peer);
        }
    }

    @Test
    void completesPromisesInOrder() {
        try (Server server = listen()) {
            Channel client = connect(server);
            Channel peer = server.next();
            int count = 3000;
            List<Integer> completed = new CopyOnWriteArrayList<>();
            List<ChannelFuture> writes = new ArrayList<>();
            long total = 0;
            for (int i = 0; i < count; i++) {
                int number = i;
                int bytes = i % 100 == 0 ? 100_000 : i % 50;
                total += bytes;
                writes.add(
                        client.write(client.alloc().buffer().writeZero(bytes)).addListener(done -> {
                            assertThat(done.isSuccess()).isTrue();
                            completed.add(number);
                        }));
                if (i % 17 == 0) {
                    client.flush();
                }
            }
            client.flush();
            for (ChannelFuture write : writes) {
                done("a write", write);
            }
            Patience.until("all listeners", () -> completed.size() == count);
            for (int i = 0; i < count; i++) {
                assertThat(completed.get(i)).isEqualTo(i);
            }
            long expected = total;
            Patience.until("all bytes", () -> reader(peer).bytes == expected);
            closeBoth(client, peer);
        }
    }

    @Test
    void sendsNothingBeforeAFlush() throws Exception {
        try (Server server = listen()) {
            Channel client = connect(server);
            Channel peer = server.next();
            ChannelFuture write = client.write(Unpooled.copiedBuffer(new byte[10]));
            Patience.turns(client.eventLoop(), peer.eventLoop());
            assertThat(write.isDone()).isFalse();
            assertThat(reader(peer).bytes).isZero();
            client.flush();
            done("the write", write);
            Patience.until("it comes", () -> reader(peer).bytes == 10);
            closeBoth(client, peer);
        }
    }

    /** A handler may wait for what its peer does about it. */
    @Test
    void whatIsFlushedWithinACallbackGoesOutBeforeItReturns() {
        CountDownLatch greeted = new CountDownLatch(1);
        CountDownLatch answered = new CountDownLatch(1);
        BlockingQueue<Boolean> inTime = new LinkedBlockingQueue<>();
        ChannelHandler waits = new ChannelInboundHandlerAdapter() {
            @Override
            public void channelActive(ChannelHandlerContext context) throws Exception {
                context.fireChannelActive();
                context.writeAndFlush(Unpooled.copiedBuffer(new byte[1000]));
                inTime.add(greeted.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
            }

            @Override
            public void channelRead(ChannelHandlerContext context, Object message) throws Exception {
                context.writeAndFlush(message);
                inTime.add(answered.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
            }
        };
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(waits, new Reader()))) {
            Channel client = connect(server);
            Channel peer = server.next();
            assertThat(peer.eventLoop()).as("each has a loop of its own").isNotSameAs(client.eventLoop());
            Patience.until("the greeting comes", () -> reader(client).bytes == 1000);
            greeted.countDown();
            assertThat(Patience.take("the handler", inTime)).isTrue();
            client.writeAndFlush(Unpooled.copiedBuffer(new byte[500]));
            Patience.until("the answer comes", () -> reader(client).bytes == 1500);
            answered.countDown();
            assertThat(Patience.take("the handler", inTime)).isTrue();
            closeBoth(client, peer);
        }
    }

    @Test
    void readsWithinAReadDoNotDelayItsEnd() {
        int most = 2;
        AtomicInteger sinceComplete = new AtomicInteger();
        AtomicInteger longest = new AtomicInteger();
        ChannelHandler asks = new ChannelInboundHandlerAdapter() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object message) {
                longest.accumulateAndGet(sinceComplete.incrementAndGet(), Math::max);
                context.fireChannelRead(message);
                context.read();
            }

            @Override
            public void channelReadComplete(ChannelHandlerContext context) {
                sinceComplete.set(0);
                context.fireChannelReadComplete();
            }
        };
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(
                        ChannelOption.RECVBUF_ALLOCATOR, new FixedRecvByteBufAllocator(100).maxMessagesPerRead(most));
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(asks, new Reader()))) {
            Channel client = connect(server);
            Channel peer = server.next();
            for (int i = 0; i < 50; i++) {
                client.writeAndFlush(Unpooled.copiedBuffer(new byte[100]));
            }
            peer.read();
            Patience.until("all of it comes", () -> reader(peer).bytes == 5000);
            assertThat(longest.get()).isBetween(1, most);
            closeBoth(client, peer);
        }
    }

    @Test
    void closingChangesNoWritability() {
        BlockingQueue<Boolean> changes = new LinkedBlockingQueue<>();
        @ChannelHandler.Sharable
        class Listens extends ChannelInboundHandlerAdapter {
            @Override
            public void channelWritabilityChanged(ChannelHandlerContext context) {
                changes.add(context.channel().isWritable());
            }
        }
        ChannelHandler listens = new Listens();
        for (boolean here : new boolean[] {true, false}) {
            ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.AUTO_READ, false);
            try (Server server =
                    new Server(serving, 0, channel -> channel.pipeline().addLast(listens, new Reader()))) {
                Channel client = connect(server, listens);
                Channel peer = server.next();
                done("a write", client.writeAndFlush(Unpooled.copiedBuffer(new byte[1000])));
                (here ? client : peer).close();
                done("closing", client.closeFuture());
                done("the peer closing", peer.close());
                Patience.turns(client.eventLoop(), peer.eventLoop());
                assertThat(changes).isEmpty();
            }
        }
    }

    @Test
    void oneHalfClosesWhileTheOtherGoesOn() {
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.ALLOW_HALF_CLOSURE, true);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            SocketChannel client =
                    (SocketChannel) connect(bootstrap().option(ChannelOption.ALLOW_HALF_CLOSURE, true), server);
            SocketChannel peer = (SocketChannel) server.next();
            client.writeAndFlush(Unpooled.copiedBuffer(new byte[100_000]));
            Patience.until("the bytes come", () -> reader(peer).bytes == 100_000);
            done("shutting down the output", client.shutdownOutput());
            assertThat(client.isOutputShutdown()).isTrue();
            assertThat(client.isInputShutdown()).isFalse();
            assertThat(client.isActive()).isTrue();
            assertThat(Patience.take("the client's event", reader(client).events))
                    .isEqualTo(ChannelOutputShutdownEvent.INSTANCE);
            assertThat(Patience.take("the end of input", reader(peer).events))
                    .isEqualTo(ChannelInputShutdownEvent.INSTANCE);
            assertThat(Patience.take("the end of reads", reader(peer).events))
                    .isEqualTo(ChannelInputShutdownReadComplete.INSTANCE);
            assertThat(peer.isInputShutdown()).isTrue();
            assertThat(peer.isOutputShutdown()).isFalse();
            assertThat(failure("a write", client.writeAndFlush(Unpooled.copiedBuffer(new byte[1]))))
                    .isInstanceOf(IOException.class);
            done("the answer", peer.writeAndFlush(Unpooled.copiedBuffer(new byte[200_000])));
            Patience.until("the answer comes", () -> reader(client).bytes == 200_000);
            done("the other half", peer.shutdownOutput());
            assertThat(Patience.take("the end of input", reader(client).events))
                    .isEqualTo(ChannelInputShutdownEvent.INSTANCE);
            assertThat(client.isShutdown()).isTrue();
            done("closing", client.close());
            done("the peer closing", peer.close());
            assertThat(reader(client).failures).isEmpty();
            assertThat(reader(peer).failures).isEmpty();
        }
    }

    @Test
    void aPeersCloseIsTheEndOfInputWhereHalfClosureIsAllowed() {
        try (Server server = listen()) {
            Channel client = connect(bootstrap().option(ChannelOption.ALLOW_HALF_CLOSURE, true), server);
            done("the peer closing", server.next().close());
            assertThat(Patience.take("the end of input", reader(client).events))
                    .isEqualTo(ChannelInputShutdownEvent.INSTANCE);
            assertThat(Patience.take("the end of reads", reader(client).events))
                    .isEqualTo(ChannelInputShutdownReadComplete.INSTANCE);
            done("closing", client.close());
            assertThat(reader(client).failures).isEmpty();
        }
    }

    @Test
    void aPeersEndClosesAChannelThatAllowsNoHalfClosure() {
        try (Server server = listen()) {
            SocketChannel client = (SocketChannel) connect(server);
            Channel peer = server.next();
            client.writeAndFlush(Unpooled.copiedBuffer(new byte[100_000]));
            Patience.until("the bytes come", () -> reader(peer).bytes == 100_000);
            client.shutdownOutput();
            done("the peer closing", peer.closeFuture());
            done("the client closing", client.closeFuture());
            assertThat(reader(peer).events).isEmpty();
            assertThat(reader(peer).failures).isEmpty();
        }
    }

    @Test
    void failsWhatIsNotFlushedWhenTheOutputIsShutDown() {
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.ALLOW_HALF_CLOSURE, true);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            SocketChannel client = (SocketChannel) connect(server);
            Channel peer = server.next();
            ChannelFuture never = client.write(Unpooled.copiedBuffer(new byte[10]));
            done("shutting down the output", client.shutdownOutput());
            assertThat(failure("what was not flushed", never)).isInstanceOf(ChannelOutputShutdownException.class);
            Patience.take("the end of input", reader(peer).events);
            assertThat(reader(peer).bytes).isZero();
            done("closing", client.close());
            done("the peer closing", peer.close());
        }
    }

    @Test
    void readsNothingMoreWhenTheInputIsShutDown() {
        try (Server server = listen()) {
            SocketChannel client =
                    (SocketChannel) connect(bootstrap().option(ChannelOption.ALLOW_HALF_CLOSURE, true), server);
            Channel peer = server.next();
            done("shutting down the input", client.shutdownInput());
            assertThat(client.isInputShutdown()).isTrue();
            assertThat(client.isOutputShutdown()).isFalse();
            assertThat(Patience.take("the end of reads", reader(client).events))
                    .isEqualTo(ChannelInputShutdownReadComplete.INSTANCE);
            done("writing goes on", client.writeAndFlush(Unpooled.copiedBuffer(new byte[1000])));
            Patience.until("the bytes come", () -> reader(peer).bytes == 1000);
            done("closing", client.close());
            done("the peer closing", peer.close());
        }
    }

    @Test
    void aSlowReaderStopsItsWriter() throws Exception {
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.AUTO_READ, false);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            Channel client = connect(
                    bootstrap()
                            .option(
                                    ChannelOption.WRITE_BUFFER_WATER_MARK,
                                    new WriteBufferWaterMark(32 << 10, 64 << 10)),
                    server);
            Channel peer = server.next();
            MessageDigest sent = sha256();
            Random random = new Random(7);
            long total = 0;
            ChannelFuture last = null;
            while (total < 64 << 20) {
                if (!client.isWritable()) {
                    Patience.turns(client.eventLoop(), peer.eventLoop()); // it may not have arrived yet
                    if (!client.isWritable()) {
                        break;
                    }
                }
                ByteBuf buffer = randomBuffer(client, random, 8000);
                digest(sent, buffer);
                total += 8000;
                last = client.writeAndFlush(buffer);
            }
            assertThat(total).as("bytes until the channel was full").isLessThan(64 << 20);
            assertThat(last.isDone()).isFalse();
            assertThat(reader(peer).bytes).isZero();
            peer.config().setAutoRead(true);
            done("the last write", last);
            long expected = total;
            Patience.until("all bytes", () -> reader(peer).bytes == expected);
            assertThat(reader(peer).hash()).isEqualTo(HexFormat.of().formatHex(sent.digest()));
            Patience.until("the channel is writable", client::isWritable);
            closeBoth(client, peer);
        }
    }

    @Test
    void readsOnlyWhenAsked() throws Exception {
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.AUTO_READ, false);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            Channel client = connect(server);
            Channel peer = server.next();
            int total = 2 << 20;
            client.writeAndFlush(Unpooled.copiedBuffer(new byte[total]));
            Patience.turns(client.eventLoop(), peer.eventLoop());
            assertThat(reader(peer).bytes).isZero();
            peer.read();
            Patience.until("the first bytes", () -> reader(peer).bytes > 0);
            Patience.turns(client.eventLoop(), peer.eventLoop());
            assertThat(reader(peer).bytes).as("one read is not all").isLessThan(total);
            Patience.until("all bytes", () -> {
                peer.read();
                return reader(peer).bytes >= total;
            });
            assertThat(reader(peer).bytes).isEqualTo(total);
            done("closing", client.close());
            peer.read(); // it is a read that notices
            done("the peer closing", peer.closeFuture());
        }
    }

    @Test
    void sendsFilesBetweenBuffers(@TempDir Path folder) throws Exception {
        byte[] content = new byte[3_000_001];
        new Random(3).nextBytes(content);
        Path file = Files.write(folder.resolve("file"), content);
        try (Server server = listen()) {
            Channel client = connect(server);
            Channel peer = server.next();
            MessageDigest expected = sha256();
            List<ChannelFuture> writes = new ArrayList<>();
            int[][] regions = {{0, content.length}, {1_000_000, 5}, {17, 65_536}, {0, 0}};
            long total = 0;
            for (int[] region : regions) {
                writes.add(client.write(Unpooled.copiedBuffer(new byte[] {1, 2, 3})));
                expected.update(new byte[] {1, 2, 3});
                writes.add(client.write(new DefaultFileRegion(file.toFile(), region[0], region[1])));
                expected.update(content, region[0], region[1]);
                total += 3 + region[1];
            }
            client.flush();
            for (ChannelFuture write : writes) {
                done("a write", write);
            }
            long all = total;
            Patience.until("all bytes", () -> reader(peer).bytes == all);
            assertThat(reader(peer).hash()).isEqualTo(HexFormat.of().formatHex(expected.digest()));
            closeBoth(client, peer);
        }
    }

    /** Gives each byte twice, in small steps, and now and then nothing: what it writes is not what it transfers. */
    private static final class Doubling extends AbstractReferenceCounted implements FileRegion {
        private final byte[] content;
        private final ByteBuffer encoded;
        private long transferred;
        private int calls;

        Doubling(byte[] content) {
            this.content = content;
            encoded = ByteBuffer.allocate(2 * content.length);
            for (byte one : content) {
                encoded.put(one).put(one);
            }
            encoded.flip();
        }

        @Override
        public long position() {
            return 0;
        }

        @Override
        @Deprecated
        public long transfered() {
            return transferred;
        }

        @Override
        public long transferred() {
            return transferred;
        }

        @Override
        public long count() {
            return content.length;
        }

        @Override
        public long transferTo(WritableByteChannel target, long position) throws IOException {
            if (++calls % 5 == 0) {
                return 0;
            }
            ByteBuffer part = encoded.slice(encoded.position(), Math.min(10_000, encoded.remaining()));
            int written = target.write(part);
            encoded.position(encoded.position() + written);
            transferred = encoded.position() / 2;
            return written;
        }

        @Override
        public FileRegion retain() {
            super.retain();
            return this;
        }

        @Override
        public FileRegion retain(int increment) {
            super.retain(increment);
            return this;
        }

        @Override
        public FileRegion touch() {
            return this;
        }

        @Override
        public FileRegion touch(Object hint) {
            return this;
        }

        @Override
        protected void deallocate() {}
    }

    @Test
    void aRegionIsDoneWhenItHasTransferredItsCount() throws Exception {
        byte[] content = new byte[300_000];
        new Random(5).nextBytes(content);
        MessageDigest expected = sha256();
        for (byte one : content) {
            expected.update(one);
            expected.update(one);
        }
        expected.update(new byte[] {1, 2, 3});
        try (Server server = listen()) {
            Channel client = connect(server);
            Channel peer = server.next();
            ChannelProgressivePromise promise = client.newProgressivePromise();
            List<Long> progress = new CopyOnWriteArrayList<>();
            promise.addListener(new ChannelProgressiveFutureListener() {
                @Override
                public void operationProgressed(ChannelProgressiveFuture future, long soFar, long total) {
                    progress.add(soFar);
                }

                @Override
                public void operationComplete(ChannelProgressiveFuture future) {}
            });
            client.write(new Doubling(content), promise);
            ChannelFuture behind = client.writeAndFlush(Unpooled.copiedBuffer(new byte[] {1, 2, 3}));
            done("the region", promise);
            done("what is behind it", behind);
            Patience.until("all bytes", () -> reader(peer).bytes == 600_003);
            assertThat(reader(peer).hash()).isEqualTo(HexFormat.of().formatHex(expected.digest()));
            assertThat(progress).isNotEmpty().isSorted();
            closeBoth(client, peer);
        }
    }

    @Test
    void progressOfBuffersIsReported() {
        try (Server server = listen()) {
            Channel client = connect(server);
            Channel peer = server.next();
            ChannelProgressivePromise promise = client.newProgressivePromise();
            List<Long> progress = new CopyOnWriteArrayList<>();
            promise.addListener(new ChannelProgressiveFutureListener() {
                @Override
                public void operationProgressed(ChannelProgressiveFuture future, long soFar, long total) {
                    progress.add(soFar);
                }

                @Override
                public void operationComplete(ChannelProgressiveFuture future) {}
            });
            client.writeAndFlush(Unpooled.copiedBuffer(new byte[5000]), promise);
            done("the write", promise);
            Patience.until("the progress is told", () -> progress.contains(5000L));
            closeBoth(client, peer);
        }
    }

    /** {@code IdleStateHandler} uses it to tell a slow transfer from none. */
    @Test
    protected void aTransferThatIsUnderWayShowsItsProgress(@TempDir Path folder) throws Exception {
        int bytes = 50_000_000;
        Path file = Files.write(folder.resolve("file"), new byte[bytes]);
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.AUTO_READ, false);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            Channel client = connect(server);
            Channel peer = server.next();
            ChannelFuture write = client.writeAndFlush(new DefaultFileRegion(file.toFile(), 0, bytes));
            Callable<Long> progress = () -> client.unsafe().outboundBuffer().currentProgress();
            Patience.until(
                    "some of it is sent",
                    () -> done("asking", client.eventLoop().submit(progress)).getNow() > 0);
            assertThat(write.isDone()).isFalse();
            peer.config().setAutoRead(true);
            done("the file", write);
            Patience.until("all of it comes", () -> reader(peer).bytes == bytes);
            closeBoth(client, peer);
        }
    }

    @Test
    protected void aClientsBindTakesAPort() {
        try (Server server = listen()) {
            Channel bound = done("binding", bootstrap().bind(host(), 0)).channel();
            InetSocketAddress from = (InetSocketAddress) bound.localAddress();
            assertThat(from.getPort()).isPositive();
            assertThat(failure("binding to the same port", bootstrap().bind(from)))
                    .isInstanceOf(BindException.class);
            assertThat(failure("connecting from it", bootstrap().connect(server.channel.localAddress(), from)))
                    .isInstanceOf(SocketException.class);
            done("connecting", bound.connect(server.channel.localAddress()));
            Channel peer = server.next();
            assertThat(peer.remoteAddress()).isEqualTo(from);
            assertThat(bound.localAddress()).isEqualTo(from);
            closeBoth(bound, peer);
        }
    }

    @Test
    void aPortThatIsTakenIsABindException() {
        try (Server server = listen()) {
            ChannelFuture binding = new ServerBootstrap()
                    .group(group)
                    .channel(serverChannelClass())
                    .childHandler(new ChannelInboundHandlerAdapter())
                    .bind(host(), server.port());
            assertThat(failure("binding twice", binding)).isInstanceOf(BindException.class);
        }
    }

    @Test
    void aFileThatBecameShorterEndsTheChannel(@TempDir Path folder) throws Exception {
        Path file = Files.write(folder.resolve("file"), new byte[100_000]);
        try (Server server = listen()) {
            Channel client = connect(server);
            Channel peer = server.next();
            ChannelFuture write = client.writeAndFlush(new DefaultFileRegion(file.toFile(), 0, 200_000));
            assertThat(failure("the file", write)).isInstanceOf(IOException.class);
            done("the client closing", client.closeFuture());
            done("the peer closing", peer.closeFuture());
            assertThat(reader(client).failures)
                    .as("what the promise tells, the pipeline need not")
                    .isEmpty();
        }
    }

    @Test
    void aClosedPeerEndsTheChannelWithUnreadData() {
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.AUTO_READ, false);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            Channel client = connect(server);
            Channel peer = server.next();
            done("a write", client.writeAndFlush(Unpooled.copiedBuffer(new byte[10_000])));
            done("the peer closing", peer.close());
            done("the client closing", client.closeFuture());
            Patience.until("the client hears of it", () -> reader(client).life.equals(List.of("active", "inactive")));
            assertThat(failure("a write", client.writeAndFlush(Unpooled.copiedBuffer(new byte[1]))))
                    .isInstanceOf(ClosedChannelException.class);
        }
    }

    @Test
    void whatWasWrittenBeforeClosingArrives() {
        try (Server server = listen()) {
            Channel client = connect(server);
            Channel peer = server.next();
            client.writeAndFlush(Unpooled.copiedBuffer(new byte[50_000])).addListener(written -> client.close());
            done("the peer closing", peer.closeFuture());
            assertThat(reader(peer).bytes).isEqualTo(50_000);
            assertThat(reader(peer).failures).isEmpty();
        }
    }

    @Test
    void anAbortedPeerFailsWhatIsPending() throws Exception {
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.AUTO_READ, false);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            Channel client = connect(server);
            Channel peer = server.next();
            List<ChannelFuture> writes = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                writes.add(client.writeAndFlush(Unpooled.copiedBuffer(new byte[100_000])));
            }
            Patience.turns(client.eventLoop(), peer.eventLoop());
            peer.config().setOption(ChannelOption.SO_LINGER, 0);
            done("the peer closing", peer.close());
            done("the client closing", client.closeFuture());
            assertThat(failure("the last write", writes.get(199))).isInstanceOf(IOException.class);
            for (ChannelFuture write : writes) {
                assertThat(write.isDone()).isTrue();
            }
            Patience.until("the client hears of it", () -> reader(client).life.contains("inactive"));
            assertThat(reader(client).failures).allMatch(IOException.class::isInstance);
        }
    }

    @Test
    void closingWithoutLingeringDropsWhatWasNotSentAndResetsThePeer() {
        ServerBootstrap serving = new ServerBootstrap().childOption(ChannelOption.SO_LINGER, 0);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            Channel client = connect(bootstrap().option(ChannelOption.AUTO_READ, false), server);
            Channel peer = server.next();
            ChannelFuture write = peer.writeAndFlush(Unpooled.wrappedBuffer(new byte[50_000_000]));
            Patience.turns(client.eventLoop(), peer.eventLoop());
            done("closing", peer.close());
            assertThat(failure("what was not sent", write)).isInstanceOf(ClosedChannelException.class);
            client.config().setAutoRead(true);
            done("the peer closing", client.closeFuture());
            Patience.until("the failure is told", () -> !reader(client).failures.isEmpty());
            assertThat(reader(client).failures)
                    .singleElement()
                    .asInstanceOf(InstanceOfAssertFactories.throwable(SocketException.class))
                    .hasMessageStartingWith("Connection reset");
        }
    }

    @Test
    void connectsToARestartedServer() {
        Server first = listen();
        int port = first.port();
        Channel client = connect(first);
        Channel peer = first.next();
        first.close();
        done("the peer closing", peer.close());
        done("the client closing", client.closeFuture());
        // TCP may still take it and reset it: its socket goes when the loop's selector lets go of it.
        assertThat(failure("connecting to nobody", bootstrap().connect(host(), port)))
                .isInstanceOf(IOException.class);
        try (Server second = new Server(
                new ServerBootstrap(), port, channel -> channel.pipeline().addLast(new Reader()))) {
            Channel again = connect(second);
            Channel accepted = second.next();
            done("a write", again.writeAndFlush(Unpooled.copiedBuffer(new byte[10])));
            Patience.until("it comes", () -> reader(accepted).bytes == 10);
            closeBoth(again, accepted);
        }
    }

    @Test
    void manyChannelsAtOnceKeepTheirBytesApart() {
        long seed = System.nanoTime();
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Echo()))) {
            int count = manyChannels();
            List<ChannelFuture> connecting = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                connecting.add(bootstrap()
                        // All at once take longer the slower the machine is.
                        .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, (int) Patience.LIMIT.toMillis())
                        .connect(host(), server.port()));
            }
            int bytes = 50_000;
            String[] hashes = new String[count];
            List<Channel> clients = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                clients.add(done("connecting", connecting.get(i)).channel());
                hashes[i] = writeRandomly(clients.get(i), new Random(seed + i), bytes);
            }
            for (int i = 0; i < count; i++) {
                Channel client = clients.get(i);
                Patience.until("all bytes of channel " + i + ", seed " + seed, () -> reader(client).bytes == bytes);
                assertThat(reader(client).hash())
                        .as("channel %d, seed %d", i, seed)
                        .isEqualTo(hashes[i]);
            }
            for (Channel client : clients) {
                client.close();
            }
            for (Channel client : clients) {
                done("closing", client.closeFuture());
                assertThat(reader(client).failures).isEmpty();
            }
            for (int i = 0; i < count; i++) {
                done("the peer closing", server.next().closeFuture());
            }
        }
    }

    @Test
    void takesKeepsAndGivesBackTheOptionsOfSockets() {
        ServerBootstrap serving = new ServerBootstrap()
                .option(ChannelOption.SO_RCVBUF, 65536)
                .childOption(ChannelOption.SO_KEEPALIVE, true)
                .childOption(ChannelOption.TCP_NODELAY, true);
        try (Server server =
                new Server(serving, 0, channel -> channel.pipeline().addLast(new Reader()))) {
            SocketChannel client = (SocketChannel) connect(
                    bootstrap()
                            .option(ChannelOption.SO_KEEPALIVE, true)
                            .option(ChannelOption.TCP_NODELAY, false)
                            .option(ChannelOption.SO_LINGER, 5)
                            .option(ChannelOption.SO_SNDBUF, 65536),
                    server);
            SocketChannelConfig config = client.config();
            assertThat(config.isKeepAlive()).isTrue();
            assertThat(config.isTcpNoDelay()).isFalse();
            assertThat(config.getSoLinger()).isEqualTo(5);
            assertThat(config.getSendBufferSize()).isGreaterThanOrEqualTo(65536);
            assertThat(config.getReceiveBufferSize()).isPositive();
            assertThat(config.isReuseAddress()).isFalse();
            assertThat(config.setTrafficClass(8).getTrafficClass()).isEqualTo(8);
            assertThat(config.setSoLinger(-5).getSoLinger()).isEqualTo(-1);
            assertThat(config.setReuseAddress(true).isReuseAddress()).isTrue();
            assertThat(config.setAllowHalfClosure(true).isAllowHalfClosure()).isTrue();
            assertThatThrownBy(() -> config.setReceiveBufferSize(0)).isInstanceOf(IllegalArgumentException.class);
            assertThat(config.setReceiveBufferSize(65536).getOption(ChannelOption.SO_RCVBUF))
                    .isGreaterThanOrEqualTo(65536);
            assertThat(config.getOptions())
                    .containsEntry(ChannelOption.SO_KEEPALIVE, true)
                    .containsEntry(ChannelOption.IP_TOS, 8);
            assertThat(config.setOption(ChannelOption.SO_BACKLOG, 5)).isFalse();
            SocketChannel peer = (SocketChannel) server.next();
            assertThat(peer.parent()).isSameAs(server.channel);
            assertThat(peer.config().isKeepAlive()).isTrue();
            ServerSocketChannelConfig serverConfig = ((ServerSocketChannel) server.channel).config();
            assertThat(serverConfig.getReceiveBufferSize()).isGreaterThanOrEqualTo(65536);
            assertThat(serverConfig.getBacklog()).isEqualTo(256);
            assertThat(serverConfig.isReuseAddress()).isTrue();
            closeBoth(client, peer);
        }
    }

    // ---- TLS

    private static KeyStore keyStore() throws Exception {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (var in = StreamSuite.class.getResourceAsStream("localhost.p12")) {
            keys.load(in, PASSWORD.toCharArray());
        }
        return keys;
    }

    private static KeyManagerFactory identity() throws Exception {
        KeyManagerFactory identity = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        identity.init(keyStore(), PASSWORD.toCharArray());
        return identity;
    }

    private static TrustManagerFactory trust() throws Exception {
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(keyStore());
        return trust;
    }

    private Server listenWithTls() throws Exception {
        SslContext context = SslContextBuilder.forServer(identity())
                .sslProvider(SslProvider.JDK)
                .trustManager(trust())
                .clientAuth(ClientAuth.REQUIRE)
                .build();
        return new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(patient(context, channel), new Echo()));
    }

    private static SslContextBuilder clientTls() throws Exception {
        return SslContextBuilder.forClient()
                .sslProvider(SslProvider.JDK)
                .trustManager(trust())
                .endpointIdentificationAlgorithm(null);
    }

    private static ChannelHandler tlsHandler(SslContext context) {
        return new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel channel) {
                channel.pipeline().addFirst(patient(context, channel));
            }
        };
    }

    /** Netty's own limit, 10 s, is what a handshake takes in a guest that shares its machine. */
    static SslHandler patient(SslContext context, Channel channel) {
        SslHandler tls = context.newHandler(channel.alloc());
        tls.setHandshakeTimeoutMillis(Patience.LIMIT.toMillis());
        return tls;
    }

    @Test
    protected void tlsAuthenticatesBothEnds() throws Exception {
        long seed = System.nanoTime();
        SslContext context = clientTls().keyManager(identity()).build();
        try (Server server = listenWithTls()) {
            Channel client = connect(server, tlsHandler(context));
            done("the handshake", client.pipeline().get(SslHandler.class).handshakeFuture());
            Channel peer = server.next();
            done("the server's handshake", peer.pipeline().get(SslHandler.class).handshakeFuture());
            assertThat(peer.pipeline()
                            .get(SslHandler.class)
                            .engine()
                            .getSession()
                            .getPeerCertificates())
                    .isNotEmpty();
            int total = manyBytes() / 4;
            String sent = writeRandomly(client, new Random(seed), total);
            Patience.until("all bytes are back, seed " + seed, () -> reader(client).bytes == total);
            assertThat(reader(client).hash()).as("seed %d", seed).isEqualTo(sent);
            closeBoth(client, peer);
            assertThat(reader(client).failures).isEmpty();
            assertThat(reader(peer).failures).isEmpty();
        }
    }

    @Test
    protected void tlsRejectsAClientWithoutACertificate() throws Exception {
        SslContext context = clientTls().build();
        try (Server server = listenWithTls()) {
            Channel client = connect(server, tlsHandler(context));
            Channel peer = server.next();
            client.writeAndFlush(Unpooled.copiedBuffer(new byte[100]));
            done("the client closing", client.closeFuture());
            done("the peer closing", peer.closeFuture());
            assertThat(reader(client).bytes).isZero();
            assertThat(reader(peer).bytes).isZero();
            SslHandshakeCompletionEvent outcome =
                    (SslHandshakeCompletionEvent) Patience.take("the handshake's outcome", reader(peer).events);
            assertThat(outcome.cause()).isInstanceOf(SSLException.class);
        }
    }

    @Test
    protected void aPeerThatIsKilledEndsTheChannel() throws Exception {
        try (Server server = new Server(
                new ServerBootstrap(), 0, channel -> channel.pipeline().addLast(new Echo()))) {
            Process other = TrafficPeer.java(
                    List.of(), Victim.class, getClass().getName(), host(), String.valueOf(server.port()));
            try {
                // A JVM takes its time to start in the lab's guest.
                Patience.until("a connection", () -> !server.accepted.isEmpty() || !other.isAlive());
                Channel peer = server.next();
                Patience.until("bytes come", () -> reader(peer).bytes > 0);
                other.destroyForcibly();
                done("the channel closing", peer.closeFuture());
                assertThat(reader(peer).failures).allMatch(IOException.class::isInstance);
                assertThat(failure("a write", peer.writeAndFlush(Unpooled.copiedBuffer(new byte[1]))))
                        .isInstanceOf(IOException.class);
            } finally {
                other.destroyForcibly();
            }
        }
    }

    /** Connects, talks, and waits for its end. */
    public static final class Victim {
        private Victim() {}

        public static void main(String[] args) throws Exception {
            var constructor = Class.forName(args[0]).getDeclaredConstructor();
            constructor.setAccessible(true);
            StreamSuite suite = (StreamSuite) constructor.newInstance();
            suite.group = suite.newGroup();
            Channel channel = suite.bootstrap()
                    .connect(args[1], Integer.parseInt(args[2]))
                    .sync()
                    .channel();
            while (true) {
                channel.writeAndFlush(Unpooled.copiedBuffer(new byte[1000])).sync();
            }
        }
    }
}
