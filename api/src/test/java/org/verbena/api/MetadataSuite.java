package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.service.Codec;
import org.verbena.api.service.Metadata;
import org.verbena.api.service.Method;
import org.verbena.api.service.Reply;
import org.verbena.transport.RequestException;
import org.verbena.transport.spi.Patience;

/** What goes with requests and replies beside their messages. */
public abstract class MetadataSuite extends ApiSuite {
    private static final RequestOptions BLUE =
            RequestOptions.DEFAULTS.withMetadata(Metadata.EMPTY.with("tenant", "blue"));

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex.replace(" ", ""));
    }

    private static String hex(byte[] frame) {
        return HexFormat.of().formatHex(frame);
    }

    private static ByteBuf frame(String hex) {
        return Unpooled.wrappedBuffer(bytes(hex));
    }

    private RdmaServer serverOf(MessageHandler handler) {
        return RdmaServer.builder().group(group).bind(host(), 0, handler);
    }

    /** Replies with the value of the tenant, and adds metadata. */
    private static final MessageHandler TENANT = (exchange, message) -> {
        exchange.addReplyMetadata(Metadata.EMPTY.with("cost", "3"));
        exchange.reply(String.valueOf(exchange.metadata().text("tenant")).getBytes(UTF_8));
    };

    @Test
    void metadataReachesTheHandlerInAllTypes() throws Exception {
        try (RdmaServer server = serverOf(TENANT);
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            for (RequestOptions options : new RequestOptions[] {BLUE, BLUE.withIdempotent(true)}) {
                assertThat(client.request(new byte[3], options).get()).isEqualTo("blue".getBytes(UTF_8));
                assertThat(client.request(ByteBuffer.allocate(3000), options).get())
                        .isEqualTo(ByteBuffer.wrap("blue".getBytes(UTF_8)));
                ByteBuf reply = done("the request", client.request(Unpooled.wrappedBuffer(new byte[100_000]), options))
                        .getNow();
                assertThat(reply.toString(UTF_8)).isEqualTo("blue");
                reply.release();
            }
            assertThat(client.request(new byte[3]).get())
                    .as("a reply with metadata to a plain request")
                    .isEqualTo("null".getBytes(UTF_8));
            for (RequestOptions options :
                    new RequestOptions[] {RequestOptions.DEFAULTS, RequestOptions.DEFAULTS.withIdempotent(true), BLUE
                    }) {
                Reply<byte[]> reply = client.requestReply(new byte[3], options).get();
                assertThat(reply.metadata()).isEqualTo(Metadata.EMPTY.with("cost", "3"));
                assertThat(reply.message())
                        .isEqualTo(String.valueOf(options.metadata().text("tenant"))
                                .getBytes(UTF_8));
            }
            Metadata full = Metadata.EMPTY.with("tenant", "x".repeat(Metadata.MAX_BYTES - 3 - 6));
            assertThat(client.request(new byte[3], RequestOptions.DEFAULTS.withMetadata(full))
                            .get())
                    .hasSize(Metadata.MAX_BYTES - 9);
        }
    }

    /** They have no reply, and share an object on the loop. */
    @Test
    void messagesCollectNoMetadata() throws Exception {
        AtomicInteger handled = new AtomicInteger();
        MessageHandler counting = (exchange, message) -> {
            exchange.addReplyMetadata(Metadata.EMPTY.with("n" + handled.get(), "1"));
            handled.incrementAndGet();
        };
        try (RdmaServer server = serverOf(counting);
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            for (int i = 0; i < 2 * Metadata.MAX_ENTRIES; i++) {
                client.send(new byte[] {1}).get();
            }
            Patience.until("all handled", () -> handled.get() == 2 * Metadata.MAX_ENTRIES);
        }
    }

    @Test
    void theFramesAreAsDocumented() {
        try (RdmaServer server = serverOf(TENANT)) {
            RdmaChannel peer = stranger(server);
            peer.writeAndFlush(frame("0c 00000000000009 ffffffff 01 000d 06 74656e616e74 0004 626c7565 68"));
            assertThat(hex(inbox(peer).next()))
                    .isEqualTo("0d00000000000009" + "0008" + "04636f7374" + "0001" + "33" + "626c7565");
            peer.writeAndFlush(frame("04 0000000000000a ffffffff 68"));
            assertThat(hex(inbox(peer).next())).startsWith("0d0000000000000a");
            done("closing", peer.close());
        }
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel accepted = server.next();
            CompletableFuture<byte[]> request = client.request(new byte[] {7}, BLUE.withIdempotent(true));
            String sent = hex(inbox(accepted).next());
            assertThat(sent)
                    .startsWith("0c00000000000001")
                    .endsWith("01" + "000d" + "0674656e616e740004626c7565" + "07");
            for (int why = 2; why <= 4; why++) {
                accepted.writeAndFlush(frame("0a %014x %02x 6e6f".formatted(why - 1, why)));
                RequestException.Refused refused = (RequestException.Refused) failure("the request", request);
                assertThat(refused.reason()).isEqualTo(RequestException.Refused.Reason.values()[why - 2]);
                request = client.request(new byte[] {7}, BLUE);
                inbox(accepted).next();
            }
            accepted.writeAndFlush(frame("0d 00000000000004 0008 04 636f7374 0001 33 6f6b"));
            assertThat(request.orTimeout(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)
                            .join())
                    .isEqualTo("ok".getBytes(UTF_8));
        }
    }

    @Test
    void whatIsOverTheLimitsIsRefusedAndTheConnectionStays() {
        try (RdmaServer server = serverOf(TENANT)) {
            RdmaChannel peer = stranger(server);
            String many = "01 61 0000";
            StringBuilder entries = new StringBuilder();
            for (int i = 0; i < 65; i++) {
                entries.append("02 61%02x 0000".formatted('a' + i % 26));
            }
            peer.writeAndFlush(frame("0c 00000000000001 ffffffff 00 0145" + entries.toString()));
            assertThat(hex(inbox(peer).next())).startsWith("0a0000000000000104");
            peer.writeAndFlush(frame("0c 00000000000002 ffffffff 00 2004 01 61 2000" + "00".repeat(0x2000)));
            assertThat(hex(inbox(peer).next())).startsWith("0a0000000000000204");
            peer.writeAndFlush(frame("0c 00000000000003 ffffffff 80 0000"));
            assertThat(hex(inbox(peer).next())).startsWith("0a0000000000000302");
            peer.writeAndFlush(frame("0c 00000000000004 ffffffff 00 0004" + many));
            assertThat(hex(inbox(peer).next())).startsWith("0d00000000000004");
            done("closing", peer.close());
        }
    }

    /** Whatever the names are: those that are not there are refused, and the connection stays. */
    @Test
    void methodsAreNamedByHeaders() {
        Method<String, String> place = Method.of("orders", "place", Codec.TEXT, Codec.TEXT);
        try (RdmaServer server = serverOf(Methods.NONE.with(place, (exchange, order) -> order + "!"))) {
            RdmaChannel peer = stranger(server);
            String service = "08 3a73657276696365";
            String method = "07 3a6d6574686f64";
            String orders = "0006 6f7264657273";
            peer.writeAndFlush(
                    frame("0c 00000000000001 ffffffff 00 0020" + service + orders + method + "0005 706c616365" + "68"));
            assertThat(hex(inbox(peer).next())).isEqualTo("0200000000000001" + "6821");
            int number = 2;
            for (String headers : new String[] {
                "0011" + service + orders, // no method
                "0011" + method + "0007 6f72646572732f", // no service
                "001b" + service + "0000" + method + "0006 6f726465722f", // an empty name
                "001e" + service + "0003 ffc328" + method + "0006 ff80fffffeff", // no UTF-8
                "0020" + service + "0005 706c616365" + method + orders, // the other way round
            }) {
                peer.writeAndFlush(frame("0c %014x ffffffff 00 %s 68".formatted(number, headers)));
                assertThat(hex(inbox(peer).next())).as(headers).startsWith("0a%014x02".formatted(number++));
            }
            done("closing", peer.close());
        }
    }

    @Test
    void malformedFramesEndTheConnection() {
        for (String headers : new String[] {
            "", // no flags
            "00 00", // no length
            "00 0001", // longer than the frame
            "00 0001 61", // a name beyond the end
            "00 0004 00 0000 00", // no name
            "00 0004 01 41 0000", // upper case
            "00 0004 01 80 0000", // no ASCII
            "00 0004 01 3a 0000", // nothing but a colon
            "00 0004 01 61 0001", // a value beyond the end
            "00 0008 01 61 0000 01 61 0000", // twice
        }) {
            try (RdmaServer server = serverOf(TENANT)) {
                RdmaChannel peer = stranger(server);
                peer.writeAndFlush(frame("0c 00000000000001 ffffffff" + headers));
                done("closing after " + headers, peer.closeFuture());
                assertThat(inbox(peer).messages.poll()).as(headers).isNull();
            }
        }
    }

    /** Whatever the headers are, the server answers, refuses or closes, and goes on for others. */
    @Test
    void anyHeadersAreReadOrRefused() throws Exception {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        byte[] valid = bytes("0c 00000000000001 ffffffff 00 000d 06 74656e616e74 0004 626c7565 68");
        try (RdmaServer server = serverOf(TENANT);
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            RdmaChannel peer = stranger(server);
            for (int i = 0; i < 300; i++) {
                byte[] bad = valid.clone();
                for (int changes = random.nextInt(1, 4); changes > 0; changes--) {
                    bad[random.nextInt(12, bad.length)] = (byte) random.nextInt();
                }
                peer.writeAndFlush(Unpooled.wrappedBuffer(bad, 0, random.nextInt(13, bad.length + 1)));
                RdmaChannel now = peer;
                Patience.until(
                        "an answer, or the end", () -> inbox(now).messages.poll() != null || !now.isActive());
                if (!peer.isActive()) {
                    peer = stranger(server);
                }
            }
            done("closing", peer.close());
            assertThat(client.request(new byte[3], BLUE).get()).isEqualTo("blue".getBytes(UTF_8));
        }
    }

    @Test
    void limitsAreCheckedByTheSender() {
        for (String name : new String[] {"", "A", ":path", "a b", "\u00e4", "x".repeat(201)}) {
            assertThatIllegalArgumentException().isThrownBy(() -> Metadata.EMPTY.with(name, "1"));
        }
        Metadata full = Metadata.EMPTY;
        for (int i = 0; i < Metadata.MAX_ENTRIES; i++) {
            full = full.with("n" + i, "v");
        }
        Metadata most = full;
        assertThat(most.with("n0", "w").text("n0")).isEqualTo("w");
        assertThatIllegalArgumentException().isThrownBy(() -> most.with("more", "v"));
        assertThat(Metadata.EMPTY.with("a", new byte[Metadata.MAX_BYTES - 4]).sizeBytes())
                .isEqualTo(Metadata.MAX_BYTES);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Metadata.EMPTY.with("a", new byte[Metadata.MAX_BYTES - 3]));
        assertThat(Metadata.EMPTY.with("a", "1").with("b", "2"))
                .isEqualTo(Metadata.EMPTY.with("b", "2").with("a", "1"));
        assertThat(Metadata.EMPTY.with("secret", "1").toString()).doesNotContain("1");
    }
}
