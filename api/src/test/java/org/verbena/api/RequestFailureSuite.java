package org.verbena.api;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.Unpooled;
import java.util.HexFormat;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.verbena.api.internal.request.Messenger;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.spi.Patience;

/** Failures that a program answers with. */
public abstract class RequestFailureSuite extends ApiSuite {
    private static String hex(byte[] frame) {
        return HexFormat.of().formatHex(frame);
    }

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex.replace(" ", ""));
    }

    @Test
    void codeWordsAndPayloadReachTheClient() {
        String longWords = "\u00e4".repeat(2000);
        BlockingQueue<Runnable> later = new LinkedBlockingQueue<>();
        MessageHandler fails = MessageHandler.ofBytes((exchange, message) -> {
            switch (message[0]) {
                case 0 -> throw new RequestFailure(404, "no such key");
                case 1 -> throw new RequestFailure(Integer.MAX_VALUE, "", patternBytes(100_000, 3));
                case 2 -> throw new RequestFailure(0, longWords, message);
                default ->
                    later.add(() -> {
                        exchange.fail(new RequestFailure(7, "later", message));
                        exchange.fail(new RequestFailure(8, "too late"));
                    });
            }
        });
        for (boolean virtual : new boolean[] {false, true}) {
            try (LoggedWarnings logged = new LoggedWarnings(Messenger.class.getName());
                    RdmaServer server = RdmaServer.builder()
                            .group(group)
                            .virtualThreads(virtual)
                            .bind(host(), 0, fails);
                    RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
                for (byte kind = 0; kind < 4; kind++) {
                    CompletableFuture<byte[]> request = client.request(new byte[] {kind, 1});
                    if (kind == 3) {
                        Patience.take("the request", later).run();
                    }
                    RequestFailure failure = (RequestFailure) failure("request " + kind, request);
                    switch (kind) {
                        case 0 -> {
                            assertThat(failure.code()).isEqualTo(404);
                            assertThat(failure).hasMessage("no such key");
                            assertThat(failure.payload()).isEmpty();
                            assertThat(failure.isRetriable()).isFalse();
                        }
                        case 1 -> {
                            assertThat(failure.code()).isEqualTo(Integer.MAX_VALUE);
                            assertThat(failure).hasMessage("");
                            assertThat(failure.payload()).isEqualTo(patternBytes(100_000, 3));
                        }
                        case 2 -> {
                            assertThat(failure).hasMessage(longWords.substring(0, 1000));
                            assertThat(failure.payload()).containsExactly(2, 1);
                        }
                        default -> {
                            assertThat(failure.code()).isEqualTo(7);
                            assertThat(failure.payload()).containsExactly(3, 1);
                        }
                    }
                }
                assertThat(client.lateReplies()).as("one answer for each").isZero();
                assertThat(logged.texts()).as("answers are no faults").isEmpty();
            }
        }
    }

    @Test
    void whatCannotBeSentFailsAsAReplyDoes() {
        MessageHandler fails = MessageHandler.ofBytes((exchange, message) -> {
            throw new RequestFailure(1, "long", new byte[30_000]);
        });
        try (RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, fails);
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .option(RdmaChannelOption.MAX_MESSAGE_BYTES, 20_000)
                        .connect(host(), server.port())) {
            assertThat(failure("the request", client.request(new byte[1]))).isInstanceOf(RequestException.Failed.class);
        }
    }

    @Test
    void otherFailuresOfHandlersThatHaveReturnedAreLogged() {
        MessageHandler fails = MessageHandler.ofBytes((exchange, message) -> {
            exchange.fail(new IllegalStateException("for a test"));
        });
        try (RdmaServer server =
                        RdmaServer.builder().group(group).discloseErrors(true).bind(host(), 0, fails);
                RdmaClient client = RdmaClient.builder().group(group).connect(host(), server.port())) {
            assertThat(failure("the request", client.request(new byte[1])))
                    .isInstanceOf(RequestException.Failed.class)
                    .hasMessageContaining("for a test");
        }
    }

    @Test
    void theFrameIsAsDocumented() {
        MessageHandler fails = MessageHandler.ofBytes((exchange, message) -> {
            throw new RequestFailure(404, "no key", new byte[] {1, 2});
        });
        try (RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, fails)) {
            RdmaChannel knows = stranger(server);
            knows.writeAndFlush(Unpooled.wrappedBuffer(bytes("04 00000000000009 ffffffff 68")));
            assertThat(hex(inbox(knows).next()))
                    .isEqualTo("0b00000000000009" + "00000194" + "0006" + hex("no key".getBytes(UTF_8)) + "0102");
            done("closing", knows.close());
            RdmaChannel other = stranger(server);
            other.writeAndFlush(Unpooled.wrappedBuffer(bytes("0b 00000000000001 00000001 0000"))); // to a server
            other.writeAndFlush(Unpooled.wrappedBuffer(bytes("04 0000000000000a ffffffff 68")));
            assertThat(hex(inbox(other).next())).startsWith("0b0000000000000a");
            done("closing", other.close());
        }
    }

    @Test
    void malformedFramesEndTheConnection() {
        for (String frame : new String[] {
            "0b 00000000000001", // no code
            "0b 00000000000001 00000001 00", // no length
            "0b 00000000000001 00000001 0002 61", // words beyond the end
            "0b 00000000000001 ffffffff 0000", // a negative code
        }) {
            try (Server server = listenForFrames();
                    RdmaClient client = RdmaClient.builder()
                            .group(group)
                            .reconnect(false)
                            .connect(host(), server.address().getPort())) {
                RdmaChannel accepted = server.next();
                CompletableFuture<byte[]> request = client.request(new byte[1]);
                inbox(accepted).next();
                accepted.writeAndFlush(Unpooled.wrappedBuffer(bytes(frame)));
                done("the client closing", accepted.closeFuture());
                assertThat(failure("the request", request)).isNotInstanceOf(RequestFailure.class);
            }
        }
    }

    @Test
    void codesAreChecked() {
        assertThatThrownBy(() -> new RequestFailure(-1, "")).isInstanceOf(IllegalArgumentException.class);
    }
}
