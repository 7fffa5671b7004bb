package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOption;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.HandshakeLimits;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RdmaProvider;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

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
                RdmaServer.builder().provider(provider()).threadsPerProvider(1).onConnect(connected::add);
        if (keys != null) {
            builder.option(RdmaChannelOption.PRE_SHARED_KEYS, keys);
        }
        return builder.bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()));
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
            assertThat(server.channel().reception().strangers().count()).isZero();
        }
    }

    @Test
    void aClientWithoutAKeyIsToldWhatToDo() {
        try (RdmaServer server = serve(KEYS)) {
            assertThatThrownBy(() -> connect(server, null))
                    .hasMessageContaining(
                            "a pre-shared key is required (set RdmaChannelOption.PRE_SHARED_KEYS to a key that the server has)");
            Patience.until(
                    "the operator is told",
                    () -> server.channel().reception().strangers().count() == 1);
            assertThat(connected).isEmpty();
        }
    }

    @Test
    void onlyTheServersLogExplainsAnotherKey() {
        try (RdmaServer server = serve(KEYS)) {
            assertThatThrownBy(() -> connect(server, PreSharedKeys.of("2026", secret(2))))
                    .hasMessageContaining("does it have the pre-shared key of this end, with the same secret?");
            Patience.until(
                    "the operator is told",
                    () -> server.channel().reception().strangers().count() == 1);
            assertThat(connected).isEmpty();
        }
    }

    @Test
    void strangersWithoutAProofMakeRoomOldestFirst() {
        HandshakeLimits limits = new HandshakeLimits(8, 8, (int) Patience.LIMIT.toMillis());
        try (RdmaEventLoopGroup loops = limited(limits);
                Server server = new Server(askingForKeys(), loops)) {
            List<RecordingEndpointHandler> strangers = strangers(40, server.address(), null);
            Patience.until("the first 32 make room", () -> ended(strangers) == 32);
            assertThat(ended(strangers.subList(0, 32))).isEqualTo(32);
            Channel honest = connect(bootstrap().option(RdmaChannelOption.PRE_SHARED_KEYS, KEYS), server);
            Patience.until("one makes room for the client with the key", () -> ended(strangers) == 33);
            settle(honest, server.next());
            assertThat(honest.isActive()).isTrue();
            assertThat(ended(strangers)).isEqualTo(33);
            strangers.forEach(stranger -> stranger.awaitPrepared().disconnect());
            strangers.forEach(RecordingEndpointHandler::awaitDisconnected);
        }
    }

    @Test
    void strangersWithoutAProofAreGivenUpInTime() {
        try (RdmaEventLoopGroup loops = limited(new HandshakeLimits(100, 100, 1_000));
                Server server =
                        new Server(askingForKeys().childOption(ChannelOption.CONNECT_TIMEOUT_MILLIS, 0), loops)) {
            strangers(2, server.address(), null).forEach(RecordingEndpointHandler::awaitDisconnected);
        }
    }

    /** Loops whose servers grant strangers so much. */
    final RdmaEventLoopGroup limited(HandshakeLimits limits) {
        RdmaProvider limited =
                new DelegatingProvider(ProviderChoice.choose(provider(), null).provider()) {
                    @Override
                    public HandshakeLimits handshakeLimits() {
                        return limits;
                    }
                };
        return new RdmaEventLoopGroup(new ProviderChoice(limited, "limits"), 2, null, CompletionLoopOptions.DEFAULTS);
    }

    static ServerBootstrap askingForKeys() {
        return new ServerBootstrap().childOption(RdmaChannelOption.PRE_SHARED_KEYS, KEYS);
    }

    /** Peers that connect as if they had a key, one after another, and then say nothing. */
    final List<RecordingEndpointHandler> strangers(
            int count, InetSocketAddress server, @Nullable InetSocketAddress from) {
        RdmaProvider provider = ProviderChoice.choose(provider(), server).provider();
        EndpointOptions options = likeOneWithAKey();
        List<RecordingEndpointHandler> made = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            IoEventLoop loop = group.next();
            RecordingEndpointHandler stranger = new RecordingEndpointHandler("stranger " + i, loop);
            if (from == null) {
                provider.connect(loop, server, options, stranger);
            } else {
                provider.bind(from).connect(loop, server, options, stranger);
            }
            stranger.awaitConnected();
            made.add(stranger);
        }
        return made;
    }

    /** Options with private data that asks for the handshake with a key. */
    static EndpointOptions likeOneWithAKey() {
        byte[] disguise = PrivateData.of(MessageOptions.DEFAULTS);
        disguise[7] = 1;
        return EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = 20_000;
            o.sendDepth = 16;
            o.receiveDepth = 4;
            o.maxSges = 2;
            o.maxInlineBytes = 0;
            o.readDepth = 4;
            o.privateData = disguise;
        });
    }

    static long ended(List<RecordingEndpointHandler> strangers) {
        return strangers.stream()
                .filter(RecordingEndpointHandler::isDisconnected)
                .count();
    }

    @Test
    void aClientWithAKeyLeavesAServerWithoutKeys() {
        try (RdmaServer server = serve(null)) {
            assertThatThrownBy(() -> connect(server, KEYS))
                    .hasMessageContaining("it has no pre-shared keys")
                    .hasMessageContaining("Both ends need the same pre-shared key");
        }
    }

    /** Where the provider opens memory itself: nor does a server's, of which all its clients have the token. */
    @Test
    void serverMemoryOpensToNobodyWithoutTheKey() {
        assumeThat(provider()).isIn("soft", "shm");
        try (ServerMemory table = ServerMemory.allocate(8, Access.REMOTE_READ, Access.REMOTE_WRITE);
                RdmaServer server = RdmaServer.builder()
                        .provider(provider())
                        .option(RdmaChannelOption.PRE_SHARED_KEYS, KEYS)
                        .bind(
                                host(),
                                0,
                                (exchange, message) ->
                                        exchange.reply(exchange.token(table).encode()));
                RdmaClient honest = connect(server, KEYS)) {
            RemoteMemory token = RemoteMemory.decode(Patience.await("the token", honest.request(new byte[0])));
            steal(server.localAddress(), token, table.segment(), true);
            assertThat(table.segment().get(ValueLayout.JAVA_LONG, 0)).isZero();
            ByteBuf written = honest.channel().alloc().buffer(8, 8).writeLong(42);
            done("a write of one with the key", honest.channel().write(token, 0, written));
            written.release();
            Patience.until("it is written", () -> table.segment().get(ValueLayout.JAVA_BYTE, 7) == 42);
        }
    }

    /** Writes 42, having got as far as a connection. */
    final void steal(InetSocketAddress server, RemoteMemory token, MemorySegment memory, boolean asks) {
        RdmaProvider provider = ProviderChoice.choose(provider(), server).provider();
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        try {
            IoEventLoop loop = group.next();
            RecordingEndpointHandler thief = new RecordingEndpointHandler("thief", loop);
            EndpointOptions options = likeOneWithAKey();
            if (!asks) {
                options = options.with(o -> o.privateData = PrivateData.of(MessageOptions.DEFAULTS));
            }
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
