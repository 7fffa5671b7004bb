package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.util.IllegalReferenceCountException;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.api.ClientGroup.SlowClients;
import org.verbena.api.internal.memory.ChannelBuffers;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.SendLimitException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;

/** What a server sends without a request: to one client, and one buffer to many. */
public abstract class PushSuite extends ApiSuite {
    private static final MessageHandler NOTHING = (exchange, message) -> {};

    /** How many clients are many, on this provider. */
    protected int many() {
        return 100;
    }

    private static RdmaServer.Builder small(RdmaServer.Builder builder) {
        return builder.option(RdmaChannelOption.SEND_DEPTH, 16)
                .option(RdmaChannelOption.RECEIVE_DEPTH, 8)
                .option(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 4096);
    }

    /** Clients of one server, each with what it does with messages. */
    private static final class Crowd implements AutoCloseable {
        /** A server takes only so many handshakes at a time. */
        private static final int AT_ONCE = 32;

        final List<RdmaClient> clients = new ArrayList<>();

        Crowd(RdmaEventLoopGroup group, RdmaServer server, List<? extends MessageHandler> handlers) {
            String host = server.localAddress().getAddress().getHostAddress();
            List<CompletableFuture<RdmaClient>> connecting = new ArrayList<>();
            for (MessageHandler handler : handlers) {
                if (connecting.size() == AT_ONCE) {
                    connecting.forEach(each -> clients.add(Patience.await("a client", each)));
                    connecting.clear();
                }
                connecting.add(RdmaClient.builder()
                        .group(group)
                        .option(RdmaChannelOption.SEND_DEPTH, 16)
                        .option(RdmaChannelOption.RECEIVE_DEPTH, 8)
                        .option(RdmaChannelOption.RECEIVE_BUFFER_BYTES, 4096)
                        .onMessage(handler)
                        .connectAsync(host, server.port()));
            }
            connecting.forEach(each -> clients.add(Patience.await("a client", each)));
            Patience.until("all are there", () -> server.clients().size() == handlers.size());
        }

        /** Accepts nothing more; what is under way to it still arrives. */
        void stop(int client) {
            clients.get(client).channel().config().setAutoRead(false);
        }

        @Override
        public void close() {
            List<CompletableFuture<Void>> closing =
                    clients.stream().map(RdmaClient::closeAsync).toList();
            closing.forEach(each -> Patience.await("a client closing", each));
        }
    }

    @Test
    void aServerSendsToTheClientItChooses() {
        BlockingQueue<ConnectedClient> seen = new LinkedBlockingQueue<>();
        BlockingQueue<String> first = new LinkedBlockingQueue<>();
        BlockingQueue<String> second = new LinkedBlockingQueue<>();
        BlockingQueue<Throwable> refusals = new LinkedBlockingQueue<>();
        MessageHandler atFirst = (exchange, message) -> {
            first.add(ByteBufUtil.hexDump(message));
            try {
                exchange.client();
            } catch (IllegalStateException none) {
                refusals.add(none);
            }
        };
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .onConnect(channel -> seen.add(ConnectedClient.of(channel)))
                        .bind(host(), 0, (exchange, message) -> seen.add(exchange.client()));
                Crowd crowd = new Crowd(
                        group,
                        server,
                        List.of(atFirst, (exchange, message) -> second.add(ByteBufUtil.hexDump(message))))) {
            assertThat(Patience.take("a client", seen)).isIn(server.clients());
            assertThat(Patience.take("a client", seen)).isIn(server.clients());
            crowd.clients.get(0).send(new byte[1]);
            ConnectedClient one = Patience.take("the first", seen);
            assertThat(ConnectedClient.of(one.channel())).isSameAs(one);
            crowd.clients.get(1).send(new byte[1]);
            ConnectedClient other = Patience.take("the second", seen);
            done("a buffer", one.send(Unpooled.wrappedBuffer(new byte[] {1})));
            Patience.await("an array", one.send(new byte[] {2}));
            Patience.await("bytes", other.send(ByteBuffer.wrap(new byte[] {3})));
            assertThat(Patience.take("a message", first)).isEqualTo("01");
            assertThat(Patience.take("a message", first)).isEqualTo("02");
            assertThat(Patience.take("a message", second)).isEqualTo("03");
            assertThat(Patience.take("a server is no client", refusals)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> ConnectedClient.of(crowd.clients.get(0).channel()))
                    .isInstanceOf(IllegalArgumentException.class);
            done("closing", one.channel().close());
            assertThat(failure("a send", one.send(Unpooled.wrappedBuffer(new byte[] {4}))))
                    .isInstanceOf(ConnectionException.class);
        }
    }

    @Test
    void clientsJoinAndLeaveGroups() {
        BlockingQueue<Integer> came = new LinkedBlockingQueue<>();
        MessageHandler notes = (exchange, message) -> came.add(message.readInt());
        ClientGroup room = new ClientGroup();
        try (RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> {
            room.add(exchange.client());
            exchange.reply(new byte[0]);
        })) {
            assertThat(Patience.await("nobody", room.broadcast(new byte[4]))).isZero();
            ConnectedClient gone;
            try (Crowd crowd = new Crowd(group, server, List.of(notes, notes, notes))) {
                Patience.await("joining", crowd.clients.get(0).request(new byte[0]));
                Patience.await("joining", crowd.clients.get(0).request(new byte[0]));
                gone = room.iterator().next();
                assertThat(room.add(gone)).isFalse();
                Patience.await("joining", crowd.clients.get(1).request(new byte[0]));
                assertThat(room).hasSize(2).contains(gone);
                assertThat(room.size()).isEqualTo(2);
                assertThat(Patience.await("to two", room.broadcast(new byte[] {0, 0, 0, 7})))
                        .isEqualTo(2);
                assertThat(Patience.await(
                                "to all", server.clients().broadcast(ByteBuffer.wrap(new byte[] {0, 0, 0, 8}))))
                        .isEqualTo(3);
                List<Integer> all = new ArrayList<>();
                for (int i = 0; i < 5; i++) {
                    all.add(Patience.take("a message", came));
                }
                assertThat(all).containsExactlyInAnyOrder(7, 7, 8, 8, 8);
                assertThat(room.remove(gone)).isTrue();
                assertThat(room.remove(gone)).isFalse();
                assertThat(room.contains(gone)).isFalse();
                room.add(gone);
            }
            Patience.until(
                    "they have left", () -> room.size() == 0 && server.clients().size() == 0);
            room.add(gone);
            assertThat(room).as("one that is gone does not join").isEmpty();
            ByteBuf released = Unpooled.buffer(1);
            released.release();
            assertThatThrownBy(() -> room.broadcast(released)).isInstanceOf(IllegalReferenceCountException.class);
        }
    }

    /** Every send reads its bytes from where the program has written them. */
    @Test
    void oneBufferGoesToManyClientsWithoutACopy() {
        int bytes = 10_000;
        int threshold = 1 << 20;
        CountingProvider counting =
                new CountingProvider(ProviderChoice.choose(provider(), null).provider());
        RdmaEventLoopGroup loops =
                new RdmaEventLoopGroup(new ProviderChoice(counting, "counts"), 2, null, CompletionLoopOptions.DEFAULTS);
        AtomicInteger came = new AtomicInteger();
        byte[] expected = patternBytes(bytes, 3);
        MessageHandler checks = (exchange, message) -> {
            assertThat(ByteBufUtil.getBytes(message)).isEqualTo(expected);
            came.incrementAndGet();
        };
        int count = many();
        try (RdmaServer server = small(RdmaServer.builder().group(loops))
                        .option(RdmaChannelOption.RENDEZVOUS_THRESHOLD_BYTES, threshold)
                        .bind(host(), 0, NOTHING);
                Crowd crowd = new Crowd(group, server, Collections.nCopies(count, checks))) {
            counting.sources.clear();
            ByteBuf message = pattern(server.clients().iterator().next().channel(), bytes, 3);
            long address = message.memoryAddress();
            assertThat(Patience.await("all sends", server.clients().broadcast(message.retain())))
                    .isEqualTo(count);
            Patience.until("all have it", () -> came.get() == count);
            long taken = counting.sources.stream()
                    .mapToLong(stretch -> stretch.overlap(address, bytes))
                    .sum();
            assertThat(taken).as("bytes taken from the one buffer").isEqualTo((long) count * bytes);
            assertThat(message.refCnt()).isOne();
            assertThat(ByteBufUtil.getBytes(message)).isEqualTo(expected);
            message.release();
            assertThat(crowd.clients).hasSize(count);
        } finally {
            loops.close();
        }
    }

    /** A tenth of the clients accepts nothing: the others have all, and what waits keeps its bound. */
    @Test
    void memoryStaysFlatWhenSomeAreStopped() {
        memoryStaysFlat(Math.min(many(), 30));
    }

    @Test
    @Tag("full")
    void memoryStaysFlatWhenSomeOfManyAreStopped() {
        memoryStaysFlat(Math.min(many(), 200));
    }

    private void memoryStaysFlat(int count) {
        int maxMessages = 16;
        int maxTaken = 60;
        int rounds = 100;
        AtomicReferenceArray<AtomicInteger> came = new AtomicReferenceArray<>(count);
        List<MessageHandler> handlers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            AtomicInteger next = new AtomicInteger();
            came.set(i, next);
            handlers.add((exchange, message) -> {
                if (message.readInt() == next.get()) {
                    next.incrementAndGet();
                }
            });
        }
        for (int bytes : new int[] {100, 5000}) {
            for (int i = 0; i < count; i++) {
                came.get(i).set(0);
            }
            try (RdmaServer server = small(RdmaServer.builder().group(group)).bind(host(), 0, NOTHING);
                    Crowd crowd = new Crowd(group, server, handlers)) {
                ClientGroup room = new ClientGroup(SlowClients.SKIP, maxMessages, 1 << 20);
                server.clients().forEach(room::add);
                for (int i = 0; i < count; i += 10) {
                    crowd.stop(i);
                }
                RdmaChannel any = server.clients().iterator().next().channel();
                long before = sendBytes(any);
                long max = 0;
                for (int round = 0; round < rounds; round++) {
                    ByteBuf message = any.alloc().buffer(bytes).writeInt(round).writeZero(bytes - 4);
                    room.broadcast(message);
                    int now = round;
                    Patience.until("those that accept have it", () -> haveAll(came, now + 1));
                    max = Math.max(max, sendBytes(any) - before);
                }
                int stopped = (count + 9) / 10;
                // Beyond the bound: what the transport has taken for a client that does not read.
                assertThat(room.missed()).isGreaterThan((long) (rounds - maxTaken) * stopped);
                long keptBytes = (long) maxTaken * (bytes + 512);
                assertThat(max)
                        .as("%d bytes for %d stopped clients", bytes, stopped)
                        .isLessThan(keptBytes + (long) stopped * 16 * 1024);
                assertThat(room.size()).isEqualTo(count);
            }
        }
    }

    private static boolean haveAll(AtomicReferenceArray<AtomicInteger> came, int expected) {
        for (int i = 0; i < came.length(); i++) {
            if (i % 10 != 0 && came.get(i).get() < expected) {
                return false;
            }
        }
        return true;
    }

    private static long sendBytes(RdmaChannel channel) {
        return ChannelBuffers.sendBuffers(Set.of(channel.sharedMemory())).usedBytes();
    }

    @ParameterizedTest
    @EnumSource
    void aClientThatFallsBehindIsTreatedAsTheGroupSays(SlowClients slow) {
        BlockingQueue<ConnectedClient> seen = new LinkedBlockingQueue<>();
        MessageHandler sees = (exchange, message) -> seen.add(exchange.client());
        AtomicInteger came = new AtomicInteger();
        MessageHandler counts = (exchange, message) -> came.addAndGet(message.readableBytes());
        try (RdmaServer server = small(RdmaServer.builder().group(group)).bind(host(), 0, sees);
                Crowd crowd = new Crowd(group, server, List.of(NOTHING, counts))) {
            crowd.clients.get(1).send(new byte[1]);
            ConnectedClient other = Patience.take("the other", seen);
            ClientGroup room = new ClientGroup(slow, 2, 1 << 20);
            ConnectedClient behind = null;
            for (ConnectedClient each : server.clients()) {
                behind = each.equals(other) ? behind : each;
            }
            server.clients().forEach(room::add);
            crowd.stop(0);
            int rounds = 0;
            List<Future<Integer>> outcomes = new ArrayList<>();
            while (room.missed() == 0) {
                outcomes.add(room.broadcast(Unpooled.wrappedBuffer(new byte[10_000])));
                // The server has to know that the other has it, or counts it as one that waits.
                Patience.await("what is sent after it", other.send(new byte[1]));
                int now = ++rounds;
                Patience.until("the other has it", () -> came.get() == now * 10_001);
            }
            switch (slow) {
                case SKIP -> assertThat(room).hasSize(2);
                case REMOVE -> {
                    assertThat(room).hasSize(1);
                    assertThat(server.clients()).hasSize(2);
                }
                case CLOSE -> assertThat(room).hasSize(1);
            }
            crowd.clients.get(0).channel().config().setAutoRead(true);
            if (slow == SlowClients.CLOSE) {
                Patience.until("it is closed", () -> server.clients().size() == 1);
            }
            int min = 2;
            for (Future<Integer> outcome : outcomes) {
                min = Math.min(min, Patience.await("the outcome", outcome));
            }
            assertThat(min).as("what the slow one missed was sent to one").isEqualTo(1);
            assertThat(behind.missed()).isEqualTo(room.missed()).isPositive();
            assertThat(other.missed()).isZero();
        }
    }

    /** Whatever waits for a client that accepts nothing is in the figures, once, wherever it waits. */
    @Test
    void whatWaitsForAClientIsInTheStatistics() {
        int bytes = 4000;
        try (RdmaServer server = small(RdmaServer.builder().group(group)).bind(host(), 0, NOTHING);
                Crowd crowd = new Crowd(group, server, List.of(NOTHING))) {
            long before = group.providerStatistics().messages().queuedBytes();
            crowd.stop(0);
            ConnectedClient client = server.clients().iterator().next();
            client.channel().label("the slow\none");
            assertThat(client.channel().label()).isEqualTo("the slow?one");
            assertThat(client.channel().toString()).endsWith("(the slow?one)");
            List<Future<Void>> sends = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                sends.add(client.send(Unpooled.wrappedBuffer(new byte[bytes])));
            }
            Patience.until("all that can go has gone", () -> {
                long waiting = sends.stream().filter(send -> !send.isDone()).count();
                long queued = client.channel().statistics().queuedBytes();
                return waiting > 500 && queued >= waiting * bytes && queued <= waiting * (bytes + 200);
            });
            assertThat(group.providerStatistics().messages().queuedBytes() - before)
                    .isGreaterThanOrEqualTo(500L * bytes);
            done("it goes", crowd.clients.getFirst().channel().close());
            done("it is gone", client.channel().closeFuture());
        }
        Patience.until(
                "nothing stays", () -> group.providerStatistics().messages().queuedBytes() == 0);
    }

    @Test
    void aClientHasABoundOfItsOwn() {
        try (RdmaServer server = small(RdmaServer.builder().group(group))
                        .maxPending(2, 1 << 20)
                        .bind(host(), 0, NOTHING);
                Crowd crowd = new Crowd(group, server, List.of(NOTHING))) {
            crowd.stop(0);
            ConnectedClient client = server.clients().iterator().next();
            List<Future<Void>> sends = new ArrayList<>();
            Patience.until("it is full", () -> {
                Future<Void> send = client.send(Unpooled.wrappedBuffer(new byte[10_000]));
                sends.add(send);
                return send.isDone() && !send.isSuccess();
            });
            assertThat(sends.getLast().cause()).isInstanceOf(SendLimitException.class);
            ClientGroup room = new ClientGroup(SlowClients.REMOVE, 100, 1 << 20);
            room.add(client);
            Patience.until("it is full again", () -> {
                room.broadcast(Unpooled.wrappedBuffer(new byte[10_000]));
                return room.missed() > 0;
            });
            // More than one if the client is removed only after the next broadcast has begun.
            assertThat(room.missed()).isPositive();
            assertThat(room).isEmpty();
        }
    }

    private static long waiting(List<Future<Integer>> outcomes) {
        return outcomes.stream().filter(each -> !each.isDone()).count();
    }

    /** Else a client that takes nothing, and joins again and again, would keep any number of messages here. */
    @Test
    void aClientThatJoinsAgainKeepsItsBound() {
        try (RdmaServer server = small(RdmaServer.builder().group(group)).bind(host(), 0, NOTHING);
                Crowd crowd = new Crowd(group, server, List.of(NOTHING))) {
            crowd.stop(0);
            ConnectedClient client = server.clients().iterator().next();
            ClientGroup room = new ClientGroup(SlowClients.REMOVE, 2, 1 << 20);
            List<Future<Integer>> outcomes = new ArrayList<>();
            Patience.until("it takes nothing more", () -> {
                // What the loops have not looked at yet waits too, but not for the client.
                Patience.turns(
                        client.channel().eventLoop(),
                        crowd.clients.getFirst().channel().eventLoop());
                if (!room.contains(client) && waiting(outcomes) == 2) {
                    return true;
                }
                room.add(client);
                outcomes.add(room.broadcast(Unpooled.wrappedBuffer(new byte[10_000])));
                return false;
            });
            long full = room.missed();
            assertThat(room).isEmpty();
            for (long missed = full; missed < full + 3; missed++) {
                assertThat(room.add(client)).isTrue();
                Future<Integer> outcome = room.broadcast(Unpooled.wrappedBuffer(new byte[10_000]));
                assertThat(Patience.await("the outcome", outcome)).isZero();
                assertThat(room.missed()).isEqualTo(missed + 1);
                assertThat(room).isEmpty();
            }
            room.add(client);
            room.remove(client);
            assertThat(waiting(outcomes)).as("those that wait").isEqualTo(2);
            crowd.clients.getFirst().channel().config().setAutoRead(true);
            outcomes.forEach(each -> Patience.await("the outcome", each));
            room.add(client);
            assertThat(Patience.await("there is room again", room.broadcast(new byte[10_000])))
                    .isOne();
        }
    }
}
