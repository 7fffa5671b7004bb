package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.ProviderChoice;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PreSharedKeys;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.spi.CompletionLoopOptions;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.MemoryDomain.Access;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RegisteredMemory;
import org.verbena.transport.spi.RemoteMemory;
import org.verbena.transport.spi.WorkRequest;

/** Servers that ask for a key, and who comes with and without it. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class SoftPreSharedKeysTest {
    private static final PreSharedKeys KEYS = PreSharedKeys.of("2026", secret(1));

    private final CopyOnWriteArrayList<RdmaChannel> connected = new CopyOnWriteArrayList<>();

    private static byte[] secret(int fill) {
        byte[] secret = new byte[32];
        Arrays.fill(secret, (byte) fill);
        return secret;
    }

    private RdmaServer serve(@Nullable PreSharedKeys keys) {
        RdmaServer.Builder builder =
                RdmaServer.builder().provider("soft").threads(1).onConnect(connected::add);
        if (keys != null) {
            builder.option(RdmaChannelOption.PRE_SHARED_KEYS, keys);
        }
        return builder.bind("127.0.0.1", 0, (exchange, message) -> exchange.send(message.retain()));
    }

    private static RdmaClient connect(RdmaServer server, @Nullable PreSharedKeys keys) {
        RdmaClient.Builder builder = RdmaClient.builder().provider("soft");
        if (keys != null) {
            builder.option(RdmaChannelOption.PRE_SHARED_KEYS, keys);
        }
        return builder.connect("127.0.0.1", server.port());
    }

    @Test
    void whoHasTheKeyIsServed() {
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
    void whoHasNoneIsToldWhatToDo() {
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
    void whoHasAnotherIsToldNothingAndTheOperatorIs() {
        try (RdmaServer server = serve(KEYS)) {
            assertThatThrownBy(() -> connect(server, PreSharedKeys.of("2026", secret(2))))
                    .hasMessageContaining("does it have the pre-shared key of this end, with the same secret?");
            Patience.until(
                    "the operator is told", () -> server.channel().strangers().count() == 1);
            assertThat(connected).isEmpty();
        }
    }

    @Test
    void aServerThatAsksForNoneIsLeft() {
        try (RdmaServer server = serve(null)) {
            assertThatThrownBy(() -> connect(server, KEYS))
                    .hasMessageContaining("it has no pre-shared keys")
                    .hasMessageContaining("Both ends need the same pre-shared key");
        }
    }

    /** A token that leaked is of no use to who cannot prove the key; without keys, to show the difference, it is. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatIsSharedOpensToNobodyWithoutTheKey(boolean asks) {
        try (RdmaServer server = serve(asks ? KEYS : null);
                RdmaClient honest = connect(server, asks ? KEYS : null);
                Arena arena = Arena.ofShared()) {
            Patience.until("the server knows", () -> connected.size() == 1);
            MemorySegment memory = arena.allocate(8, 8);
            try (RegisteredMemory shared = connected
                    .getFirst()
                    .sharedMemory()
                    .register(memory, Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE))) {
                steal(server.localAddress(), shared.remote(), memory, asks);
            }
            assertThat(memory.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(asks ? 0 : 42);
            assertThat(Patience.await("an answer", honest.request(new byte[] {1})))
                    .containsExactly(1);
        }
    }

    /** Writes 42, having got as far as a connection. */
    private static void steal(InetSocketAddress server, RemoteMemory token, MemorySegment memory, boolean asks) {
        RdmaProvider provider = ProviderChoice.choose("soft", server).provider();
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        try {
            IoEventLoop loop = group.next();
            RecordingEndpointHandler thief = new RecordingEndpointHandler("thief", loop);
            byte[] disguise = PrivateData.of(MessageOptions.DEFAULTS);
            if (asks) {
                disguise[7] = 1;
            }
            EndpointOptions options = new EndpointOptions.Builder()
                    .connectTimeoutMillis(20_000)
                    .sendDepth(16)
                    .receiveDepth(4)
                    .maxSges(2)
                    .maxInlineBytes(0)
                    .readDepth(4)
                    .privateData(disguise)
                    .build();
            provider.connect(loop, server, options, thief);
            thief.awaitConnected();
            RegisteredMemory loot = thief.call(endpoint -> {
                MemorySegment value = Arena.global().allocate(8, 8);
                value.set(ValueLayout.JAVA_LONG, 0, 42);
                return endpoint.memoryDomain().register(value, Set.of(Access.LOCAL_WRITE));
            });
            WorkRequest write = new WorkRequest(1).asWrite(1, 0, token.address(), token.key());
            write.buffers().add(loot, 0, 8);
            thief.send(write);
            if (asks) {
                thief.awaitDisconnected();
            } else {
                Patience.until("it is written", () -> memory.get(ValueLayout.JAVA_LONG, 0) == 42);
                thief.awaitPrepared().disconnect();
                thief.awaitDisconnected();
            }
            loot.close();
        } finally {
            Patience.await("the thief's loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        }
    }
}
