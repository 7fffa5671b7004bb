package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelPromise;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannelRecvByteBufAllocator;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.nio.NioIoHandler;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.Future;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.MessageTooLargeException;
import org.verbena.transport.buffer.RdmaByteBufAllocator;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.UnusedPort;

/** An RdmaChannel as a Netty channel. */
public abstract class ChannelSuite extends ApiSuite {

    @Test
    void carriesMessagesOfEverySizeInOrder() {
        int[] sizes = {
            0, 1, 2, 63, 64, 65, 1000, 4096, 16_360, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 300_000, 1 << 20,
            0, 3
        };
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            List<ChannelFuture> writes = new ArrayList<>();
            for (int i = 0; i < sizes.length; i++) {
                writes.add(client.write(pattern(client, sizes[i], i)));
            }
            client.flush();
            for (int i = 0; i < sizes.length; i++) {
                assertThat(inbox(peer).next())
                        .as("message of %d bytes", sizes[i])
                        .isEqualTo(patternBytes(sizes[i], i));
            }
            for (ChannelFuture write : writes) {
                done("a write", write);
            }
            for (int i = 0; i < sizes.length; i++) {
                peer.writeAndFlush(pattern(peer, sizes[i], i));
            }
            for (int i = 0; i < sizes.length; i++) {
                assertThat(inbox(client).next())
                        .as("message of %d bytes", sizes[i])
                        .isEqualTo(patternBytes(sizes[i], i));
            }
            done("closing", client.close());
        }
    }

    @Test
    void carriesBuffersOfAllKinds() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            byte[] bytes = patternBytes(10_000, 3);
            List<ByteBuf> kinds = new ArrayList<>();
            kinds.add(Unpooled.wrappedBuffer(bytes));
            kinds.add(Unpooled.directBuffer().writeBytes(bytes));
            kinds.add(client.alloc().buffer().writeBytes(bytes));
            kinds.add(client.alloc().heapBuffer().writeBytes(bytes));
            CompositeByteBuf mixed = client.alloc().compositeBuffer();
            for (int at = 0; at < bytes.length; at += 1000) {
                ByteBuf part = at % 2000 == 0 ? client.alloc().buffer(1000) : Unpooled.buffer(1000);
                mixed.addComponent(true, part.writeBytes(bytes, at, 1000));
            }
            kinds.add(mixed);
            kinds.add(Unpooled.copiedBuffer(bytes).asReadOnly());
            ByteBuf larger = client.alloc().buffer().writeZero(100).writeBytes(bytes);
            kinds.add(larger.readerIndex(100));
            for (ByteBuf kind : kinds) {
                client.write(kind);
            }
            client.flush();
            for (int i = 0; i < kinds.size(); i++) {
                assertThat(inbox(peer).next()).as("kind %d", i).isEqualTo(bytes);
            }
            done("closing", client.close());
        }
    }

    @Test
    void allocatesInRegisteredMemoryOnceItIsActive() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            assertThat(client.alloc()).isInstanceOf(RdmaByteBufAllocator.class);
            assertThat(server.next().alloc()).isInstanceOf(RdmaByteBufAllocator.class);
            assertThat(client.memory()).isNotNull();
            assertThat(client.capabilities().sendDepth()).isPositive();
            done("closing", client.close());
        }
    }

    @Test
    void completesEachPromiseOnceAndInOrder() throws Exception {
        int count = 5000;
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            List<Integer> completed = new CopyOnWriteArrayList<>();
            AtomicInteger failed = new AtomicInteger();
            CountDownLatch all = new CountDownLatch(count);
            client.eventLoop().execute(() -> {
                for (int i = 0; i < count; i++) {
                    int number = i;
                    ChannelFuture write = client.write(pattern(client, i % 200, i));
                    write.addListener(done -> {
                        completed.add(number);
                        if (!done.isSuccess()) {
                            failed.incrementAndGet();
                        }
                        all.countDown();
                    });
                    if (i % 7 == 0) {
                        client.flush();
                    }
                }
                client.flush();
            });
            assertThat(all.await(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .isTrue();
            assertThat(failed).hasValue(0);
            for (int i = 0; i < count; i++) {
                assertThat(completed.get(i)).isEqualTo(i);
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(i % 200, i));
            }
            assertThat(completed).hasSize(count);
            done("closing", client.close());
        }
    }

    @Tag("lab-full")
    @Test
    void keepsWhatIsNotFlushed() throws Exception {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            ChannelFuture first = client.write(pattern(client, 10, 1));
            settle(client, peer);
            assertThat(first.isDone()).isFalse();
            assertThat(inbox(peer).messages).isEmpty();
            client.flush();
            done("the write", first);
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, 1));
            ChannelFuture never = client.write(pattern(client, 10, 2));
            done("closing", client.close());
            assertThat(failure("what was not flushed", never)).isInstanceOf(ClosedChannelException.class);
            Patience.until("the peer closes", () -> !peer.isOpen());
            assertThat(inbox(peer).messages).isEmpty();
        }
    }

    @Tag("lab-full")
    @Test
    void leavesOutWhatWasCancelledBeforeTheFlush() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            client.write(pattern(client, 10, 1));
            ChannelFuture cancelled = client.write(pattern(client, 10, 2));
            client.write(Unpooled.EMPTY_BUFFER);
            ChannelFuture alsoCancelled = client.write(pattern(client, 10, 3));
            ChannelFuture last = client.write(pattern(client, 10, 4));
            assertThat(cancelled.cancel(false)).isTrue();
            assertThat(alsoCancelled.cancel(false)).isTrue();
            client.flush();
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, 1));
            assertThat(inbox(peer).next()).isEmpty();
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, 4));
            done("the last write", last);
            done("one more", client.writeAndFlush(pattern(client, 5, 5)));
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(5, 5));
            done("closing", client.close());
        }
    }

    @Tag("lab-full")
    @Test
    void refusesMessagesThatAreNoBuffers() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            assertThat(failure("a string", client.writeAndFlush("text")))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("encoder");
            assertThat(client.isActive()).isTrue();
            done("closing", client.close());
        }
    }

    /** Netty calls listeners within the flush whose message is refused. */
    @Tag("lab-full")
    @Test
    void aListenerOfARefusedMessageMayWrite() {
        ServerBootstrap limited = new ServerBootstrap().childOption(RdmaChannelOption.MAX_MESSAGE_BYTES, 20_000);
        try (Server server = new Server(limited)) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            for (int i = 0; i < 20; i++) {
                int number = i;
                client.writeAndFlush(pattern(client, 20_001, i))
                        .addListener(refused -> client.writeAndFlush(pattern(client, 10, number)));
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, i));
            }
            done("closing", client.close());
        }
    }

    @Tag("lab-full")
    @Test
    void failsAMessageBeyondThePeersLimitAndGoesOn() {
        try (Server server =
                new Server(new ServerBootstrap().childOption(RdmaChannelOption.MAX_MESSAGE_BYTES, 100_000))) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            ChannelFuture tooLarge = client.write(pattern(client, 100_001, 1));
            ChannelFuture atTheLimit = client.write(pattern(client, 100_000, 2));
            client.flush();
            assertThat(failure("too large", tooLarge))
                    .isInstanceOf(MessageTooLargeException.class)
                    .hasMessageContaining("raise MAX_MESSAGE_BYTES at the peer");
            done("at the limit", atTheLimit);
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(100_000, 2));
            done("closing", client.close());
        }
    }

    @Test
    void goesThroughItsLifeInOrder() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            assertThat(client.isActive()).isTrue();
            assertThat(peer.isActive()).isTrue();
            assertThat(client.closeFuture().isDone()).isFalse();
            done("closing", client.close());
            done("closed", client.closeFuture());
            done("the peer closed", peer.closeFuture());
            assertThat(client.isOpen()).isFalse();
            List<String> life = List.of("registered", "active", "inactive", "unregistered");
            Patience.until("both have unregistered", () -> !client.isRegistered() && !peer.isRegistered());
            Patience.until(
                    "all is told",
                    () -> inbox(peer).life.size() >= 4 && inbox(client).life.size() >= 4);
            assertThat(inbox(client).life).isEqualTo(life);
            assertThat(inbox(peer).life).isEqualTo(life);
            assertThat(inbox(client).writability).isEmpty();
            assertThat(inbox(peer).writability).isEmpty();
        }
    }

    @Test
    void reportsBothAddresses() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            assertThat(client.remoteAddress()).isEqualTo(server.address());
            assertThat(peer.localAddress()).isEqualTo(server.address());
            assertThat(peer.remoteAddress()).isEqualTo(client.localAddress());
            assertThat(client.localAddress().getPort()).isPositive();
            assertThat(client.toString()).contains(server.address().toString());
            assertThat(peer.parent()).isSameAs(server.channel);
            assertThat(client.parent()).isNull();
            done("closing", client.close());
        }
    }

    @Test
    void connectsFromTheGivenAddress() throws Exception {
        try (Server server = listen()) {
            InetAddress local = InetAddress.getByName(host());
            RdmaChannel client = (RdmaChannel) done(
                            "connecting", bootstrap().connect(server.address(), new InetSocketAddress(local, 0)))
                    .channel();
            assertThat(client.localAddress().getAddress()).isEqualTo(local);
            done("closing", client.close());
        }
    }

    @Tag("lab-full")
    @Test
    void takesOptionsAndAttributesFromTheBootstraps() {
        AttributeKey<String> key = AttributeKey.valueOf("verbena-test");
        ServerBootstrap serving = new ServerBootstrap()
                .option(ChannelOption.SO_BACKLOG, 17)
                .option(ChannelOption.SO_REUSEADDR, true)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 33)
                .childOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 2048)
                .childAttr(key, "child");
        try (Server server = new Server(serving)) {
            assertThat(server.channel.config().getOption(ChannelOption.SO_BACKLOG))
                    .isEqualTo(17);
            RdmaChannel client =
                    connect(bootstrap().option(RdmaChannelOption.READ_DEPTH, 3).attr(key, "client"), server);
            RdmaChannel peer = server.next();
            assertThat(peer.config().getOption(RdmaChannelOption.RECEIVE_DEPTH)).isEqualTo(33);
            assertThat(peer.config().getOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES))
                    .isEqualTo(2048);
            assertThat(client.config().getOption(RdmaChannelOption.READ_DEPTH)).isEqualTo(3);
            assertThat(client.config().getOptions())
                    .containsEntry(RdmaChannelOption.READ_DEPTH, 3)
                    .containsEntry(RdmaChannelOption.FRAMING, Framing.MESSAGE)
                    .containsKey(ChannelOption.CONNECT_TIMEOUT_MILLIS);
            assertThat(peer.attr(key).get()).isEqualTo("child");
            assertThat(client.attr(key).get()).isEqualTo("client");
            assertThatThrownBy(() -> client.config().setOption(RdmaChannelOption.READ_DEPTH, 4))
                    .hasMessageContaining("set it on the bootstrap");
            client.writeAndFlush(pattern(client, 100_000, 1));
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(100_000, 1));
            done("closing", client.close());
        }
    }

    @Tag("lab-full")
    @Test
    void refusesOptionsOutOfRange() {
        RdmaChannel channel = new RdmaChannel();
        assertThatThrownBy(() -> channel.config().setOption(RdmaChannelOption.RETRY_COUNT, 8))
                .hasMessageContaining("RETRY_COUNT")
                .hasMessageContaining("0 to 7");
        assertThatThrownBy(() -> channel.config().setOption(RdmaChannelOption.SEND_DEPTH, 0))
                .hasMessageContaining("SEND_DEPTH");
        assertThatThrownBy(() -> channel.config().setOption(RdmaChannelOption.MAX_MESSAGE_BYTES, 0))
                .hasMessageContaining("MAX_MESSAGE_BYTES 0 is not within 1 to ");
        assertThat(channel.config().setOption(RdmaChannelOption.RETRY_COUNT, 7)).isTrue();
        assertThat(channel.config().setOption(ChannelOption.TCP_NODELAY, true)).isFalse();
        channel.unsafe().closeForcibly();
    }

    @Tag("lab-full")
    @Test
    void refusesOtherLoops() {
        MultiThreadIoEventLoopGroup other = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
        try {
            assertThat(failure("registering elsewhere", other.register(new RdmaChannel())))
                    .hasMessageContaining("incompatible event loop");
        } finally {
            other.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        }
    }

    // ---- back-pressure and reading

    @Test
    void stopsTheSenderWhileTheReceiverDoesNotRead() throws Exception {
        int messageBytes = 8000;
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 16);
        try (Server server = new Server(serving)) {
            Bootstrap sending = bootstrap()
                    .option(ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(64 << 10, 256 << 10));
            RdmaChannel client = connect(sending, server);
            RdmaChannel peer = server.next();
            AtomicInteger sent = new AtomicInteger();
            AtomicInteger completed = new AtomicInteger();
            client.eventLoop()
                    .submit(() -> writeWhileWritable(client, messageBytes, sent, completed))
                    .sync();
            Patience.until("the sender is stopped", () -> !client.isWritable());
            settle(client, peer);
            int stoppedAt = sent.get();
            assertThat(stoppedAt).isBetween(1, 200);
            assertThat(completed.get()).isLessThanOrEqualTo(16);
            assertThat(inbox(peer).messages).isEmpty();
            long heldBytes = ChannelBuffers.usedBytes();
            settle(client, peer);
            assertThat(sent).hasValue(stoppedAt);
            assertThat(ChannelBuffers.usedBytes())
                    .as("no more than the sender has taken")
                    .isLessThanOrEqualTo(heldBytes)
                    .isLessThan(8 << 20);

            peer.config().setAutoRead(true);
            for (int i = 0; i < stoppedAt; i++) {
                assertThat(inbox(peer).next()).as("message %d", i).isEqualTo(patternBytes(messageBytes, i));
            }
            Patience.until("the sender may go on", client::isWritable);
            Patience.until("all sends have completed", () -> completed.get() == stoppedAt);
            List<Boolean> writability = inbox(client).writability;
            Patience.until("its handlers know", () -> !writability.isEmpty() && writability.getLast());
            assertThat(writability).startsWith(false);
            client.writeAndFlush(pattern(client, 10, 9));
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, 9));
            done("closing", client.close());
        }
    }

    private static void writeWhileWritable(
            RdmaChannel channel, int messageBytes, AtomicInteger sent, AtomicInteger completed) {
        while (channel.isWritable()) {
            channel.writeAndFlush(pattern(channel, messageBytes, sent.getAndIncrement()))
                    .addListener(done -> completed.incrementAndGet());
            if (sent.get() > 10_000) {
                throw new AssertionError("10000 messages, and still writable");
            }
        }
    }

    @Tag("lab-full")
    @Test
    void readsNoMoreThanRequested() throws Exception {
        try (Server server = new Server(new ServerBootstrap().childOption(ChannelOption.AUTO_READ, false))) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            int count = 100;
            for (int i = 0; i < count; i++) {
                client.write(pattern(client, 10, i));
            }
            client.flush();
            settle(client, peer);
            assertThat(inbox(peer).messages).isEmpty();
            int seen = 0;
            while (seen < count) {
                int before = inbox(peer).readCompletes.get();
                peer.read();
                Patience.until(
                        "a read is complete", () -> inbox(peer).readCompletes.get() == before + 1);
                settle(client, peer);
                int now = inbox(peer).messages.size();
                assertThat(now - seen).isBetween(1, 16);
                assertThat(inbox(peer).readCompletes.get()).isEqualTo(before + 1);
                seen = now;
            }
            for (int i = 0; i < count; i++) {
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, i));
            }
            done("closing", client.close());
        }
    }

    /**
     * As one that throttles, or reads the first bytes of TLS: auto-read is on, and what it asks for stops at the
     * handler.
     */
    @Tag("lab-full")
    @Test
    void aHandlerThatHoldsBackReadsGetsNothing() {
        AtomicReference<ChannelHandlerContext> gate = new AtomicReference<>();
        try (Server server = new Server(new ServerBootstrap(), new HoldsBackReads(gate))) {
            RdmaChannel client = connect(server, new HoldsBackReads(new AtomicReference<>()));
            RdmaChannel peer = server.next();
            for (RdmaChannel sender : List.of(client, peer)) {
                for (int i = 0; i < 100; i++) {
                    sender.write(pattern(sender, 10, i));
                }
                sender.flush();
            }
            settle(client, peer);
            assertThat(inbox(peer).messages).isEmpty();
            assertThat(inbox(client).messages).isEmpty();
            assertThat(inbox(peer).readCompletes).hasValue(0);

            gate.get().executor().submit(() -> gate.get().read()).syncUninterruptibly();
            Patience.until("a read is complete", () -> inbox(peer).readCompletes.get() == 1);
            settle(client, peer);
            assertThat(inbox(peer).readCompletes).hasValue(1);
            assertThat(inbox(peer).messages).hasSizeBetween(1, 16);

            peer.pipeline().remove(HoldsBackReads.class);
            peer.read();
            for (int i = 0; i < 100; i++) {
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, i));
            }
            assertThat(inbox(client).messages).isEmpty();
            done("closing", client.close());
        }
    }

    private static final class HoldsBackReads extends ChannelDuplexHandler {
        private final AtomicReference<ChannelHandlerContext> gate;

        HoldsBackReads(AtomicReference<ChannelHandlerContext> gate) {
            this.gate = gate;
        }

        @Override
        public void handlerAdded(ChannelHandlerContext context) {
            gate.set(context);
        }

        @Override
        public void read(ChannelHandlerContext context) {
            // the test reads
        }
    }

    /** What a program asked for before there was a connection is not forgotten. */
    @Tag("lab-full")
    @Test
    void aReadBeforeTheConnectionIsUpCounts() {
        try (Server server = listen()) {
            Bootstrap waiting = bootstrap().option(ChannelOption.AUTO_READ, false);
            RdmaChannel client =
                    (RdmaChannel) done("registering", waiting.register()).channel();
            client.read();
            done("connecting", client.connect(server.address()));
            RdmaChannel peer = server.next();
            peer.writeAndFlush(pattern(peer, 10, 1));
            assertThat(inbox(client).next()).isEqualTo(patternBytes(10, 1));
            peer.writeAndFlush(pattern(peer, 10, 2));
            settle(client, peer);
            assertThat(inbox(client).messages).isEmpty();
            done("closing", peer.close());
            client.read();
            assertThat(inbox(client).next()).isEqualTo(patternBytes(10, 2));
            done("the peer closing", client.closeFuture());
        }
    }

    @Tag("lab-full")
    @Test
    void aHandlerThatAlwaysReadsOnStillEndsItsBatches() {
        List<Integer> batches = new CopyOnWriteArrayList<>();
        ChannelHandler readsOn = new Sharable() {
            private int messages;

            @Override
            public void channelRead(ChannelHandlerContext context, Object message) {
                messages++;
                context.fireChannelRead(message);
                context.read();
            }

            @Override
            public void channelReadComplete(ChannelHandlerContext context) {
                batches.add(messages);
                messages = 0;
                context.fireChannelReadComplete();
            }
        };
        for (boolean autoRead : new boolean[] {false, true}) {
            batches.clear();
            ServerBootstrap serving = new ServerBootstrap()
                    .childOption(ChannelOption.AUTO_READ, autoRead)
                    .childOption(
                            ChannelOption.RECVBUF_ALLOCATOR, new FixedRecvByteBufAllocator(2048).maxMessagesPerRead(4));
            try (Server server = new Server(serving, readsOn)) {
                RdmaChannel client = connect(server);
                RdmaChannel peer = server.next();
                client.eventLoop().execute(() -> {
                    for (int i = 0; i < 40; i++) {
                        client.write(pattern(client, 10, i));
                    }
                    client.flush();
                });
                peer.read();
                for (int i = 0; i < 40; i++) {
                    assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, i));
                }
                Patience.until(
                        "the last batch ends",
                        () -> batches.stream().mapToInt(Integer::intValue).sum() == 40);
                assertThat(batches).allMatch(messages -> messages <= 4);
                done("closing", client.close());
                done("the peer closing", peer.closeFuture());
            }
        }
    }

    @Tag("lab-full")
    @Test
    void stopsReadingInTheMiddleOfABatch() throws Exception {
        AtomicInteger seen = new AtomicInteger();
        ChannelHandler stopsAfterThree = new Sharable() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object message) {
                if (seen.incrementAndGet() == 3) {
                    context.channel().config().setAutoRead(false);
                }
                context.fireChannelRead(message);
            }
        };
        try (Server server = listen(stopsAfterThree)) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            client.eventLoop().execute(() -> {
                for (int i = 0; i < 10; i++) {
                    client.write(pattern(client, 10, i));
                }
                client.flush();
            });
            Patience.until("three messages came", () -> seen.get() >= 3);
            settle(client, peer);
            assertThat(seen).hasValue(3);
            peer.config().setAutoRead(true);
            for (int i = 0; i < 10; i++) {
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, i));
            }
            done("closing", client.close());
        }
    }

    @Test
    void bothSidesMaySendAtFullSpeed() {
        int count = 3000;
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            for (RdmaChannel end : List.of(client, peer)) {
                end.eventLoop().execute(() -> {
                    for (int i = 0; i < count; i++) {
                        end.write(pattern(end, 500, i));
                    }
                    end.flush();
                });
            }
            for (int i = 0; i < count; i++) {
                assertThat(inbox(client).next()).isEqualTo(patternBytes(500, i));
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(500, i));
            }
            done("closing", client.close());
        }
    }

    // ---- closing

    @Test
    void closingSendsWhatWasFlushed() {
        int count = 500;
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            List<ChannelFuture> writes = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                writes.add(client.write(pattern(client, 3000, i)));
            }
            client.flush();
            ChannelFuture closing = client.close();
            assertThat(failure("a write after closing", client.writeAndFlush(pattern(client, 1, 1))))
                    .isInstanceOf(ClosedChannelException.class);
            for (int i = 0; i < count; i++) {
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(3000, i));
                done("a write before closing", writes.get(i));
            }
            done("closing", closing);
            done("closing again", client.close());
            done("the peer closing", peer.closeFuture());
            assertThat(inbox(peer).failures).isEmpty();
        }
    }

    @Tag("lab-full")
    @Test
    void aListenerMayClose() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            client.writeAndFlush(pattern(client, 100, 1)).addListener(ChannelFutureListener.CLOSE);
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(100, 1));
            done("the client closing", client.closeFuture());
            done("the peer closing", peer.closeFuture());
        }
    }

    @Test
    void bothEndsMayCloseAtOnce() {
        for (int i = 0; i < 20; i++) {
            try (Server server = listen()) {
                RdmaChannel client = connect(server);
                RdmaChannel peer = server.next();
                Inbox clientInbox = inbox(client);
                Inbox peerInbox = inbox(peer);
                ChannelFuture one = client.close();
                ChannelFuture other = peer.close();
                done("one closing", one);
                done("the other closing", other);
                assertThat(clientInbox.failures).isEmpty();
                assertThat(peerInbox.failures).isEmpty();
            }
        }
    }

    @Test
    void everythingPendingFailsWithTheFirstCause() throws Exception {
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 8);
        try (Server server = new Server(serving)) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            Inbox inbox = inbox(client);
            List<ChannelFuture> writes = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                writes.add(client.write(pattern(client, 1000, i)));
            }
            client.flush();
            ChannelFuture unflushed = client.write(pattern(client, 10, 1));
            settle(client, peer);
            peer.eventLoop().submit(() -> peer.unsafe().closeForcibly()).sync();
            done("the client closing", client.closeFuture());
            assertThat(inbox.failures).hasSize(1);
            Throwable first = inbox.failures.get(0);
            assertThat(first).isInstanceOf(ConnectionException.class);
            int failed = 0;
            for (ChannelFuture write : writes) {
                assertThat(write.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                        .isTrue();
                if (!write.isSuccess()) {
                    failed++;
                    assertThat(write.cause()).isEqualTo(first);
                }
            }
            assertThat(failed).isPositive();
            assertThat(failure("what was not flushed", unflushed))
                    .isInstanceOf(ClosedChannelException.class)
                    .hasCause(first);
            assertThat(failure("a late write", client.writeAndFlush(pattern(client, 1, 1))))
                    .isInstanceOf(ClosedChannelException.class);
        }
    }

    @Test
    void deregisteringClosesAConnection() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            done("deregistering", client.deregister());
            assertThat(client.isOpen()).isFalse();
            assertThat(client.isRegistered()).isFalse();
            done("the peer closing", peer.closeFuture());
        }
    }

    @Test
    void endingTheLoopsClosesTheirChannels() {
        Server server = listen();
        RdmaChannel client = connect(server);
        RdmaChannel peer = server.next();
        group.shutdownGracefully(0, Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)
                .awaitUninterruptibly(2 * Patience.LIMIT.toMillis());
        assertThat(client.isOpen()).isFalse();
        assertThat(peer.isOpen()).isFalse();
        assertThat(server.channel.isOpen()).isFalse();
    }

    @Tag("lab-full")
    @Test
    void endingLoopsGracefullyClosesTheirChannelsInGoodOrder() {
        List<Function<RdmaEventLoopGroup, Future<?>>> ends = List.of(
                loops -> loops.shutdownGracefully(0, Patience.LIMIT.toSeconds(), TimeUnit.SECONDS),
                loops -> loops.shutdownGracefully(50, Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS),
                loops -> loops.next().shutdownGracefully(0, Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
        for (Function<RdmaEventLoopGroup, Future<?>> end : ends) {
            RdmaEventLoopGroup own = new RdmaEventLoopGroup(provider(), 1);
            try (Server server = listen()) {
                RdmaChannel client = connect(bootstrap().clone(own), server);
                RdmaChannel peer = server.next();
                List<ChannelFuture> writes = new ArrayList<>();
                for (int i = 0; i < 300; i++) {
                    writes.add(client.writeAndFlush(pattern(client, 2000, i)));
                }
                done("ending", end.apply(own));
                for (int i = 0; i < 300; i++) {
                    done("a write", writes.get(i));
                    assertThat(inbox(peer).next()).isEqualTo(patternBytes(2000, i));
                }
                done("the peer closing", peer.closeFuture());
                assertThat(inbox(peer).failures).isEmpty();
                assertThat(inbox(client).failures).isEmpty();
                assertThat(inbox(client).life).endsWith("inactive", "unregistered");
                assertThat(failure(
                                "a channel for a loop that ends",
                                bootstrap().clone(own).connect(server.address())))
                        .isInstanceOf(RejectedExecutionException.class);
            }
        }
    }

    @Test
    void endingTheLoopsOfAServerIsAnOrderlyEndForItsClients() {
        RdmaEventLoopGroup own = new RdmaEventLoopGroup(provider(), 2);
        Server server = new Server(new ServerBootstrap(), own);
        RdmaChannel client = connect(server);
        RdmaChannel peer = server.next();
        Future<?> ended = own.shutdownGracefully(0, Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        done("the client closing", client.closeFuture());
        assertThat(inbox(client).failures).isEmpty();
        done("ending", ended);
        assertThat(inbox(peer).failures).isEmpty();
        assertThat(server.channel.isOpen()).isFalse();
    }

    @Tag("lab-full")
    @Test
    void endingLoopsWaitsNoLongerThanItsTimeout() {
        RdmaEventLoopGroup own = new RdmaEventLoopGroup(provider(), 1);
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(ChannelOption.AUTO_READ, false)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 4);
        try (Server server = new Server(serving)) {
            RdmaChannel client =
                    connect(bootstrap().clone(own).option(RdmaChannelOption.CLOSE_TIMEOUT_MILLIS, 60_000), server);
            RdmaChannel peer = server.next();
            List<ChannelFuture> writes = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                writes.add(client.writeAndFlush(pattern(client, 2000, i)));
            }
            done("ending", own.shutdownGracefully(0, 200, TimeUnit.MILLISECONDS));
            assertThat(client.isOpen()).isFalse();
            for (ChannelFuture write : writes) {
                assertThat(write.isDone()).isTrue();
            }
            assertThat(writes.getLast().isSuccess()).isFalse();
            peer.close();
        }
    }

    // ---- connecting and listening

    @Test
    void saysThatNobodyListens() throws Exception {
        try (UnusedPort port = new UnusedPort(host())) {
            ChannelFuture connecting = bootstrap().connect(host(), port.number());
            assertThat(failure("connecting to nobody", connecting))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining(host() + ":" + port.number());
            Patience.until("the channel is closed", () -> !connecting.channel().isOpen());
            assertThat(connecting.channel().isActive()).isFalse();
        }
    }

    @Tag("lab-full")
    @Test
    void saysThatANameIsUnknown() {
        ChannelFuture connecting = bootstrap().connect("no-such-host.invalid", 1);
        assertThat(failure("connecting to an unknown host", connecting)).hasMessageContaining("no-such-host.invalid");
        RdmaChannel unresolved =
                (RdmaChannel) done("registering", bootstrap().register()).channel();
        assertThat(failure(
                        "connecting to an unresolved address",
                        unresolved.connect(InetSocketAddress.createUnresolved("name", 1))))
                .isInstanceOf(ConnectionException.Unreachable.class)
                .hasMessageContaining("name");
        done("closing", unresolved.close());
    }

    @Tag("lab-full")
    @Test
    void connectsByName() {
        assumeThat(host()).as("a name for the address is known").isEqualTo("127.0.0.1");
        try (Server server = listen()) {
            RdmaChannel client = (RdmaChannel) done(
                            "connecting",
                            bootstrap().connect("localhost", server.address().getPort()))
                    .channel();
            done("closing", client.close());
        }
    }

    @Test
    void aConnectCanBeCancelled() {
        try (Server server = listen()) {
            for (int i = 0; i < 20; i++) {
                ChannelFuture connecting = bootstrap().connect(server.address());
                boolean cancelled = connecting.cancel(false);
                done("the end of the channel", cancelled ? connecting.channel().closeFuture() : connecting);
                if (!cancelled) {
                    done("closing", connecting.channel().close());
                }
            }
        }
    }

    @Test
    void mayBeClosedWhileItConnects() throws Exception {
        try (Server server = listen()) {
            int interrupted = 0;
            for (int i = 0; i < 20; i++) {
                RdmaChannel channel = (RdmaChannel)
                        done("registering", bootstrap().register()).channel();
                ChannelPromise connecting = channel.newPromise();
                if (i == 0) { // one that cannot be up by then
                    channel.eventLoop().execute(() -> {
                        channel.connect(server.address(), connecting);
                        channel.close();
                    });
                    done("closing", channel.closeFuture());
                } else {
                    channel.connect(server.address(), connecting);
                    if (i % 2 == 1) {
                        Patience.turns(3 * i, channel.eventLoop());
                    }
                    done("closing", channel.close());
                }
                assertThat(connecting.awaitUninterruptibly(Patience.LIMIT.toMillis()))
                        .isTrue();
                if (!connecting.isSuccess()) {
                    interrupted++;
                    assertThat(connecting.cause()).isInstanceOf(ClosedChannelException.class);
                }
            }
            assertThat(interrupted).isPositive();
        }
    }

    @Tag("lab-full")
    @Test
    void connectsOnlyOnce() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            assertThat(failure("connecting again", client.connect(server.address())))
                    .isInstanceOf(java.nio.channels.AlreadyConnectedException.class);
            done("a message over the connection that there was", client.writeAndFlush(pattern(client, 10, 1)));
            assertThat(inbox(server.next()).next()).isEqualTo(patternBytes(10, 1));
            assertThat(client.isActive()).isTrue();
            done("closing", client.close());
            assertThat(failure("connecting when closed", client.connect(server.address())))
                    .isInstanceOf(ClosedChannelException.class);
        }
    }

    @Test
    void theLoopsSayHowManyReceivesAreShared() {
        CompletionLoopOptions shallow = new CompletionLoopOptions(0, 256, 64, 48);
        try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(provider(), 1, shallow);
                Server server = new Server(
                        new ServerBootstrap().childOption(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true), loops)) {
            Bootstrap connecting = new Bootstrap()
                    .group(loops)
                    .channel(RdmaChannel.class)
                    .option(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true)
                    .handler(new Inbox(channel -> {}));
            RdmaChannel client = connect(connecting, server);
            RdmaChannel peer = server.next();
            assertThat(client.capabilities().receiveDepth()).isEqualTo(48);
            assertThat(peer.capabilities().receiveDepth()).isEqualTo(48);
            for (int i = 0; i < 200; i++) {
                client.write(pattern(client, 100, i));
            }
            client.flush();
            for (int i = 0; i < 200; i++) {
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(100, i));
            }
            done("closing", client.close());
        }
    }

    @Tag("lab-full")
    @Test
    void cannotBeUsedBeforeItIsConnected() {
        RdmaChannel channel =
                (RdmaChannel) done("registering", bootstrap().register()).channel();
        assertThat(failure("writing", channel.writeAndFlush(Unpooled.wrappedBuffer(new byte[3]))))
                .isInstanceOf(NotYetConnectedException.class);
        assertThatThrownBy(channel::memory).isInstanceOf(NotYetConnectedException.class);
        done("closing", channel.close());
    }

    @Test
    void rejectsStrangersAndSaysWhatToChange() {
        try (Server server = listen();
                Server raw = new Server(new ServerBootstrap().childOption(RdmaChannelOption.FRAMING, Framing.RAW))) {
            ChannelFuture connecting =
                    bootstrap().option(RdmaChannelOption.FRAMING, Framing.RAW).connect(server.address());
            assertThat(failure("a stranger", connecting))
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining(server.address().toString().substring(1))
                    .hasMessageContaining("the server speaks MESSAGE, this channel RAW: use RdmaChannel");
            assertThat(server.accepted).isEmpty();
            assertThat(failure("a stranger", bootstrap().connect(raw.address())))
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining("the server speaks RAW, this channel MESSAGE")
                    .hasMessageContaining("FRAMING");
        }
    }

    @Test
    void saysThatAnAddressIsTaken() {
        try (Server server = listen()) {
            ChannelFuture binding = new ServerBootstrap()
                    .group(group)
                    .channel(RdmaServerChannel.class)
                    .option(ChannelOption.SO_REUSEADDR, false)
                    .childHandler(new Sharable() {})
                    .bind(server.address());
            assertThat(failure("binding twice", binding))
                    .hasMessageContaining(String.valueOf(server.address().getPort()));
            Patience.until("the channel is closed", () -> !binding.channel().isOpen());
        }
    }

    @Tag("lab-full")
    @Test
    void aServerWaitsForReadWithAutoReadOff() throws Exception {
        ServerBootstrap serving =
                new ServerBootstrap().option(ChannelOption.AUTO_READ, false).option(ChannelOption.SO_BACKLOG, 2);
        try (Server server = new Server(serving)) {
            ChannelFuture first = bootstrap().connect(server.address());
            Callable<Integer> waiting = server.channel::waiting0;
            Patience.until(
                    "the first waits",
                    () -> done("asking", server.channel.eventLoop().submit(waiting))
                                    .getNow()
                            == 1);
            assertThat(first.isDone()).isFalse();
            ChannelFuture second = bootstrap().connect(server.address());
            Patience.until(
                    "the second waits",
                    () -> done("asking", server.channel.eventLoop().submit(waiting))
                                    .getNow()
                            == 2);
            ChannelFuture third = bootstrap().connect(server.address());
            assertThat(failure("one more than the backlog", third))
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining("backlog is full");
            server.channel.read();
            done("the first", first);
            done("the second", second);
            done("closing", first.channel().close());
            done("closing", second.channel().close());
        }
    }

    @Tag("lab-full")
    @Test
    void aServersReadHasALimit() {
        ServerBootstrap serving = new ServerBootstrap()
                .option(ChannelOption.AUTO_READ, false)
                .option(ChannelOption.RECVBUF_ALLOCATOR, new ServerChannelRecvByteBufAllocator());
        try (Server server = new Server(serving)) {
            AtomicInteger batches = new AtomicInteger();
            server.channel.pipeline().addFirst(new ChannelInboundHandlerAdapter() {
                @Override
                public void channelReadComplete(ChannelHandlerContext context) {
                    batches.incrementAndGet();
                    context.fireChannelReadComplete();
                }
            });
            List<ChannelFuture> connecting = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                connecting.add(bootstrap().connect(server.address()));
            }
            for (int i = 1; i <= 3; i++) {
                server.channel.read();
                int connected = i;
                Patience.until(
                        "one more is connected",
                        () -> connecting.stream().filter(Future::isSuccess).count() == connected);
                // The batch ends when the connection has been handed to its loop, which may be quicker.
                Patience.until("the batch is complete", () -> batches.get() >= connected);
                assertThat(batches).hasValue(i);
            }
            for (ChannelFuture connect : connecting) {
                done("closing", connect.channel().close());
            }
        }
    }

    @Test
    protected void aServerForgetsPeersThatGaveUp() {
        AtomicInteger children = new AtomicInteger();
        ChannelHandler counts = new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel child) {
                children.incrementAndGet();
            }
        };
        ServerBootstrap serving =
                new ServerBootstrap().option(ChannelOption.AUTO_READ, false).option(ChannelOption.SO_BACKLOG, 2);
        Server server = new Server(serving, counts);
        List<ChannelFuture> impatient = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            impatient.add(bootstrap().connect(server.address()));
        }
        Callable<Integer> waiting = server.channel::waiting0;
        Patience.until(
                "both wait",
                () -> done("asking", server.channel.eventLoop().submit(waiting)).getNow() == 2);
        for (ChannelFuture connecting : impatient) {
            connecting.channel().close();
            failure("connecting to a server that does not read", connecting);
        }
        Patience.until(
                "the server sees that they have gone",
                () -> done("asking", server.channel.eventLoop().submit(waiting)).getNow() == 0);
        ChannelFuture live = bootstrap().connect(server.address());
        server.channel.read();
        done("connecting", live);
        assertThat(children).hasValue(1);
        done("closing", live.channel().close());
        ChannelFuture waits =
                bootstrap().option(ChannelOption.CONNECT_TIMEOUT_MILLIS, 300).connect(server.address());
        failure("connecting to a server that does not read", waits);
        server.close();
    }

    @Test
    void connectionsOutliveTheirServer() {
        Server server = listen();
        RdmaChannel client = connect(server);
        RdmaChannel peer = server.next();
        server.close();
        assertThat(server.channel.isOpen()).isFalse();
        client.writeAndFlush(pattern(client, 10, 1));
        assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, 1));
        done("closing", client.close());
    }

    @Tag("lab-full")
    @Test
    void aHandlersFailureReachesOnlyThePipeline() {
        ChannelHandler fails = new Sharable() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object message) {
                ((ByteBuf) message).release();
                throw new IllegalArgumentException("by design");
            }
        };
        try (Server server = listen(fails)) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            client.writeAndFlush(pattern(client, 10, 1));
            Patience.until("the failure is told", () -> inbox(peer).failures.size() == 1);
            assertThat(inbox(peer).failures.get(0)).hasMessage("by design");
            assertThat(peer.isActive()).isTrue();
            done("closing", client.close());
        }
    }

    // ---- many, and at random

    /** How many connects may be under way at a time, whatever the machine is busy with. */
    protected int connectsAtOnce() {
        return Integer.MAX_VALUE;
    }

    @Test
    protected void carriesManyConnectionsAtOnce() {
        int count = 200;
        ChannelHandler echo = new Sharable() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object message) {
                context.write(message);
            }

            @Override
            public void channelReadComplete(ChannelHandlerContext context) {
                context.flush();
            }
        };
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 16)
                .childOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 2048);
        try (Server server = new Server(serving, echo)) {
            Bootstrap connecting = bootstrap()
                    // All at once take longer the slower the machine is.
                    .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, (int) Patience.LIMIT.toMillis())
                    .option(RdmaChannelOption.RECEIVE_DEPTH, 16)
                    .option(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 2048);
            List<ChannelFuture> connects = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                connects.add(connecting.connect(server.address()));
                if (i >= connectsAtOnce()) {
                    done("connecting", connects.get(i - connectsAtOnce()));
                }
            }
            for (ChannelFuture connect : connects) {
                done("connecting", connect);
            }
            for (int round = 0; round < 5; round++) {
                for (int i = 0; i < count; i++) {
                    Channel channel = connects.get(i).channel();
                    channel.writeAndFlush(pattern(channel, 10 + 17 * i, i + round));
                }
                for (int i = 0; i < count; i++) {
                    assertThat(inbox(connects.get(i).channel()).next()).isEqualTo(patternBytes(10 + 17 * i, i + round));
                }
            }
            for (ChannelFuture connect : connects) {
                connect.channel().close();
            }
            for (ChannelFuture connect : connects) {
                done("closing", connect.channel().closeFuture());
            }
        }
    }

    @Test
    void survivesRandomTraffic() throws Exception {
        long seed = Long.getLong("verbena.seed", System.nanoTime());
        try {
            carryRandomTraffic(seed);
        } catch (Throwable failure) {
            throw new AssertionError("random traffic with -Dverbena.seed=" + seed, failure);
        }
    }

    private void carryRandomTraffic(long seed) throws Exception {
        Random random = new Random(seed);
        int connections = 4;
        int count = 400;
        try (Server server = new Server(new ServerBootstrap().childOption(RdmaChannelOption.RECEIVE_DEPTH, 12))) {
            List<RdmaChannel> ends = new ArrayList<>();
            List<RdmaChannel> others = new ArrayList<>();
            for (int i = 0; i < connections; i++) {
                RdmaChannel client = connect(bootstrap().option(RdmaChannelOption.SEND_DEPTH, 10), server);
                RdmaChannel peer = server.next();
                ends.add(client);
                others.add(peer);
                ends.add(peer);
                others.add(client);
            }
            AtomicInteger completed = new AtomicInteger();
            List<Thread> senders = new ArrayList<>();
            List<int[]> sizes = new ArrayList<>();
            for (int e = 0; e < ends.size(); e++) {
                RdmaChannel end = ends.get(e);
                Random choices = new Random(random.nextLong());
                int[] plan = new int[count];
                for (int i = 0; i < count; i++) {
                    plan[i] = switch (choices.nextInt(10)) {
                        case 0 -> 0;
                        case 1 -> choices.nextInt(200_000);
                        case 2 -> 16_000 + choices.nextInt(1000);
                        default -> choices.nextInt(2000);
                    };
                }
                sizes.add(plan);
                senders.add(Thread.ofVirtual().start(() -> {
                    for (int i = 0; i < count; i++) {
                        ChannelPromise promise = end.newPromise();
                        promise.addListener(done -> {
                            if (done.isSuccess()) {
                                completed.incrementAndGet();
                            }
                        });
                        end.write(pattern(end, plan[i], i), promise);
                        if (choices.nextInt(4) == 0 || i == count - 1) {
                            end.flush();
                        }
                        if (choices.nextInt(10) == 0) {
                            end.config().setAutoRead(!end.config().isAutoRead());
                        }
                    }
                    end.config().setAutoRead(true);
                }));
            }
            for (Thread sender : senders) {
                sender.join();
            }
            for (int e = 0; e < ends.size(); e++) {
                for (int i = 0; i < count; i++) {
                    assertThat(inbox(others.get(e)).next())
                            .as("seed %d, end %d, message %d", seed, e, i)
                            .isEqualTo(patternBytes(sizes.get(e)[i], i));
                }
            }
            Patience.until("every write has succeeded", () -> completed.get() == count * connections * 2);
            for (RdmaChannel end : ends) {
                end.close();
            }
            for (RdmaChannel end : ends) {
                done("closing", end.closeFuture());
            }
        }
    }

    /** A handler for several pipelines. */
    @ChannelHandler.Sharable
    private static class Sharable extends ChannelInboundHandlerAdapter {}
}
