package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelOption;
import io.netty.util.concurrent.Future;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.protocol.Frame;
import org.verbena.transport.spi.Patience;

/** Options at the ends of their ranges, and channels that are closed while several threads use them. */
class SoftOptionsTest extends ApiSuite {
    private static final int FRAME_HEADER_BYTES = 16;
    private static final int[] SIZES = {0, 1, 40, 1000, 20_000, 300_000};

    @Override
    protected String provider() {
        return "soft";
    }

    @ParameterizedTest
    @CsvSource({
        "SEND_DEPTH, 3",
        "SEND_DEPTH, 4096",
        "RECEIVE_DEPTH, -1",
        "RECEIVE_DEPTH, 3",
        "RECEIVE_DEPTH, 4",
        "RECEIVE_DEPTH, 2048",
        "RECEIVE_BUFFER_BYTES, -1",
        "RECEIVE_BUFFER_BYTES, 64",
        "RECEIVE_BUFFER_BYTES, 65",
        "RECEIVE_BUFFER_BYTES, 1048576",
        "MAX_MESSAGE_BYTES, 300000",
        "MAX_MESSAGE_BYTES, 2147483647",
        "RENDEZVOUS_THRESHOLD_BYTES, 0",
        "RENDEZVOUS_THRESHOLD_BYTES, 2147483647",
        "MAX_RENDEZVOUS, 1",
        "MAX_RENDEZVOUS, 1024",
        "MAX_INLINE_BYTES, 0",
        "MAX_INLINE_BYTES, 4096",
        "MAX_INLINE_BYTES, 65536",
        "REGISTER_THRESHOLD_BYTES, 0",
        "REGISTER_THRESHOLD_BYTES, 2147483647",
        "MAX_SGES, -1",
        "MAX_SGES, 2",
        "MAX_SGES, 256",
        "READ_DEPTH, 0",
        "READ_DEPTH, 1",
        "READ_DEPTH, 128",
        "RETRY_COUNT, 0",
        "RETRY_COUNT, 7",
        "RNR_RETRY_COUNT, 0",
        "RNR_RETRY_COUNT, 7",
        "CLOSE_TIMEOUT_MILLIS, 2147483647",
        // Not the least: on a busy machine a loop may get no processor for as long as a peer then waits.
        "KEEP_ALIVE_MILLIS, 10000",
        "KEEP_ALIVE_MILLIS, 2147483647",
        "IP_TOS, 0",
        "IP_TOS, 255",
    })
    void messagesPassAtTheLimitsOfAnOption(String name, int value) {
        ChannelOption<Integer> option =
                name.equals("IP_TOS") ? ChannelOption.IP_TOS : ChannelOption.valueOf(RdmaChannelOption.class, name);
        ServerBootstrap serving = new ServerBootstrap().childOption(option, value);
        try (Server server = new Server(serving)) {
            RdmaChannel client = connect(bootstrap().option(option, value), server);
            RdmaChannel peer = server.next();
            assertThat(client.config().getOption(option)).isEqualTo(value);
            assertThat(peer.config().getOption(option)).isEqualTo(value);
            for (int round = 0; round < 3; round++) {
                for (int size : SIZES) {
                    client.write(pattern(client, size, size + round));
                    peer.write(pattern(peer, size, round));
                }
                client.flush();
                peer.flush();
                for (int size : SIZES) {
                    assertThat(inbox(peer).next())
                            .as("%d bytes to the server", size)
                            .isEqualTo(patternBytes(size, size + round));
                    assertThat(inbox(client).next())
                            .as("%d bytes to the client", size)
                            .isEqualTo(patternBytes(size, round));
                }
            }
            done("closing", client.close());
            done("the peer closing", peer.closeFuture());
            assertThat(inbox(client).failures).isEmpty();
            assertThat(inbox(peer).failures).isEmpty();
        }
    }

    @Test
    void byDefaultReceivesAreOfTheSizeThatMeasuredBest() {
        int payloadBytes = (63 << 10) - FRAME_HEADER_BYTES;
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            AtomicInteger messageFrames = new AtomicInteger();
            client.eventLoop()
                    .execute(() -> client.connection().observe0(new Frame.Listener() {
                        @Override
                        public void onFrameSent(Frame frame) {
                            if (frame.messageBytes() > 0) {
                                messageFrames.incrementAndGet();
                            }
                        }

                        @Override
                        public void onFrameReceived(Frame frame) {}
                    }));
            for (int frames = 1; frames <= 2; frames++) {
                int size = frames == 1 ? payloadBytes : payloadBytes + 1;
                messageFrames.set(0);
                done("sending", client.writeAndFlush(pattern(client, size, frames)));
                assertThat(inbox(peer).next()).isEqualTo(patternBytes(size, frames));
                assertThat(messageFrames).hasValue(frames);
            }
        }
    }

    @Test
    void byDefaultLongMessagesAreReadWhereThePeersReceivesAreSmall() {
        Map<ServerBootstrap, Integer> rendezvous = Map.of(
                new ServerBootstrap(),
                0,
                new ServerBootstrap().childOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 16 << 10),
                1,
                new ServerBootstrap().childOption(RdmaChannelOption.SHARED_RECEIVE_QUEUE, true),
                1);
        rendezvous.forEach((serving, expected) -> {
            try (Server server = new Server(serving)) {
                RdmaChannel client = connect(server);
                RdmaChannel peer = server.next();
                for (int size : new int[] {1 << 20, (1 << 20) + 1}) {
                    done("sending", client.writeAndFlush(pattern(client, size, size)));
                    assertThat(inbox(peer).next()).isEqualTo(patternBytes(size, size));
                }
                assertThat(client.statistics().rendezvousSent())
                        .as("%s", serving)
                        .isEqualTo((long) expected);
            }
        });
    }

    @ParameterizedTest
    @CsvSource({"RECEIVE_DEPTH, 2, 3", "RECEIVE_BUFFER_BYTES, 63, 64", "SEND_DEPTH, 2, 3", "MAX_SGES, 1, 2"})
    void saysWhatIsTooLittleForMessages(String name, int value, int min) {
        ChannelOption<Integer> option = ChannelOption.valueOf(RdmaChannelOption.class, name);
        try (Server server = listen()) {
            assertThat(failure("connecting", bootstrap().option(option, value).connect(server.address())))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContainingAll(name, String.valueOf(value), String.valueOf(min));
        }
    }

    @Test
    void readsQueueWhateverTheDepths() {
        for (int[] depths : new int[][] {{3, 1}, {3, 128}, {512, 1}}) {
            ServerBootstrap serving = new ServerBootstrap().childOption(RdmaChannelOption.READ_DEPTH, depths[1]);
            try (Server server = new Server(serving);
                    Arena arena = Arena.ofShared()) {
                RdmaChannel client = connect(
                        bootstrap()
                                .option(RdmaChannelOption.SEND_DEPTH, depths[0])
                                .option(RdmaChannelOption.READ_DEPTH, depths[1]),
                        server);
                RdmaChannel peer = server.next();
                RegisteredMemory table = peer.memory()
                        .register(
                                arena.allocate(4096, 8), Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_ATOMIC);
                List<Future<?>> all = new ArrayList<>();
                List<ByteBuf> sinks = new ArrayList<>();
                for (int i = 0; i < 300; i++) {
                    ByteBuf sink = client.alloc().buffer(64, 64);
                    sinks.add(sink);
                    all.add(client.read(table.remote(), 64, sink));
                    all.add(client.fetchAndAdd(table.remote(), 0, 1));
                }
                for (Future<?> one : all) {
                    done("a read or an addition with depths " + depths[0] + ", " + depths[1], one);
                }
                assertThat(done("the sum", client.fetchAndAdd(table.remote(), 0, 0))
                                .getNow())
                        .isEqualTo(300L);
                sinks.forEach(sink -> {
                    assertThat(sink.readableBytes()).isEqualTo(64);
                    sink.release();
                });
                done("closing", client.close());
                table.close();
            }
        }
    }

    @Test
    void readsFailAtOnceWhereTheDepthIsNone() {
        ServerBootstrap serving = new ServerBootstrap().childOption(RdmaChannelOption.READ_DEPTH, 0);
        try (Server server = new Server(serving);
                Arena arena = Arena.ofShared()) {
            RdmaChannel client = connect(bootstrap().option(RdmaChannelOption.READ_DEPTH, 0), server);
            RdmaChannel peer = server.next();
            RegisteredMemory table = peer.memory().register(arena.allocate(64, 8), Access.REMOTE_READ);
            ByteBuf sink = client.alloc().buffer(64, 64);
            Throwable refusal = failure("a read", client.read(table.remote(), 0, sink));
            sink.release();
            assertThat(refusal)
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("read depth of 0");
            client.writeAndFlush(pattern(client, 10, 1));
            assertThat(inbox(peer).next()).as("the connection goes on").isEqualTo(patternBytes(10, 1));
            done("closing", client.close());
            table.close();
        }
    }

    /**
     * Several threads send, read and add while another one closes: every future has one outcome, and everything is
     * given back.
     */
    @RepeatedTest(10)
    void everythingHasOneOutcomeWhenClosedWhilePosting() throws Exception {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        AtomicInteger started = new AtomicInteger();
        AtomicInteger finished = new AtomicInteger();
        AtomicBoolean over = new AtomicBoolean();
        Semaphore window = new Semaphore(500);
        List<Throwable> surprises = Collections.synchronizedList(new ArrayList<>());
        var causes = ConcurrentHashMap.<Class<?>>newKeySet();
        try (Server server = listen();
                Arena arena = Arena.ofShared()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            RegisteredMemory table = peer.memory()
                    .register(
                            arena.allocate(4096, 8),
                            Access.LOCAL_WRITE,
                            Access.REMOTE_READ,
                            Access.REMOTE_WRITE,
                            Access.REMOTE_ATOMIC);
            List<Thread> threads = new ArrayList<>();
            for (int t = 0; t < 3; t++) {
                int kind = t;
                Random own = new Random(seed + t);
                threads.add(Thread.ofPlatform().start(() -> {
                    try {
                        while (!over.get()) {
                            window.acquire();
                            ByteBuf buffer = pattern(client, 1 + own.nextInt(100_000), kind);
                            started.incrementAndGet();
                            Future<?> future;
                            switch (kind) {
                                case 0 -> future = client.writeAndFlush(buffer);
                                case 1 -> {
                                    future = client.write(table.remote(), 0, buffer.slice(0, 1));
                                    buffer.release();
                                }
                                default -> {
                                    buffer.release();
                                    future = client.fetchAndAdd(table.remote(), 0, 1);
                                }
                            }
                            future.addListener(done -> {
                                finished.incrementAndGet();
                                window.release();
                                if (!done.isSuccess()) {
                                    causes.add(done.cause().getClass());
                                }
                            });
                        }
                    } catch (Throwable surprise) {
                        surprises.add(surprise);
                    }
                }));
            }
            Patience.until("all have begun", () -> started.get() > 10);
            int enough = random.nextInt(500);
            Patience.until("some have ended", () -> finished.get() >= enough);
            RdmaChannel closing = random.nextBoolean() ? client : peer;
            done("closing with seed " + seed, closing.close());
            done("the other end", (closing == client ? peer : client).closeFuture());
            Patience.until("what follows fails", () -> !causes.isEmpty() || !surprises.isEmpty());
            over.set(true);
            for (Thread thread : threads) {
                thread.join();
            }
            Patience.until("each of them has an outcome, seed " + seed, () -> finished.get() == started.get());
            assertThat(surprises).as("seed %d", seed).isEmpty();
            table.close();
        }
    }

    @Test
    @SuppressWarnings("deprecation") // Netty's plain way to say it; the other one is an allocator that is not used here
    void aReadGivesNoMoreMessagesThanTheOptionSays() throws Exception {
        for (int max : new int[] {1, 3, 40}) {
            ServerBootstrap serving = new ServerBootstrap()
                    .childOption(RdmaChannelOption.RECEIVE_DEPTH, 64)
                    .childOption(ChannelOption.AUTO_READ, false)
                    .childOption(ChannelOption.MAX_MESSAGES_PER_READ, max);
            try (Server server = new Server(serving)) {
                RdmaChannel client = connect(server);
                RdmaChannel peer = server.next();
                long sent = client.statistics().framesSent();
                long received = peer.statistics().framesReceived();
                for (int i = 0; i < 59; i++) {
                    client.write(pattern(client, 10, i));
                }
                done("sending", client.writeAndFlush(pattern(client, 10, 59)));
                long frames = client.statistics().framesSent() - sent;
                Patience.until("all have arrived", () -> peer.statistics().framesReceived() - received >= frames);
                settle(client, peer);
                int seen = 0;
                int largest = 0;
                while (seen < 60) {
                    int before = inbox(peer).readCompletes.get();
                    peer.read();
                    Patience.until(
                            "a read is complete",
                            () -> inbox(peer).readCompletes.get() == before + 1);
                    Patience.turns(peer.eventLoop());
                    int now = inbox(peer).messages.size();
                    largest = Math.max(largest, now - seen);
                    seen = now;
                }
                assertThat(largest).as("of %d messages a read", max).isEqualTo(max);
                for (int i = 0; i < 60; i++) {
                    assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, i));
                }
                done("closing", client.close());
            }
        }
    }

    @Test
    void refusesOptionsThatAreNull() {
        RdmaChannel channel = new RdmaChannel();
        assertThatThrownBy(() -> channel.config().setOption(RdmaChannelOption.SEND_DEPTH, null))
                .isInstanceOf(NullPointerException.class);
        assertThatThrownBy(() -> channel.config().setOption(RdmaChannelOption.FRAMING, null))
                .isInstanceOf(NullPointerException.class);
        channel.unsafe().closeForcibly();
    }
}
