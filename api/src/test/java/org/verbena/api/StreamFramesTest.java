package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.service.MessageStream;
import org.verbena.api.service.Metadata;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;

/** The frames of streams, from and to peers that are neither client nor server. */
class StreamFramesTest extends ApiSuite {
    private static final String BEGIN = "0c 00000000000009 ffffffff 02 0000 ";
    private static final String WINDOW = "00000100" + "00010000";
    private static final String ITEM = "0e 00000000000009 ";
    private static final String END = "0f 00000000000009 ";

    private final BlockingQueue<MessageStream> begun = new LinkedBlockingQueue<>();

    @Override
    protected String provider() {
        return "soft";
    }

    private static String hex(byte[] frame) {
        return HexFormat.of().formatHex(frame);
    }

    private static ByteBuf frame(String hex) {
        return Unpooled.wrappedBuffer(HexFormat.of().parseHex(hex.replace(" ", "")));
    }

    /** Streams are not read; other requests are answered. */
    private RdmaServer serverOfStreams() {
        return RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> {
            if (message.isReadable()) {
                exchange.reply(new byte[] {0x2a});
            } else {
                begun.add(exchange.stream());
            }
        });
    }

    private void stillServes(RdmaServer server) {
        try (RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            assertThat(Patience.await("a reply", client.request(new byte[1]))).containsExactly(0x2a);
        }
    }

    @Test
    void theServersFramesAreAsDocumented() throws Exception {
        try (RdmaServer server = serverOfStreams()) {
            RdmaChannel peer = stranger(server);
            peer.writeAndFlush(frame(BEGIN));
            assertThat(hex(inbox(peer).next())).isEqualTo("10" + "80000000000009" + WINDOW);
            MessageStream stream = Patience.take("the stream", begun);
            for (int i = 1; i <= 3; i++) {
                stream.send(new byte[] {(byte) i});
            }
            stream.end();
            peer.writeAndFlush(frame("10 00000000000009 00000001 00000001"));
            assertThat(hex(inbox(peer).next())).isEqualTo("0e" + "80000000000009" + "01");
            peer.writeAndFlush(frame("10 00000000000009 00000000 00000001"));
            peer.writeAndFlush(frame("10 00000000000009 00000001 00000000"));
            assertThat(hex(inbox(peer).next())).isEqualTo("0e" + "80000000000009" + "02");
            peer.writeAndFlush(frame(ITEM + "68"));
            peer.writeAndFlush(frame(END));
            CompletableFuture<String> received = new CompletableFuture<>();
            Thread.ofVirtual().start(() -> {
                StringBuilder all = new StringBuilder();
                stream.forEach(each -> all.append(new String(each, UTF_8)).append('.'));
                received.complete(all.toString());
            });
            assertThat(Patience.await("the messages", received)).isEqualTo("h.");
            peer.writeAndFlush(frame("10 00000000000009 00000001 00000001"));
            assertThat(hex(inbox(peer).next())).isEqualTo("0e" + "80000000000009" + "03");
            assertThat(hex(inbox(peer).next())).isEqualTo("0f" + "80000000000009");
            Patience.await("the end", stream.whenOver());
            // What crosses the end is dropped.
            peer.writeAndFlush(frame(ITEM + "68"));
            peer.writeAndFlush(frame("10 00000000000009 00000001 00000001"));
            peer.writeAndFlush(frame(END));
            peer.writeAndFlush(frame("04 0000000000000a ffffffff 68"));
            assertThat(hex(inbox(peer).next())).isEqualTo("02" + "0000000000000a" + "2a");
            done("closing", peer.close());
        }
    }

    /** One header, {@code a: 1}. */
    private static final String HEADERS = "0005" + "01" + "61" + "0001" + "31";

    private static final Metadata ONE = Metadata.EMPTY.with("a", "1");

    @Test
    void theServersHeadersAreAsDocumented() {
        BlockingQueue<Exchange> exchanges = new LinkedBlockingQueue<>();
        try (RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> {
            exchange.addReplyMetadata(ONE);
            exchanges.add(exchange);
        })) {
            RdmaChannel peer = stranger(server);
            peer.writeAndFlush(frame(BEGIN));
            Exchange exchange = Patience.take("the request", exchanges);
            MessageStream stream = exchange.stream();
            assertThat(hex(inbox(peer).next())).isEqualTo("10" + "80000000000009" + WINDOW);
            stream.send(new byte[] {1});
            exchange.addReplyMetadata(ONE);
            stream.send(new byte[] {2});
            stream.end();
            peer.writeAndFlush(frame("10 00000000000009 00000002 00000100"));
            assertThat(hex(inbox(peer).next())).isEqualTo("11" + "80000000000009" + HEADERS);
            assertThat(hex(inbox(peer).next())).isEqualTo("0e" + "80000000000009" + "01");
            assertThat(hex(inbox(peer).next())).isEqualTo("0e" + "80000000000009" + "02");
            assertThat(hex(inbox(peer).next())).isEqualTo("0f" + "80000000000009" + HEADERS);
            peer.writeAndFlush(frame(BEGIN));
            MessageStream empty = Patience.take("the request", exchanges).stream();
            inbox(peer).next();
            empty.end();
            assertThat(hex(inbox(peer).next())).as("without a message").isEqualTo("0f" + "80000000000009" + HEADERS);
            done("closing", peer.close());
        }
    }

    @Test
    void aClientTakesHeaders() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel accepted = server.next();
            MessageStream stream = client.stream(new byte[] {7}, RequestOptions.DEFAULTS);
            inbox(accepted).next();
            inbox(accepted).next();
            CompletableFuture<Metadata> first = stream.metadata();
            accepted.writeAndFlush(frame("11 80000000000001" + HEADERS));
            assertThat(Patience.await("the first", first)).isEqualTo(ONE);
            accepted.writeAndFlush(frame("0e 80000000000001 68"));
            accepted.writeAndFlush(frame("0f 80000000000001" + HEADERS));
            assertThat(Patience.await("the last", stream.trailers())).isEqualTo(ONE);
            assertThat(stream).containsExactly(new byte[] {0x68});
            accepted.writeAndFlush(frame("11 80000000000001" + HEADERS)); // of a stream that is over
            MessageStream next = client.stream(new byte[] {7}, RequestOptions.DEFAULTS);
            assertThat(inbox(accepted).next()).hasSizeGreaterThan(8); // the request, so the client knows its number
            accepted.writeAndFlush(frame("0f 80000000000002 0000"));
            assertThat(Patience.await("nothing", next.metadata())).isEqualTo(Metadata.EMPTY);
            assertThat(Patience.await("nothing", next.trailers())).isEqualTo(Metadata.EMPTY);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "11 80000000000001" + HEADERS + "; 11 80000000000001" + HEADERS,
                "0e 80000000000001 68; 11 80000000000001" + HEADERS,
                "11 80000000000001",
                "11 80000000000001" + HEADERS + "00",
                "11 80000000000001 0006 01 61 0001 31",
                "11 00000000000001" + HEADERS,
                "0f 80000000000001 00",
                "0f 80000000000001" + HEADERS + "00",
                "0f 80000000000001 0005 01 41 0001 31",
                "0f 00000000000001" + HEADERS,
            })
    void aServerThatBreaksTheRulesOfHeadersLosesItsConnection(String frames) {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .reconnect(false)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel accepted = server.next();
            MessageStream stream = client.stream(new byte[] {7}, RequestOptions.DEFAULTS);
            inbox(accepted).next();
            inbox(accepted).next();
            for (String each : frames.split(";")) {
                accepted.writeAndFlush(frame(each));
            }
            done("the end", accepted.closeFuture());
            CompletableFuture<Metadata> last = stream.trailers();
            Patience.until("the stream has failed", last::isDone);
            assertThat(last.exceptionNow()).isInstanceOf(ConnectionException.class);
        }
    }

    /** Whatever a server sends: a client's streams end, and no later one is the worse for it. */
    @Test
    void randomFramesOfAServerHarmNoClient() {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        int[] kinds = {2, 13, 14, 14, 15, 16, 17, 17};
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .backOff(Duration.ofMillis(1), Duration.ofMillis(1))
                        .connect(host(), server.address().getPort())) {
            List<MessageStream> streams = new ArrayList<>();
            RdmaChannel accepted = server.next();
            for (int i = 0; i < 40; i++) {
                for (int j = 0; j < 40 && accepted.isActive(); j++) {
                    if (random.nextInt(4) == 0) {
                        MessageStream stream = client.stream(new byte[0], RequestOptions.DEFAULTS);
                        stream.send(new byte[random.nextInt(3000)]);
                        streams.add(stream);
                    }
                    int kind = kinds[random.nextInt(kinds.length)];
                    long number = 1 + random.nextInt(10);
                    boolean isReply = kind == 2 || kind == 13;
                    boolean answers = !isReply && random.nextInt(20) != 0;
                    ByteBuf sent = Unpooled.buffer().writeLong((long) kind << 56 | (answers ? 1L << 55 : 0) | number);
                    switch (kind) {
                        case 14 -> sent.writeZero(random.nextInt(3000));
                        case 16 -> sent.writeInt(random.nextInt(1000)).writeInt(random.nextInt(100_000));
                        case 13, 17 -> sent.writeBytes(frame(random.nextInt(20) == 0 ? "0009" : HEADERS));
                        case 15 -> sent.writeBytes(frame(random.nextBoolean() ? "" : HEADERS));
                        default -> {}
                    }
                    accepted.writeAndFlush(sent);
                }
                accepted.close();
                accepted = server.next();
            }
            streams.forEach(MessageStream::cancel);
            for (MessageStream each : streams) {
                CompletableFuture<Void> over = each.whenOver();
                Patience.until("it is over", over::isDone);
                Patience.until("its metadata is known", each.metadata()::isDone);
                Patience.until("its metadata is known", each.trailers()::isDone);
            }
        }
    }

    /** What is behind a hole would look as if there were none. */
    @Test
    void nothingFollowsALostMessageButTheCancellation() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel accepted = server.next();
            MessageStream stream = client.stream(new byte[] {7}, RequestOptions.DEFAULTS);
            inbox(accepted).next();
            inbox(accepted).next();
            stream.send(new byte[] {1});
            ByteBuf gone = Unpooled.wrappedBuffer(new byte[] {2});
            stream.send(gone);
            gone.release();
            stream.send(new byte[] {3});
            stream.end();
            accepted.writeAndFlush(frame("10 80000000000001 00000010 00100000"));
            assertThat(hex(inbox(accepted).next())).isEqualTo("0e00000000000001" + "01");
            assertThat(hex(inbox(accepted).next())).isEqualTo("0800000000000001");
            assertThatThrownBy(() -> stream.whenOver().get()).isInstanceOf(ExecutionException.class);
            done("closing", accepted.close());
        }
    }

    /** Nobody waits for what its handler would make of it, and the connection's bound no longer counts it. */
    @Test
    void aCancelledStreamKeepsNothing() throws Exception {
        try (RdmaServer server = serverOfStreams()) {
            RdmaChannel peer = stranger(server);
            peer.writeAndFlush(frame(BEGIN));
            inbox(peer).next();
            MessageStream stream = Patience.take("the stream", begun);
            peer.writeAndFlush(frame(ITEM + "68"));
            peer.writeAndFlush(frame("08 00000000000009"));
            assertThatThrownBy(() -> stream.whenOver().get()).isInstanceOf(Exception.class);
            CompletableFuture<Object> read = new CompletableFuture<>();
            Thread.ofVirtual().start(() -> {
                try {
                    read.complete(String.valueOf(stream.receive()));
                } catch (Exception thrown) {
                    read.complete(thrown);
                }
            });
            assertThat(Patience.await("the reader", read)).isInstanceOf(CancellationException.class);
            done("closing", peer.close());
        }
    }

    /** No log has a reason, so the answer has it. */
    @Test
    void theClientLearnsThatTheServerHasCancelled() {
        try (RdmaServer server = serverOfStreams()) {
            RdmaChannel peer = stranger(server);
            peer.writeAndFlush(frame(BEGIN));
            inbox(peer).next();
            Patience.take("the stream", begun).cancel();
            assertThat(hex(inbox(peer).next()))
                    .startsWith("0300000000000009")
                    .as("with words")
                    .hasSizeGreaterThan(16);
            done("closing", peer.close());
        }
    }

    @Test
    void theClientsFramesAreAsDocumented() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel accepted = server.next();
            MessageStream stream = client.stream(new byte[] {7}, RequestOptions.DEFAULTS);
            assertThat(hex(inbox(accepted).next())).isEqualTo("0c00000000000001" + "ffffffff" + "02" + "0000" + "07");
            assertThat(hex(inbox(accepted).next())).isEqualTo("1000000000000001" + WINDOW);
            stream.send(new byte[] {1});
            stream.end();
            accepted.writeAndFlush(frame("10 80000000000001 00000001 00000001"));
            assertThat(hex(inbox(accepted).next())).isEqualTo("0e00000000000001" + "01");
            assertThat(hex(inbox(accepted).next())).isEqualTo("0f00000000000001");
            accepted.writeAndFlush(frame("0e 80000000000001 68"));
            accepted.writeAndFlush(frame("0f 80000000000001"));
            assertThat(stream).containsExactly(new byte[] {0x68});
            MessageStream cancelled = client.stream(new byte[0], RequestOptions.DEFAULTS);
            inbox(accepted).next();
            inbox(accepted).next();
            cancelled.cancel();
            assertThat(hex(inbox(accepted).next())).isEqualTo("0800000000000002");
            accepted.writeAndFlush(frame("0e 80000000000002 68"));
            accepted.writeAndFlush(frame("0f 80000000000002"));
            MessageStream flooded = client.stream(new byte[0], RequestOptions.DEFAULTS);
            inbox(accepted).next();
            for (int i = 0; i <= 256; i++) {
                accepted.writeAndFlush(frame("0e 80000000000003"));
            }
            CompletableFuture<Void> over = flooded.whenOver();
            Patience.until("the end", over::isDone);
            assertThat(over.exceptionNow()).isInstanceOf(ConnectionException.class);
            assertThat(client.lateReplies()).isPositive();
        }
    }

    /** The first server leaves before it has begun the stream. The next one gets it with all its messages. */
    @Test
    void aStreamThatWasNotBegunGoesOnElsewhere() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel leaving = server.next();
            MessageStream stream = client.stream(new byte[] {7}, RequestOptions.DEFAULTS.withKey("any"));
            CompletableFuture<Void> sent = stream.send(new byte[] {1});
            inbox(leaving).next();
            inbox(leaving).next();
            leaving.writeAndFlush(frame("0a 00000000000001 01"));
            RdmaChannel next = server.next();
            assertThat(hex(inbox(next).next())).startsWith("0c00000000000001").endsWith("07");
            assertThat(hex(inbox(next).next())).isEqualTo("1000000000000001" + WINDOW);
            stream.end();
            next.writeAndFlush(frame("10 80000000000001 00000001 00000001"));
            assertThat(hex(inbox(next).next())).isEqualTo("0e00000000000001" + "01");
            assertThat(hex(inbox(next).next())).isEqualTo("0f00000000000001");
            next.writeAndFlush(frame("0f 80000000000001"));
            Patience.await("the message", sent.thenApply(none -> 1));
            Patience.await("the end", stream.whenOver());
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "0c 80000000000009 ffffffff 02 0000",
                BEGIN + "; " + BEGIN,
                END + "00",
                "10 00000000000009 000000",
                "10 00000000000009 00000000 00000000 00",
                BEGIN + "; " + END + "; " + END,
                BEGIN + "; " + END + "; " + ITEM + "68",
                BEGIN + "; 10 00000000000009 7fffffff 00000001; 10 00000000000009 00000001 00000001",
                BEGIN + "; 10 00000000000009 00000001 80000000",
                // For requests that the handler does not accept as streams.
                "0c 00000000000009 ffffffff 02 0000 01; 0c 0000000000000a ffffffff 02 0000 01; 0f 0000000000000a 01",
                // Clients send no headers.
                BEGIN + "; 11 00000000000009" + HEADERS,
                BEGIN + "; " + END + HEADERS,
            })
    void aPeerThatBreaksTheRulesLosesItsConnection(String frames) {
        try (RdmaServer server = serverOfStreams()) {
            RdmaChannel peer = stranger(server);
            for (String each : frames.split(";")) {
                peer.writeAndFlush(frame(each));
            }
            done("the end", peer.closeFuture());
            MessageStream stream = begun.poll();
            if (stream != null) {
                CompletableFuture<Void> over = stream.whenOver();
                Patience.until("the stream has failed", over::isDone);
                assertThat(over.isCompletedExceptionally()).isTrue();
            }
            stillServes(server);
        }
    }

    @Test
    void creditHasABoundInMessagesAndInBytes() {
        try (RdmaServer server = serverOfStreams()) {
            for (int[] shape : new int[][] {{256, 0}, {2, 32 << 10}, {1, 1 << 20}, {65, 1000}, {66, 1000}}) {
                RdmaChannel peer = stranger(server);
                peer.writeAndFlush(frame(BEGIN));
                inbox(peer).next();
                for (int i = 0; i < shape[0]; i++) {
                    peer.writeAndFlush(Unpooled.wrappedBuffer(
                            frame(ITEM), Unpooled.buffer(shape[1]).writeZero(shape[1])));
                }
                peer.writeAndFlush(frame("04 0000000000000a ffffffff 68"));
                assertThat(hex(inbox(peer).next()))
                        .as("%d of %d", shape[0], shape[1])
                        .isEqualTo("020000000000000a2a");
                for (int i = 0; shape[0] == 65 && i < 1; i++) {
                    peer.writeAndFlush(Unpooled.wrappedBuffer(
                            frame(ITEM), Unpooled.buffer(1000).writeZero(1000)));
                }
                peer.writeAndFlush(frame(ITEM));
                done("one message more ends it", peer.closeFuture());
            }
            stillServes(server);
        }
    }

    /** A stream that no handler accepts gives no credit. */
    @Test
    void messagesForAHandlerThatDoesNotAcceptThemAreRefused() {
        try (RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> {
            if (message.isReadable()) {
                exchange.reply(new byte[] {0x2a});
            }
        })) {
            RdmaChannel peer = stranger(server);
            peer.writeAndFlush(frame(BEGIN));
            peer.writeAndFlush(frame(ITEM));
            done("the end", peer.closeFuture());
            stillServes(server);
        }
    }

    @Test
    void randomFramesHarmNobody() {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        int[] kinds = {8, 12, 12, 12, 14, 14, 15, 16, 16};
        try (RdmaServer server = serverOfStreams()) {
            for (int i = 0; i < 40; i++) {
                RdmaChannel peer = stranger(server);
                for (int j = 0; j < 40 && peer.isActive(); j++) {
                    int kind = random.nextInt(40) == 0 ? 17 : kinds[random.nextInt(kinds.length)];
                    ByteBuf sent = Unpooled.buffer()
                            .writeLong(
                                    (long) kind << 56 | (random.nextInt(20) == 0 ? 1L << 55 : 0) | random.nextInt(5));
                    switch (kind) {
                        case 12 ->
                            sent.writeInt(random.nextInt(4) == 0 ? 1000 : -1)
                                    .writeByte(2)
                                    .writeShort(0);
                        case 14 -> sent.writeZero(random.nextInt(3000));
                        case 16 -> sent.writeInt(random.nextInt(1000)).writeInt(random.nextInt(100_000));
                        default -> {}
                    }
                    if (random.nextInt(30) == 0) {
                        sent.writeByte(1);
                    }
                    peer.writeAndFlush(sent);
                    MessageStream stream = begun.poll();
                    if (stream != null) {
                        switch (random.nextInt(4)) {
                            case 0 -> stream.end();
                            case 1 -> stream.cancel();
                            default -> stream.send(new byte[random.nextInt(3000)]);
                        }
                    }
                }
                done("closing", peer.close());
                stillServes(server);
            }
            List<MessageStream> all = new ArrayList<>();
            begun.drainTo(all);
            for (MessageStream each : all) {
                CompletableFuture<Void> over = each.whenOver();
                Patience.until("it is over", over::isDone);
            }
        }
    }
}
