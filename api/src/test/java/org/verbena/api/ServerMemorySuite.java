package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.ChannelFuture;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.NotYetConnectedException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;

/** Memory of a server, made before its connections, for all its clients. */
public abstract class ServerMemorySuite extends ApiSuite {
    private static final int TABLE_BYTES = 1 << 16;

    /** Below what servers take of handshakes at a time. */
    private static final int CONNECTING_AT_ONCE = 40;

    private ServerMemory table;

    @BeforeEach
    void makeATable() {
        table = ServerMemory.allocate(TABLE_BYTES, Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
        MemorySegment.copy(patternBytes(TABLE_BYTES, 3), 0, table.segment(), ValueLayout.JAVA_BYTE, 0, TABLE_BYTES);
    }

    @AfterEach
    void closeTheTable() {
        table.close();
        assertGone(table);
    }

    /** How many channels ask for a token. */
    protected int many() {
        return 20;
    }

    /** What a read fails with that the server's device refuses. */
    protected Class<? extends Throwable> refusal() {
        return RemoteAccessException.class;
    }

    private static void assertGone(ServerMemory memory) {
        AtomicBoolean gone = new AtomicBoolean();
        memory.whenGone(() -> gone.set(true));
        Patience.until("no device has the memory", gone::get);
    }

    /** Gives every client the token that it asks for. */
    private RdmaServer serve() {
        return RdmaServer.builder()
                .group(group)
                .bind(
                        host(),
                        0,
                        (exchange, message) ->
                                exchange.reply(exchange.token(table).encode()));
    }

    private RdmaClient connect(RdmaServer server) {
        return RdmaClient.builder().group(group).reconnect(false).connect(host(), server.port());
    }

    private static RemoteMemory tokenOf(RdmaClient client) {
        return RemoteMemory.decode(Patience.await("the token", client.request(new byte[0], Patience.LIMIT)));
    }

    private static byte[] read(RdmaChannel channel, RemoteMemory token, int offset, int bytes) {
        ByteBuf into = channel.alloc().buffer(bytes, bytes);
        try {
            done("a read", channel.read(token, offset, into));
            return ByteBufUtil.getBytes(into);
        } finally {
            into.release();
        }
    }

    private static void assertReadsTheTable(RdmaChannel channel, RemoteMemory token) {
        byte[] expected = patternBytes(TABLE_BYTES, 3);
        byte[] got = read(channel, token, 1000, 500);
        for (int i = 0; i < got.length; i++) {
            assertThat(got[i]).isEqualTo(expected[1000 + i]);
        }
    }

    /** The device of the server refuses a read, and that ends the connection. */
    private void assertIsRefused(RdmaChannel channel, RemoteMemory token) {
        ByteBuf into = channel.alloc().buffer(64, 64);
        assertThat(failure("a read", channel.read(token, 0, into))).isInstanceOf(refusal());
        assertThat(into.readableBytes()).isZero();
        into.release();
        done("the connection ends", channel.closeFuture());
    }

    /** Also if many threads ask for a token at once, and before any of the channels was there. */
    @Test
    void isRegisteredOnceForAllChannels() {
        CountingProvider counting =
                new CountingProvider(ProviderChoice.choose(provider(), null).provider());
        RdmaEventLoopGroup loops =
                new RdmaEventLoopGroup(new ProviderChoice(counting, "counts"), 2, null, CompletionLoopOptions.DEFAULTS);
        ServerBootstrap serving = new ServerBootstrap()
                .childOption(RdmaChannelOption.SEND_DEPTH, 16)
                .childOption(RdmaChannelOption.RECEIVE_DEPTH, 8)
                .childOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 4096);
        int count = many();
        try (Server server = new Server(serving, loops)) {
            List<RdmaChannel> clients = new ArrayList<>();
            List<RdmaChannel> accepted = new ArrayList<>();
            while (clients.size() < count) {
                List<ChannelFuture> connecting = new ArrayList<>();
                for (int i = 0; i < CONNECTING_AT_ONCE && clients.size() + i < count; i++) {
                    connecting.add(bootstrap()
                            .option(RdmaChannelOption.SEND_DEPTH, 16)
                            .option(RdmaChannelOption.RECEIVE_DEPTH, 8)
                            .option(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 4096)
                            .connect(server.address()));
                }
                for (ChannelFuture each : connecting) {
                    clients.add((RdmaChannel) done("connecting", each).channel());
                    accepted.add(server.next());
                }
            }
            assertThat(counting.ofServers).isEmpty();
            List<CompletableFuture<RemoteMemory>> asked = new ArrayList<>();
            for (RdmaChannel each : accepted) {
                CompletableFuture<RemoteMemory> token = new CompletableFuture<>();
                asked.add(token);
                Thread.startVirtualThread(() -> {
                    try {
                        token.complete(table.tokenFor(each));
                    } catch (Throwable failure) {
                        token.completeExceptionally(failure);
                    }
                });
            }
            assertThat(asked)
                    .extracting(each -> Patience.await("a token", each))
                    .containsOnly(table.tokenFor(accepted.getFirst()));
            assertThat(counting.ofServers).hasSize(1);
            RemoteMemory token = asked.getFirst().resultNow();
            clients.forEach(client -> assertReadsTheTable(client, token));
            List<ChannelFuture> closing = new ArrayList<>();
            clients.forEach(client -> closing.add(client.close()));
            closing.forEach(each -> done("closing", each));
        } finally {
            loops.close();
        }
        assertThat(counting.ofServers.getFirst().isGone())
                .as("the region, after the server")
                .isTrue();
    }

    @Test
    void aTokenOpensItToAllClientsOfTheServer() {
        try (RdmaServer server = serve();
                RdmaClient one = connect(server);
                RdmaClient other = connect(server)) {
            RemoteMemory token = tokenOf(one);
            assertThat(token).isEqualTo(tokenOf(other));
            assertReadsTheTable(one.channel(), token);
            assertReadsTheTable(other.channel(), token);
            ByteBuf from = pattern(other.channel(), 100, 9);
            done("a write", other.channel().flushingWrite(token, 2000, from));
            from.release();
            assertThat(table.segment().asSlice(2000, 100).toArray(ValueLayout.JAVA_BYTE))
                    .isEqualTo(patternBytes(100, 9));
            assertThat(read(one.channel(), token, 2000, 100)).isEqualTo(patternBytes(100, 9));
            if (one.channel().capabilities().atomics()) {
                table.segment().set(ValueLayout.JAVA_LONG, 64, 7);
                assertThat(done("adding", one.channel().fetchAndAdd(token, 64, 5))
                                .getNow())
                        .isEqualTo(7);
                assertThat(done("adding", other.channel().fetchAndAdd(token, 64, 5))
                                .getNow())
                        .isEqualTo(12);
            } else {
                assertThat(token.access()).doesNotContain(Access.REMOTE_ATOMIC);
            }
        }
    }

    /** Which has the same memory, and tokens of its own. */
    @Test
    void aTokenOpensItToNoClientOfAnotherServer() {
        try (RdmaServer server = serve();
                RdmaServer another = serve();
                RdmaClient client = connect(server);
                RdmaClient stranger = connect(another)) {
            RemoteMemory token = tokenOf(client);
            assumeThat(client.channel().capabilities().groupMemory())
                    .as("keys open memory to the connections of one server")
                    .isTrue();
            RemoteMemory theirs = tokenOf(stranger);
            assertThat(theirs.key()).isNotEqualTo(token.key());
            assertReadsTheTable(stranger.channel(), theirs);
            assertIsRefused(stranger.channel(), token);
            assertIsRefused(client.channel(), theirs);
            try (RdmaClient next = connect(server)) {
                assertReadsTheTable(next.channel(), token);
            }
        }
    }

    @Test
    void aTokenOpensNothingElse() {
        try (ServerMemory secret = ServerMemory.allocate(TABLE_BYTES, Access.REMOTE_READ);
                RdmaServer server = serve();
                RdmaClient client = connect(server);
                RdmaClient other = connect(server)) {
            RemoteMemory token = tokenOf(client);
            for (ConnectedClient each : server.clients()) {
                secret.tokenFor(each.channel());
            }
            RemoteMemory forged =
                    new RemoteMemory(secret.segment().address(), TABLE_BYTES, token.key(), token.access());
            assertIsRefused(client.channel(), forged);
            RemoteMemory longer = new RemoteMemory(token.address() + 1, TABLE_BYTES, token.key(), token.access());
            ByteBuf into = other.channel().alloc().buffer(64, 64);
            assertThat(failure("a read beyond the end", other.channel().read(longer, TABLE_BYTES - 64, into)))
                    .isInstanceOf(refusal());
            into.release();
        }
    }

    @Test
    void whatMayOnlyBeReadIsNotWritten() {
        try (ServerMemory readOnly = ServerMemory.allocate(TABLE_BYTES, Access.REMOTE_READ);
                RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .bind(
                                host(),
                                0,
                                (exchange, message) ->
                                        exchange.reply(exchange.token(readOnly).encode()));
                RdmaClient client = connect(server)) {
            RemoteMemory token = tokenOf(client);
            assertThat(token.access()).containsOnly(Access.REMOTE_READ);
            RdmaChannel channel = client.channel();
            ByteBuf from = pattern(channel, 64, 1);
            assertThat(failure("a write", channel.write(token, 0, from))).isInstanceOf(IllegalArgumentException.class);
            assertThat(read(channel, token, 0, 64)).containsOnly(0);
            RemoteMemory forged = new RemoteMemory(
                    token.address(), token.lengthBytes(), token.key(), Set.of(Access.REMOTE_READ, Access.REMOTE_WRITE));
            failure("a write with a forged token", channel.flushingWrite(forged, 0, from));
            from.release();
            done("the connection ends", channel.closeFuture());
            assertThat(readOnly.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
        }
    }

    @Test
    void noTokenOpensItOnceItIsClosed() {
        try (RdmaServer server = serve();
                RdmaClient client = connect(server)) {
            RemoteMemory token = tokenOf(client);
            assertReadsTheTable(client.channel(), token);
            RdmaChannel accepted = server.clients().iterator().next().channel();
            table.close();
            assertGone(table);
            assertThat(table.segment().scope().isAlive())
                    .as("its memory is freed")
                    .isFalse();
            assertThatThrownBy(() -> table.tokenFor(accepted)).isInstanceOf(IllegalStateException.class);
            assertIsRefused(client.channel(), token);
        }
    }

    /** Clients use it until they have left. */
    @Tag("lab-full")
    @Test
    void outlivesTheListenerAndNotTheLastConnection() {
        CountingProvider counting =
                new CountingProvider(ProviderChoice.choose(provider(), null).provider());
        RdmaEventLoopGroup loops =
                new RdmaEventLoopGroup(new ProviderChoice(counting, "counts"), 1, null, CompletionLoopOptions.DEFAULTS);
        AtomicReference<Exchange> held = new AtomicReference<>();
        try (RdmaServer server = RdmaServer.builder().group(loops).bind(host(), 0, (exchange, message) -> {
                    if (message.isReadable()) {
                        held.set(exchange);
                    } else {
                        exchange.reply(exchange.token(table).encode());
                    }
                });
                RdmaClient client = connect(server)) {
            RemoteMemory token = tokenOf(client);
            RegisteredMemory region = counting.ofServers.getFirst();
            RdmaChannel accepted = server.clients().iterator().next().channel();
            CompletableFuture<byte[]> underWay = client.request(new byte[1], Patience.LIMIT);
            Patience.until("the request is in its handler", () -> held.get() != null);
            CompletableFuture<Boolean> shutdown = server.shutdown(Duration.ofSeconds(Patience.LIMIT.toSeconds()));
            done("the listener closing", server.channel().closeFuture());
            assertReadsTheTable(client.channel(), token);
            assertThat(held.get().token(table)).isEqualTo(token);
            assertThat(region.isClosed()).isFalse();
            held.get().reply(new byte[1]);
            assertThat(Patience.await("the reply", underWay)).hasSize(1);
            Patience.await("the shutdown", shutdown);
            assertThat(region.isGone()).as("the region, after the server").isTrue();
            assertThat(counting.ofServers).hasSize(1);
            assertThatThrownBy(() -> table.tokenFor(accepted)).isInstanceOf(IllegalStateException.class);
        } finally {
            loops.close();
        }
    }

    @Tag("lab-full")
    @Test
    void servesTheNextServerOfTheProcess() {
        RemoteMemory before;
        try (RdmaServer server = serve();
                RdmaClient client = connect(server)) {
            before = tokenOf(client);
        }
        try (RdmaServer server = serve();
                RdmaClient client = connect(server)) {
            RemoteMemory token = tokenOf(client);
            assertThat(token.address()).isEqualTo(before.address());
            assertReadsTheTable(client.channel(), token);
        }
    }

    @Tag("lab-full")
    @Test
    void isForChannelsThatAServerHasAccepted() {
        try (RdmaServer server = serve();
                RdmaClient client = connect(server)) {
            assertThatThrownBy(() -> table.tokenFor(client.channel())).isInstanceOf(IllegalArgumentException.class);
            RdmaChannel unconnected =
                    (RdmaChannel) done("registering", bootstrap().register()).channel();
            assertThatThrownBy(() -> table.tokenFor(unconnected)).isInstanceOf(NotYetConnectedException.class);
            done("closing", unconnected.close());
        }
    }

    @Tag("lab-full")
    @Test
    void refusesWhatNoDeviceWouldTake() {
        MemorySegment heap = MemorySegment.ofArray(new byte[64]);
        assertThatThrownBy(() -> ServerMemory.of(heap, Access.REMOTE_READ))
                .isInstanceOf(IllegalArgumentException.class);
        try (Arena confined = Arena.ofConfined();
                Arena shared = Arena.ofShared()) {
            MemorySegment good = shared.allocate(64);
            for (MemorySegment bad : List.of(confined.allocate(64), good.asSlice(0, 0))) {
                assertThatThrownBy(() -> ServerMemory.of(bad, Access.REMOTE_READ))
                        .isInstanceOf(IllegalArgumentException.class);
            }
            assertThatThrownBy(() -> ServerMemory.of(good)).isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> ServerMemory.of(good, Access.LOCAL_WRITE))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> ServerMemory.of(good.asReadOnly(), Access.REMOTE_READ, Access.REMOTE_WRITE))
                    .isInstanceOf(IllegalArgumentException.class);
            ServerMemory fine = ServerMemory.of(good, Access.REMOTE_READ);
            fine.close();
            assertGone(fine);
            assertThat(good.scope().isAlive())
                    .as("memory of the program stays the program's")
                    .isTrue();
        }
        assertThatThrownBy(() -> ServerMemory.allocate(0, Access.REMOTE_READ))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
