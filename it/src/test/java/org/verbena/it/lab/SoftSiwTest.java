package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.soft.SoftOptions;
import org.verbena.transport.soft.SoftProvider;
import org.verbena.transport.spi.CaptureProbe;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.transport.verbs.VerbsProvider;

/**
 * The software provider with Linux's siw as its peer: rping of rdma-core in both roles, and the verbs provider on the
 * siw device in both roles. The two ends are in one guest; soft is an ordinary TCP program there.
 *
 * <p>The largest ping that rping takes is 65535 bytes; a whole 64 KiB and more go between the providers.
 */
@Tag("lab")
@Timeout(350)
class SoftSiwTest {
    private static final int PORT = 7340;
    private static final int ROUNDS = Integer.getInteger("lab.rpingRounds", 100);
    private static final int FULL_ROUNDS = 1000;
    private static final InetSocketAddress ADDRESS = new InetSocketAddress(LabDevice.SIW.address(), PORT);
    private static final EndpointOptions ONE_READ = EndpointOptions.DEFAULTS.with(o -> {
        o.sendDepth = 16;
        o.receiveDepth = 16;
        o.maxSges = 1;
        o.maxInlineBytes = 0;
        o.readDepth = 1;
    });

    private static SoftProvider soft(boolean crc) {
        return new SoftProvider(SoftOptions.DEFAULTS.with(o -> o.crc = crc));
    }

    // ---- rping

    @ParameterizedTest
    @CsvSource({"64, false", "65535, true"})
    void pingsTheServerOfRdmaCore(int size, boolean crc) throws Exception {
        ping(size, crc, ROUNDS);
    }

    @ParameterizedTest
    @CsvSource({"64, true", "65535, false"})
    void servesTheClientOfRdmaCore(int size, boolean crc) throws Exception {
        serve(size, crc, ROUNDS);
    }

    @Tag("lab-full")
    @ParameterizedTest
    @CsvSource({"64, false", "4096, false", "65535, false", "64, true", "4096, true", "65535, true"})
    void pingsAndServesRdmaCoreAThousandTimes(int size, boolean crc) throws Exception {
        ping(size, crc, FULL_ROUNDS);
        serve(size, crc, FULL_ROUNDS);
    }

    private static void ping(int size, boolean crc, int rounds) throws Exception {
        try (PeerProgram server = PeerProgram.start(
                        "rping",
                        "-s",
                        "-a",
                        LabDevice.SIW.address(),
                        "-p",
                        "" + PORT,
                        "-C",
                        "" + rounds,
                        "-V",
                        "-S",
                        "" + size);
                Loop loop = new Loop(soft(crc))) {
            server.awaitListening(PORT);
            Rping client = new Rping(loop, size, rounds, true);
            Endpoint unused = loop.provider.connect(loop.loop, ADDRESS, ONE_READ, client);
            assertThat(client.await()).as("rounds").isEqualTo(rounds);
            assertThat(server.awaitExit(Patience.LIMIT)).isZero();
        }
    }

    private static void serve(int size, boolean crc, int rounds) throws Exception {
        try (Loop loop = new Loop(soft(crc))) {
            Rping server = new Rping(loop, size, rounds, false);
            Listener listener = listen(loop, server);
            try (PeerProgram client = PeerProgram.start(
                    "rping",
                    "-c",
                    "-a",
                    LabDevice.SIW.address(),
                    "-p",
                    "" + PORT,
                    "-C",
                    "" + rounds,
                    "-V",
                    "-S",
                    "" + size)) {
                assertThat(client.awaitExit(Patience.LIMIT)).as(client.output()).isZero();
                assertThat(server.await()).as("rounds").isEqualTo(rounds);
            }
            listener.close();
        }
    }

    /**
     * The client of rdma-core validates nothing here: its first advertisement is answered with a write to a wrong key.
     */
    @Test
    void hearsThatTheClientOfRdmaCoreRefusesAKey() throws Exception {
        try (Loop loop = new Loop(soft(false))) {
            Rping server = new Rping(loop, 64, 10, false).spoiled();
            Listener listener = listen(loop, server);
            try (PeerProgram client = PeerProgram.start(
                    "rping", "-c", "-a", LabDevice.SIW.address(), "-p", "" + PORT, "-C", "10", "-S", "64")) {
                assertThatThrownBy(server::await)
                        .hasCauseInstanceOf(WorkCompletionException.class)
                        .cause()
                        .satisfies(cause -> assertThat(((WorkCompletionException) cause).status())
                                .isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR));
                client.awaitExit(Patience.LIMIT);
            }
            listener.close();
        }
    }

    /** The server of rdma-core reads from the key that it was told: a wrong one, which this side refuses. */
    @Test
    void refusesTheServerOfRdmaCoreAWrongKey() throws Exception {
        try (PeerProgram server = PeerProgram.start(
                        "rping", "-s", "-a", LabDevice.SIW.address(), "-p", "" + PORT, "-C", "10", "-S", "64");
                Loop loop = new Loop(soft(false))) {
            server.awaitListening(PORT);
            Rping client = new Rping(loop, 64, 10, true).spoiled();
            Endpoint unused = loop.provider.connect(loop.loop, ADDRESS, ONE_READ, client);
            assertThatThrownBy(client::await).cause().hasMessageContaining("invalid STag");
            // siw tells the program of the flushed read by the disconnect alone, and the program's status is 0 all the
            // same.
            server.awaitExit(Patience.LIMIT);
            assertThat(server.output()).contains("DISCONNECT EVENT", "wait for RDMA_READ_COMPLETE state");
        }
    }

    private static Listener listen(Loop loop, Rping server) {
        RecordingListenerHandler handler = new RecordingListenerHandler(loop.loop);
        handler.whenRequested(connection -> {
            Endpoint unused = connection.accept(loop.loop, ONE_READ, server);
        });
        Listener listener = loop.provider.listen(loop.loop, ADDRESS, ListenOptions.DEFAULTS, handler);
        handler.awaitListening();
        return listener;
    }

    // ---- the verbs provider

    @ParameterizedTest
    @CsvSource("true, true")
    void movesAllSizesBetweenSoftAndVerbs(boolean softConnects, boolean crc) {
        moveAllSizes(softConnects, crc);
    }

    @Tag("lab-full")
    @ParameterizedTest
    @CsvSource({"true, false", "false, true", "false, false"})
    void movesAllSizesTheOtherWayRound(boolean softConnects, boolean crc) {
        moveAllSizes(softConnects, crc);
    }

    private static void moveAllSizes(boolean softConnects, boolean crc) {
        try (Loop soft = new Loop(soft(crc));
                Loop verbs = new Loop(new VerbsProvider());
                Pair pair = softConnects ? new Pair(soft, verbs) : new Pair(verbs, soft)) {
            EndpointCapabilities capabilities = pair.end(soft).awaitPrepared().capabilities();
            assertThat(capabilities.atomics()).isFalse();
            assertThat(capabilities.immediateData()).isFalse();
            for (int size : new int[] {0, 1, 64, 1447, 4096, 65_536, 1 << 20, 16 << 20}) {
                pair.echo(size);
                pair.writeAndRead(size);
            }
            pair.readFewBytesOfTwoPages();
        }
    }

    @ParameterizedTest
    @CsvSource({"true, true", "true, false", "false, true", "false, false"})
    void hearsThatTheOtherRefusesAccess(boolean softTrespasses, boolean reads) {
        try (Loop soft = new Loop(soft(false));
                Loop verbs = new Loop(new VerbsProvider());
                Pair pair = softTrespasses ? new Pair(soft, verbs) : new Pair(verbs, soft)) {
            pair.echo(8);
            RegisteredMemory local = pair.region(pair.client, 64);
            WorkRequest request = new WorkRequest(1);
            if (reads) {
                request.asRead(77, 0, 0x1000, 0x12345600);
            } else {
                request.asWrite(77, 0, 0x1000, 0x12345600);
            }
            request.buffers().add(local, 0, 64);
            pair.client.send(request);
            WorkStatus status = pair.client.awaitSend().status();
            Throwable atClient = pair.client.awaitDisconnected();
            Throwable atServer = pair.server.awaitDisconnected();
            if (!reads) {
                // TCP has taken it.
                assertThat(status).isEqualTo(WorkStatus.SUCCESS);
            }
            if (softTrespasses) {
                if (reads) {
                    assertThat(status).isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR);
                }
                assertThat(atClient)
                        .isInstanceOfSatisfying(
                                WorkCompletionException.class,
                                cause -> assertThat(cause.status()).isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR));
            } else {
                if (reads) {
                    // siw flushes the read and tells no more; of a write it tells nothing.
                    assertThat(status).isEqualTo(WorkStatus.FLUSHED);
                    assertThat(atClient).isNotNull();
                }
                assertThat(atServer).isNotNull().hasMessageContaining("invalid STag");
            }
        }
    }

    /** Messages in one piece and in several. */
    @ParameterizedTest
    @CsvSource({"soft, verbs", "verbs, soft"})
    void echoesMessagesOfTheOther(String clientProvider, String serverProvider) throws Exception {
        try (RdmaServer server = RdmaServer.builder()
                        .provider(serverProvider)
                        .bind(ADDRESS.getHostString(), PORT, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client =
                        RdmaClient.builder().provider(clientProvider).connect(ADDRESS.getHostString(), PORT)) {
            assertThat(client.provider()).isEqualTo(clientProvider);
            for (int size : new int[] {0, 1, 64, 4096, 65_536, 1 << 20, 4 << 20}) {
                byte[] sent = new byte[size];
                new Random(size).nextBytes(sent);
                for (int i = 0; i < 3; i++) {
                    ByteBuf reply = client.request(Unpooled.wrappedBuffer(sent))
                            .get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
                    assertThat(ByteBufUtil.getBytes(reply)).isEqualTo(sent);
                    reply.release();
                }
            }
            assertThat(server.connections().size()).isEqualTo(1);
        }
    }

    // ---- Wireshark

    @ParameterizedTest
    @CsvSource("true, true")
    void isUnderstoodByWireshark(boolean softConnects, boolean crc) throws IOException {
        capture(softConnects, crc);
    }

    @Tag("lab-full")
    @ParameterizedTest
    @CsvSource({"true, false", "false, true", "false, false"})
    void isUnderstoodByWiresharkTheOtherWayRound(boolean softConnects, boolean crc) throws IOException {
        capture(softConnects, crc);
    }

    private static void capture(boolean softConnects, boolean crc) throws IOException {
        assumeTrue(
                Files.isExecutable(Path.of("/usr/bin/dumpcap")) && Files.isExecutable(Path.of("/usr/bin/tshark")),
                "no tshark here (Debian package tshark)");
        Path capture = Files.createTempFile("siw", ".pcapng");
        // Every kind of message between soft and siw, of one segment and of several, in both directions, and a refusal.
        int[] sizes = {0, 1, 2, 3, 64, 1447, 65_536, 150_000};
        try (PeerProgram capturing = PeerProgram.start(
                "dumpcap",
                "-q",
                "-i",
                "lo",
                "-s",
                "0",
                "-B",
                "64",
                "-f",
                "tcp port " + PORT,
                "-w",
                capture.toString())) {
            capturing.awaitLine("^File: ", Patience.LIMIT);
            CaptureProbe.awaitSeen(capture, ADDRESS); // it opens its file a moment before it listens
            try (Loop soft = new Loop(soft(crc));
                    Loop verbs = new Loop(new VerbsProvider());
                    Pair pair = softConnects ? new Pair(soft, verbs) : new Pair(verbs, soft)) {
                for (int size : sizes) {
                    pair.echo(size);
                    pair.writeAndRead(size);
                }
                RegisteredMemory sink = pair.region(pair.client, 64);
                WorkRequest read = new WorkRequest(1).asRead(77, 0, 0x1000, 0x12345600);
                read.buffers().add(sink, 0, 64);
                pair.client.send(read);
                assertThat(pair.client.awaitSend().status()).isNotEqualTo(WorkStatus.SUCCESS);
                pair.client.awaitDisconnected();
                pair.server.awaitDisconnected();
            }
            CaptureProbe.awaitSeen(capture, ADDRESS);
            PeerProgram.run(Patience.LIMIT, "kill", "-INT", "" + capturing.pid());
            capturing.awaitExit(Patience.LIMIT);
            assertThat(capturing.output()).containsPattern("dropped on interface '.*': [0-9]+/0 ");
        }
        String[] read = {
            "tshark",
            "-V",
            "-O",
            "iwarp_mpa,iwarp_ddp_rdmap",
            "--disable-protocol",
            "rpcordma",
            "-r",
            capture.toString()
        };
        List<String> lines = PeerProgram.run(Patience.LIMIT, read).lines().toList();
        Files.delete(capture);
        // A send each way; a write, a read and its response each way unless there is nothing to read.
        long messages = 2L * sizes.length + 2L * sizes.length + 4L * (sizes.length - 1);
        assertThat(lines.stream().filter(line -> line.contains("= OpCode: ")).count())
                .as("segments seen")
                .isGreaterThanOrEqualTo(messages);
        assertThat(lines).noneMatch(line -> line.contains("Malformed") || line.contains("Bad CRC"));
        assertThat(lines).anyMatch(line -> line.contains("Request frame header"));
        assertThat(lines).anyMatch(line -> line.contains("Reply frame header"));
        assertThat(lines).anyMatch(line -> line.contains("OpCode: Terminate"));
        if (crc) {
            assertThat(lines.stream()
                            .filter(line -> line.contains("Good CRC32"))
                            .count())
                    .as("CRCs that fit")
                    .isGreaterThanOrEqualTo(messages);
        }
    }

    /** A provider with one loop, and memory for as long as that lives. */
    private static final class Loop implements AutoCloseable {
        private final RdmaProvider provider;
        private final MultiThreadIoEventLoopGroup group;
        private final IoEventLoop loop;
        private final Arena arena = Arena.ofShared();

        Loop(RdmaProvider provider) {
            assertThat(provider.unavailabilityCause()).isNull();
            this.provider = provider;
            group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
            loop = group.next();
        }

        @Override
        public void close() {
            group.shutdownGracefully(0, 2, TimeUnit.SECONDS)
                    .awaitUninterruptibly(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
            arena.close();
        }
    }

    /** Two ends of one connection, each of another provider. */
    private static final class Pair implements AutoCloseable {
        private final RecordingEndpointHandler client;
        private final RecordingEndpointHandler server;
        private final Loop clientLoop;
        private final Listener listener;
        private final RecordingListenerHandler listening;
        private final List<RegisteredMemory> regions = new java.util.concurrent.CopyOnWriteArrayList<>();
        private final Arena arena = Arena.ofShared();

        Pair(Loop clientLoop, Loop serverLoop) {
            this.clientLoop = clientLoop;
            client = new RecordingEndpointHandler("client", clientLoop.loop);
            server = new RecordingEndpointHandler("server", serverLoop.loop);
            listening = new RecordingListenerHandler(serverLoop.loop);
            listener = serverLoop.provider.listen(serverLoop.loop, ADDRESS, ListenOptions.DEFAULTS, listening);
            listening.awaitListening();
            Endpoint unused = clientLoop.provider.connect(
                    clientLoop.loop,
                    ADDRESS,
                    EndpointOptions.DEFAULTS.with(o -> o.privateData = new byte[] {1, 2, 3}),
                    client);
            var request = listening.awaitRequest();
            assertThat(request.privateData()).startsWith(1, 2, 3);
            Endpoint unusedToo = request.accept(
                    serverLoop.loop, EndpointOptions.DEFAULTS.with(o -> o.privateData = new byte[] {4, 5}), server);
            assertThat(client.awaitConnected()).startsWith(4, 5);
            server.awaitConnected();
        }

        RecordingEndpointHandler end(Loop loop) {
            return loop == clientLoop ? client : server;
        }

        RegisteredMemory region(RecordingEndpointHandler owner, int bytes) {
            RegisteredMemory region = owner.awaitPrepared()
                    .memoryDomain()
                    .register(
                            arena.allocate(bytes, 4096),
                            Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE, Access.REMOTE_READ));
            regions.add(region);
            return region;
        }

        private static void fill(RegisteredMemory region) {
            byte[] bytes = new byte[(int) region.lengthBytes()];
            new Random(bytes.length).nextBytes(bytes);
            MemorySegment.copy(bytes, 0, region.segment(), ValueLayout.JAVA_BYTE, 0, bytes.length);
        }

        private static void assertSame(RegisteredMemory actual, RegisteredMemory expected, int size) {
            assertThat(MemorySegment.mismatch(actual.segment(), 0, size, expected.segment(), 0, size))
                    .as("first byte that differs")
                    .isEqualTo(-1);
        }

        void echo(int size) {
            RegisteredMemory source = region(client, size + 1);
            RegisteredMemory there = region(server, size + 1);
            RegisteredMemory back = region(client, size + 1);
            fill(source);
            server.receive(1, there, 0, size);
            client.receive(2, back, 0, size);
            WorkRequest send = new WorkRequest(1).asSend(3, 0);
            send.buffers().add(source, 0, size);
            client.send(send);
            assertThat(server.awaitReceive().lengthBytes()).isEqualTo(size);
            send.asSend(4, 0).buffers().add(there, 0, size);
            server.send(send);
            RecordingEndpointHandler.Completion echo = client.awaitReceive();
            assertThat(echo.status()).isEqualTo(WorkStatus.SUCCESS);
            assertThat(echo.lengthBytes()).isEqualTo(size);
            assertThat(client.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
            assertThat(server.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
            assertSame(back, source, size);
        }

        void writeAndRead(int size) {
            for (RecordingEndpointHandler side : List.of(client, server)) {
                RecordingEndpointHandler peer = side == client ? server : client;
                RegisteredMemory source = region(side, size + 1);
                RegisteredMemory table = region(peer, size + 1);
                RegisteredMemory back = region(side, size + 1);
                fill(source);
                WorkRequest request = new WorkRequest(1);
                request.asWrite(5, 0, table.address(), table.remoteKey())
                        .buffers()
                        .add(source, 0, size);
                side.send(request);
                assertThat(side.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
                if (size > 0) {
                    request.asRead(6, 0, table.address(), table.remoteKey())
                            .buffers()
                            .add(back, 0, size);
                    side.send(request);
                    assertThat(side.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
                    assertSame(back, source, size);
                }
            }
        }

        void readFewBytesOfTwoPages() {
            for (RecordingEndpointHandler side : List.of(client, server)) {
                RecordingEndpointHandler peer = side == client ? server : client;
                RegisteredMemory table = region(peer, 8192);
                RegisteredMemory back = region(side, 64);
                fill(table);
                for (int size = 2; size <= 40; size += 3) {
                    for (int before = 1; before < size; before += 5) {
                        WorkRequest request = new WorkRequest(1);
                        request.asRead(6, 0, table.address() + 4096 - before, table.remoteKey())
                                .buffers()
                                .add(back, 0, size);
                        side.send(request);
                        assertThat(side.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
                        assertThat(back.segment()
                                        .asSlice(0, size)
                                        .mismatch(table.segment().asSlice(4096 - before, size)))
                                .as("%d bytes, %d of them on the first page", size, before)
                                .isEqualTo(-1);
                    }
                }
            }
        }

        @Override
        public void close() {
            for (RecordingEndpointHandler side : List.of(client, server)) {
                side.awaitPrepared().disconnect();
                side.awaitDisconnected();
                side.assertNoViolations();
            }
            listener.close();
            listening.awaitClosed();
            regions.forEach(RegisteredMemory::close);
            arena.close();
        }
    }

    /**
     * rping's protocol. The client tells where its source is, and the server reads it; the client tells where its sink
     * is, and the server writes the same there; 16 bytes each way say so:
     *
     * <pre>{@code | address (64 bit) | key (32) | size (32) | big-endian}</pre>
     */
    private static final class Rping implements EndpointHandler {
        private static final int INFO_BYTES = 16;
        private static final ValueLayout.OfLong ADDRESS_WORD =
                ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
        private static final ValueLayout.OfInt KEY_WORD =
                ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

        private final Loop loop;
        private final int size;
        private final int rounds;
        private final boolean client;
        private final CompletableFuture<Integer> done = new CompletableFuture<>();
        private final WorkRequest request = new WorkRequest(1);
        private final ScatterGatherList list = new ScatterGatherList(1);
        private int round;
        private boolean sinkTold;
        private int spoil;
        private @Nullable RegisteredMemory source;
        private @Nullable RegisteredMemory sink;
        private @Nullable RegisteredMemory infos;

        Rping(Loop loop, int size, int rounds, boolean client) {
            this.loop = loop;
            this.size = size;
            this.rounds = rounds;
            this.client = client;
        }

        /** Tells wrong keys, or uses them. */
        Rping spoiled() {
            spoil = 0x5a5a5a5a;
            return this;
        }

        int await() throws InterruptedException, ExecutionException, TimeoutException {
            return done.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }

        @Override
        public void onPrepared(Endpoint endpoint) {
            Set<Access> all = Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE, Access.REMOTE_READ);
            source = endpoint.memoryDomain().register(loop.arena.allocate(size), all);
            sink = endpoint.memoryDomain().register(loop.arena.allocate(size), all);
            infos = endpoint.memoryDomain().register(loop.arena.allocate(2 * INFO_BYTES), all);
            receive(endpoint);
        }

        private void receive(Endpoint endpoint) {
            assertThat(endpoint.postReceive(0, list.clear().add(infos, 0, INFO_BYTES)))
                    .isTrue();
        }

        @Override
        public void onConnected(Endpoint endpoint, byte[] privateData) {
            if (client) {
                tell(endpoint, source, true);
                endpoint.flush();
            }
        }

        private void tell(Endpoint endpoint, RegisteredMemory what, boolean isSource) {
            if (isSource) {
                // A C string as long as the buffer: the server of rdma-core writes back up to its end.
                for (int i = 0; i < size - 1; i++) {
                    what.segment().set(ValueLayout.JAVA_BYTE, i, (byte) ('A' + (round + i) % 58));
                }
            }
            sinkTold = !isSource;
            MemorySegment info = infos.segment();
            info.set(ADDRESS_WORD, INFO_BYTES, what.address());
            info.set(KEY_WORD, INFO_BYTES + 8, what.remoteKey() ^ spoil);
            info.set(KEY_WORD, INFO_BYTES + 12, size);
            request.asSend(1, 0).buffers().add(infos, INFO_BYTES, INFO_BYTES);
            assertThat(endpoint.post(request)).isTrue();
        }

        @Override
        public void onReceiveCompletion(
                Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
            if (status != WorkStatus.SUCCESS) {
                return;
            }
            assertThat(lengthBytes).isEqualTo(INFO_BYTES);
            long address = infos.segment().get(ADDRESS_WORD, 0);
            int key = infos.segment().get(KEY_WORD, 8);
            receive(endpoint);
            if (!client) {
                if (!sinkTold) {
                    request.asRead(2, 0, address, key).buffers().add(source, 0, size);
                } else {
                    request.asWrite(3, 0, address, key ^ spoil).buffers().add(source, 0, size);
                }
                sinkTold = !sinkTold;
                assertThat(endpoint.post(request)).isTrue();
            } else if (!sinkTold) {
                tell(endpoint, sink, false);
            } else {
                assertThat(source.segment().mismatch(sink.segment())).isEqualTo(-1);
                sink.segment().fill((byte) 0);
                round++;
                if (round == rounds) {
                    endpoint.disconnect();
                } else {
                    tell(endpoint, source, true);
                }
            }
        }

        @Override
        public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
            if (status != WorkStatus.SUCCESS || workId == 1) {
                return;
            }
            if (workId == 2) {
                String start = new String(
                        source.segment().asSlice(0, 20).toArray(ValueLayout.JAVA_BYTE),
                        java.nio.charset.StandardCharsets.US_ASCII);
                assertThat(start).startsWith("rdma-ping-" + round + ": ");
            } else {
                round++;
            }
            request.asSend(1, 0).buffers().add(infos, INFO_BYTES, INFO_BYTES);
            assertThat(endpoint.post(request)).isTrue();
        }

        @Override
        public void onCompletionsHandled(Endpoint endpoint) {
            endpoint.flush();
        }

        @Override
        public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
            for (RegisteredMemory region : new RegisteredMemory[] {source, sink, infos}) {
                if (region != null) {
                    region.close();
                }
            }
            if (cause != null) {
                done.completeExceptionally(cause);
            } else {
                done.complete(round);
            }
        }
    }
}
