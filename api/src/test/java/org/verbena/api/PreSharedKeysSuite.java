package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.verbena.transport.protocol.PreSharedKeys;
import org.verbena.transport.spi.Patience;

/** Servers that require a key, and clients with and without it. */
public abstract class PreSharedKeysSuite extends ApiSuite {
    static final PreSharedKeys KEYS = PreSharedKeys.of("2026", secret(1));

    final CopyOnWriteArrayList<RdmaChannel> connected = new CopyOnWriteArrayList<>();

    private static byte[] secret(int fill) {
        byte[] secret = new byte[32];
        Arrays.fill(secret, (byte) fill);
        return secret;
    }

    final RdmaServer serve(@Nullable PreSharedKeys keys) {
        RdmaServer.Builder builder =
                RdmaServer.builder().provider(provider()).threads(1).onConnect(connected::add);
        if (keys != null) {
            builder.option(RdmaChannelOption.PRE_SHARED_KEYS, keys);
        }
        return builder.bind(host(), 0, (exchange, message) -> exchange.send(message.retain()));
    }

    final RdmaClient connect(RdmaServer server, @Nullable PreSharedKeys keys) {
        RdmaClient.Builder builder = RdmaClient.builder().provider(provider());
        if (keys != null) {
            builder.option(RdmaChannelOption.PRE_SHARED_KEYS, keys);
        }
        return builder.connect(host(), server.port());
    }

    @Test
    void aClientWithTheKeyIsServed() {
        try (RdmaServer server = serve(KEYS);
                RdmaClient client = connect(server, KEYS)) {
            byte[] hello = "hello".getBytes(StandardCharsets.UTF_8);
            assertThat(Patience.await("an answer", client.request(hello))).isEqualTo(hello);
            assertThat(client.channel().config().getOption(RdmaChannelOption.PRE_SHARED_KEYS))
                    .hasToString("PreSharedKeys[2026]");
            assertThat(server.channel().strangers().count()).isZero();
        }
    }

    @Test
    void aClientWithoutAKeyIsToldWhatToDo() {
        try (RdmaServer server = serve(KEYS)) {
            assertThatThrownBy(() -> connect(server, null))
                    .hasMessageContaining(
                            "a pre-shared key is required (set RdmaChannelOption.PRE_SHARED_KEYS to a key that the server has)");
            Patience.until(
                    "the operator is told", () -> server.channel().strangers().count() == 1);
            assertThat(connected).isEmpty();
        }
    }

    @Test
    void onlyTheServersLogExplainsAnotherKey() {
        try (RdmaServer server = serve(KEYS)) {
            assertThatThrownBy(() -> connect(server, PreSharedKeys.of("2026", secret(2))))
                    .hasMessageContaining("does it have the pre-shared key of this end, with the same secret?");
            Patience.until(
                    "the operator is told", () -> server.channel().strangers().count() == 1);
            assertThat(connected).isEmpty();
        }
    }

    @Test
    void aClientWithAKeyLeavesAServerWithoutKeys() {
        try (RdmaServer server = serve(null)) {
            assertThatThrownBy(() -> connect(server, KEYS))
                    .hasMessageContaining("it has no pre-shared keys")
                    .hasMessageContaining("Both ends need the same pre-shared key");
        }
    }
}
