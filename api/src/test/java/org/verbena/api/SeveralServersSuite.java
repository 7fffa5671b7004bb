package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.client.Target;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Patience;

/** Clients of several servers: which one gets a request, and what happens when one goes, is slow, or says nothing. */
public abstract class SeveralServersSuite extends ApiSuite {
    private static final MessageHandler SILENT = (exchange, message) -> {};

    /** Replies with its own port. */
    private final class Named implements AutoCloseable {
        final AtomicInteger handled = new AtomicInteger();
        final AtomicBoolean silent = new AtomicBoolean();
        final RdmaServer server;

        Named(int port) {
            server = RdmaServer.builder().group(group).bind(host(), port, (exchange, message) -> {
                handled.incrementAndGet();
                if (!silent.get() && exchange.isRequest()) {
                    exchange.reply(ByteBuffer.allocate(Integer.BYTES)
                            .putInt(
                                    0,
                                    exchange.channel().localAddress() instanceof InetSocketAddress here
                                            ? here.getPort()
                                            : 0)
                            .array());
                }
            });
        }

        Named() {
            this(lastingPort());
        }

        InetSocketAddress address() {
            return server.localAddress();
        }

        @Override
        public void close() {
            server.close();
        }
    }

    private static Target targetOf(Named... servers) {
        List<InetSocketAddress> addresses = new ArrayList<>();
        for (Named each : servers) {
            addresses.add(each.address());
        }
        return Target.of(addresses);
    }

    private RdmaClient.Builder builder() {
        return RdmaClient.builder().group(group).backOff(Duration.ofMillis(5), Duration.ofMillis(50));
    }

    private static void awaitAll(Named... servers) {
        for (Named each : servers) {
            Patience.until(
                    "it is connected to all", () -> !each.server.connections().isEmpty());
        }
    }

    /** Until the client sends requests to all of them, which it may do a little later than they have a connection. */
    private static void awaitUse(RdmaClient client, Named... servers) {
        for (Named each : servers) {
            int before = each.handled.get();
            Patience.until("it gets requests", () -> {
                Patience.await("a reply", client.request(new byte[1]));
                return each.handled.get() > before;
            });
        }
    }

    private static int port(byte[] reply) {
        return ByteBuffer.wrap(reply).getInt();
    }

    private static byte[] text(String text) {
        return text.getBytes(US_ASCII);
    }

    @Test
    void allServersGetTheirShare() {
        try (Named one = new Named();
                Named two = new Named();
                Named three = new Named();
                RdmaClient client = builder().target(targetOf(one, two, three)).connect()) {
            awaitUse(client, one, two, three);
            List<Named> all = List.of(one, two, three);
            all.forEach(each -> each.handled.set(0));
            for (int i = 0; i < 300; i++) {
                Patience.await("a reply", client.request(new byte[1]));
            }
            for (Named each : all) {
                assertThat(each.handled.get()).isGreaterThan(20);
            }
        }
    }

    /** Not that of another server, which has been down for longer. */
    @Test
    void theLastFailureIsTheLast() {
        try (Named first = new Named();
                Named second = new Named();
                RdmaClient client = builder()
                        .backOff(Duration.ofHours(1), Duration.ofHours(2))
                        .target(targetOf(first, second))
                        .connect()) {
            awaitUse(client, first, second);
            String port = ":" + first.address().getPort();
            second.server.close();
            Patience.until("one is lost", () -> client.statistics().failedAttempts() == 1);
            assertThat(client.statistics().lastFailure()).doesNotContain(port);
            first.server.close();
            Patience.until("the other as well", () -> client.statistics().failedAttempts() >= 2);
            assertThat(client.statistics().lastFailure()).contains(port);
        }
    }

    @Test
    void theLessLoadedOfTwoGetsARequest() {
        try (Named busy = new Named();
                Named idle = new Named();
                RdmaClient client = builder().target(targetOf(busy, idle)).connect()) {
            awaitUse(client, busy, idle);
            busy.silent.set(true);
            busy.handled.set(0);
            idle.handled.set(0);
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                CompletableFuture<byte[]> request = client.request(new byte[1]);
                requests.add(request);
                int sent = i + 1;
                Patience.until("it has arrived", () -> busy.handled.get() + idle.handled.get() >= sent);
                Patience.until(
                        "it is answered, or with the busy one",
                        () -> requests.stream().filter(each -> !each.isDone()).count() <= busy.handled.get());
            }
            assertThat(busy.handled.get()).as("those of the beginning").isLessThan(60);
            assertThat(idle.handled.get()).isGreaterThan(40);
        }
    }

    @Test
    void anAddressMayHaveSeveralConnections() {
        try (Named server = new Named();
                RdmaClient client =
                        builder().target(targetOf(server)).connections(3).connect()) {
            Patience.until(
                    "three connections", () -> server.server.connections().size() == 3);
            Patience.await("a reply", client.request(new byte[1]));
            for (int i = 0; i < 3; i++) {
                server.server.connections().iterator().next().close();
                Patience.until(
                        "three again",
                        () -> server.server.connections().stream()
                                        .filter(each -> each.isActive())
                                        .count()
                                == 3);
            }
        }
    }

    @Test
    void requestsGoOnWithTheServersThatAreLeft() {
        Named one = new Named();
        Named two = new Named();
        try (RdmaClient client = builder().target(targetOf(one, two)).connect()) {
            awaitAll(one, two);
            int port = two.address().getPort();
            for (int times = 0; times < 3; times++) {
                two.close();
                for (int i = 0; i < 50; i++) {
                    try {
                        assertThat(port(Patience.await("a reply", client.request(new byte[1]))))
                                .isEqualTo(one.address().getPort());
                    } catch (ConnectionException lost) {
                        assertThat(lost.mayHaveBegun()).isTrue();
                    }
                }
                assertThat(client.state()).isEqualTo(ClientState.READY);
                two = new Named(port);
                awaitAll(two);
            }
        }
        one.close();
        two.close();
    }

    @Test
    void keysStayWithTheirServers() {
        Named[] servers = {new Named(), new Named(), new Named(), new Named()};
        try (RdmaClient client = builder().target(targetOf(servers)).connect();
                RdmaClient other = builder().target(targetOf(servers)).connect()) {
            awaitUse(client, servers);
            awaitUse(other, servers);
            Map<String, Integer> first = new HashMap<>();
            Map<Integer, Integer> counts = new HashMap<>();
            for (int i = 0; i < 200; i++) {
                String key = "key " + i;
                int port = ask(client, key);
                first.put(key, port);
                counts.merge(port, 1, Integer::sum);
                assertThat(ask(client, key)).isEqualTo(port);
                assertThat(ask(other, key)).isEqualTo(port);
            }
            assertThat(counts)
                    .hasSize(4)
                    .allSatisfy((port, count) -> assertThat(count).isGreaterThan(15));
            int gone = servers[0].address().getPort();
            servers[0].close();
            Patience.until("its keys have moved", () -> {
                try {
                    return first.keySet().stream().noneMatch(key -> ask(client, key) == gone);
                } catch (ConnectionException lost) {
                    return false;
                }
            });
            first.forEach((key, port) -> {
                if (port != gone) {
                    assertThat(ask(client, key)).isEqualTo(port);
                }
            });
        }
        for (Named each : servers) {
            each.close();
        }
    }

    private static int ask(RdmaClient client, String key) {
        return port(Patience.await("a reply", client.request(new byte[1], RequestOptions.DEFAULTS.withKey(key))));
    }

    @Test
    void aClientFollowsItsResolver() {
        AtomicReference<Consumer<List<InetSocketAddress>>> updates = new AtomicReference<>();
        AtomicInteger closed = new AtomicInteger();
        BlockingQueue<Exchange> kept = new LinkedBlockingQueue<>();
        Target target = Target.resolver(found -> {
            updates.set(found);
            return closed::incrementAndGet;
        });
        try (RdmaServer old =
                        RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> kept.add(exchange));
                Named next = new Named();
                RdmaClient client = builder().target(target).start()) {
            Patience.until("the resolver is asked", () -> updates.get() != null);
            assertThat(client.state()).isEqualTo(ClientState.CONNECTING);
            updates.get().accept(List.of(old.localAddress()));
            Patience.await("it is ready", client.whenReady());
            CompletableFuture<byte[]> slow = client.request(text("slow"));
            Exchange exchange = Patience.take("the request", kept);
            updates.get().accept(List.of(next.address()));
            Patience.until("the new one", () -> !next.server.connections().isEmpty());
            Patience.until("the old one gets nothing", () -> {
                CompletableFuture<byte[]> request = client.request(new byte[1]);
                Patience.until("it is there", () -> request.isDone() || !kept.isEmpty());
                Exchange again = kept.poll();
                if (again != null) {
                    again.reply(new byte[4]);
                    return false;
                }
                return true;
            });
            assertThat(old.connections().size()).as("it waits for a reply").isEqualTo(1);
            exchange.reply(text("at last"));
            assertThat(Patience.await("the slow reply", slow)).isEqualTo(text("at last"));
            Patience.until("it is left", () -> old.connections().isEmpty());
            updates.get().accept(List.of());
            Patience.until("there is none", () -> next.server.connections().isEmpty());
            assertThat(client.state()).isEqualTo(ClientState.CONNECTING);
            updates.get().accept(List.of(next.address(), next.address()));
            Patience.await("it is ready", client.whenReady());
        }
        Patience.until("the resolver is closed", () -> closed.get() == 1);
    }

    @Test
    void aServerThatIsGoneServesUntilThereIsAnother() {
        AtomicReference<Consumer<List<InetSocketAddress>>> updates = new AtomicReference<>();
        try (Named old = new Named();
                RdmaClient client = builder()
                        .failFast()
                        .target(Target.resolver(found -> {
                            updates.set(found);
                            found.accept(List.of(old.address()));
                            return () -> {};
                        }))
                        .connect()) {
            InetSocketAddress later = new InetSocketAddress(host(), lastingPort());
            updates.get().accept(List.of(later));
            long before = group.providerStatistics().connections();
            Patience.until("it has tried the later one again and again", () -> {
                assertThat(port(Patience.await("a reply", client.request(new byte[1]))))
                        .isEqualTo(old.address().getPort());
                return group.providerStatistics().connections() >= before + 3;
            });
            assertThat(client.state()).isEqualTo(ClientState.READY);
            try (Named next = new Named(later.getPort())) {
                Patience.until(
                        "the old one is left", () -> old.server.connections().isEmpty());
                assertThat(port(Patience.await("a reply", client.request(new byte[1]))))
                        .isEqualTo(next.address().getPort());
                updates.get().accept(List.of(old.address()));
                Patience.until(
                        "the next one is left", () -> next.server.connections().isEmpty());
                assertThat(old.server.connections().size()).isEqualTo(1);
            }
        }
    }

    @Test
    void aResolverMayFailAtFirst() {
        Target never = Target.resolver(found -> {
            throw new IllegalStateException("never");
        });
        assertThat(failure("connecting", builder().target(never).connectAsync()))
                .isInstanceOf(ConnectionException.class)
                .hasCauseInstanceOf(IllegalStateException.class);
        AtomicInteger calls = new AtomicInteger();
        try (Named server = new Named()) {
            Target target = Target.resolver(found -> {
                if (calls.incrementAndGet() < 3) {
                    throw new IllegalStateException("not yet");
                }
                found.accept(List.of(server.address()));
                return () -> {};
            });
            try (RdmaClient client = builder().target(target).start()) {
                Patience.await("it is ready", client.whenReady());
                assertThat(calls).hasValue(3);
            }
        }
    }

    /** Its first address is being tried when there is none any more. */
    @Test
    void aResolverThatTakesItsAddressesBackFailsTheConnect() {
        try (Named server = new Named()) {
            Target target = Target.resolver(found -> {
                found.accept(List.of(server.address()));
                found.accept(List.of());
                return () -> {};
            });
            CompletableFuture<RdmaClient> connecting = builder()
                    .target(target)
                    .connectTimeout(Duration.ofMillis(100))
                    .connectAsync();
            Patience.until("it has ended", connecting::isDone);
            if (connecting.isCompletedExceptionally()) { // else it was quicker than the resolver
                assertThat(connecting.exceptionNow()).isInstanceOf(ConnectionException.TimedOut.class);
            } else {
                connecting.join().close();
            }
        }
    }

    @Test
    void aResolverThatReturnsNothingFailsTheConnect() {
        Target target = Target.resolver(found -> null);
        assertThat(failure("connecting", builder().target(target).connectAsync()))
                .isInstanceOf(ConnectionException.class)
                .hasCauseInstanceOf(NullPointerException.class);
    }

    @Test
    void closingInterruptsAResolver() {
        CompletableFuture<Void> asked = new CompletableFuture<>();
        CompletableFuture<Void> interrupted = new CompletableFuture<>();
        Target target = Target.resolver(found -> {
            asked.complete(null);
            try {
                new CountDownLatch(1).await();
            } catch (InterruptedException end) {
                interrupted.complete(null);
                throw end;
            }
            return () -> {};
        });
        RdmaClient client = builder().target(target).start();
        Patience.await("it asks", asked);
        client.close();
        Patience.await("it is interrupted", interrupted);
    }

    // ---- requests that may be handled twice

    @Test
    void whatMayBeHandledTwiceGoesToAnotherServer() {
        try (Named good = new Named()) {
            AtomicInteger begun = new AtomicInteger();
            RdmaServer bad =
                    RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> begun.incrementAndGet());
            try (RdmaClient client = builder()
                    .target(Target.of(List.of(good.address(), bad.localAddress())))
                    .idempotent(true)
                    .connect()) {
                awaitAll(good);
                Patience.until("both", () -> !bad.connections().isEmpty());
                List<CompletableFuture<byte[]>> requests = new ArrayList<>();
                List<Future<ByteBuf>> buffers = new ArrayList<>();
                Patience.until("the bad one has some", () -> {
                    for (int i = 0; i < 20; i++) { // at once, so that both are loaded
                        requests.add(client.request(patternBytes(5000, 1)));
                        buffers.add(client.request(Unpooled.wrappedBuffer(patternBytes(50, 1))));
                    }
                    return begun.get() > 15;
                });
                bad.close();
                requests.forEach(request -> assertThat(port(Patience.await("a reply", request)))
                        .isEqualTo(good.address().getPort()));
                for (Future<ByteBuf> each : buffers) {
                    ByteBuf reply = done("a reply", each).getNow();
                    assertThat(reply.readInt()).isEqualTo(good.address().getPort());
                    reply.release();
                }
            }
        }
    }

    /** Keeps what is written, and fails it as a device does whose peer answers no more. */
    private static final class Unreachable extends ChannelOutboundHandlerAdapter {
        final Queue<ChannelPromise> sent = new ConcurrentLinkedQueue<>();

        @Override
        public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
            ReferenceCountUtil.release(message);
            sent.add(promise);
        }

        void end(Channel channel) {
            channel.eventLoop().execute(() -> {
                sent.forEach(promise -> promise.tryFailure(
                        new WorkCompletionException("SEND of 64 bytes", WorkStatus.TRANSPORT_RETRY_EXCEEDED, 0)));
                channel.close();
            });
        }
    }

    @Test
    void whatADeviceFailsToSendMayHaveBegun() {
        AtomicReference<Consumer<List<InetSocketAddress>>> updates = new AtomicReference<>();
        try (RdmaServer bad = RdmaServer.builder().group(group).bind(host(), 0, SILENT);
                Named good = new Named();
                RdmaClient client = builder()
                        .target(Target.resolver(found -> {
                            updates.set(found);
                            found.accept(List.of(bad.localAddress()));
                            return () -> {};
                        }))
                        .connect()) {
            Unreachable unreachable = new Unreachable();
            Channel lost = client.channel();
            lost.pipeline().addFirst(unreachable);
            CompletableFuture<byte[]> again =
                    client.request(text("again"), RequestOptions.DEFAULTS.withIdempotent(true));
            CompletableFuture<byte[]> once = client.request(text("once"));
            Patience.until("both are under way", () -> unreachable.sent.size() == 2);
            updates.get().accept(List.of(bad.localAddress(), good.address()));
            Patience.until("the client uses the other one", () -> {
                CompletableFuture<byte[]> probe = client.request(text("probe"));
                Patience.until("it is sent", () -> probe.isDone() || unreachable.sent.size() > 2);
                return good.handled.get() > 0;
            });
            unreachable.end(lost);
            assertThat(port(Patience.await("a reply", again)))
                    .isEqualTo(good.address().getPort());
            assertThat(failure("once", once))
                    .isInstanceOfSatisfying(
                            ConnectionException.class,
                            failure -> assertThat(failure.mayHaveBegun()).isTrue());
        }
    }

    @Test
    void oneRequestMayBeSaidToBeHandledTwice() {
        BlockingQueue<Exchange> kept = new LinkedBlockingQueue<>();
        RdmaServer server = RdmaServer.builder()
                .group(group)
                .bind(host(), lastingPort(), (exchange, message) -> kept.add(exchange));
        int port = server.port();
        try (RdmaClient client = builder().connect(host(), port)) {
            CompletableFuture<byte[]> again =
                    client.request(text("again"), RequestOptions.DEFAULTS.withIdempotent(true));
            CompletableFuture<byte[]> once = client.request(text("once"));
            Patience.take("one", kept);
            Patience.take("the other", kept);
            server.close();
            assertThat(failure("once", once))
                    .isInstanceOfSatisfying(
                            ConnectionException.class,
                            lost -> assertThat(lost.mayHaveBegun()).isTrue());
            try (RdmaServer next = RdmaServer.builder()
                    .group(group)
                    .bind(host(), port, (exchange, message) -> exchange.reply(message.retain()))) {
                assertThat(Patience.await("again", again)).isEqualTo(text("again"));
                assertThat(next.connections().size()).isEqualTo(1);
            }
        }
    }

    @Test
    void aSlowServerIsHelpedByAnother() {
        try (Named slow = new Named();
                Named fast = new Named();
                RdmaClient client = builder()
                        .target(targetOf(slow, fast))
                        .idempotent(true)
                        .hedgeAfter(brief(5))
                        .connect()) {
            awaitUse(client, slow, fast);
            slow.silent.set(true);
            slow.handled.set(0);
            int asked = 0;
            while (slow.handled.get() < 3) {
                asked++;
                assertThat(port(Patience.await("a reply", client.request(new byte[1]))))
                        .isEqualTo(fast.address().getPort());
                assertThat(asked).isLessThan(1000);
            }
            assertThat(client.statistics().hedges()).isPositive();
            CompletableFuture<byte[]> given =
                    client.request(new byte[1], RequestOptions.DEFAULTS.withIdempotent(false));
            CompletableFuture<byte[]> hedged =
                    client.request(new byte[1], RequestOptions.DEFAULTS.withHedgeAfter(Duration.ofMillis(1)));
            assertThat(port(Patience.await("a reply", hedged)))
                    .isEqualTo(fast.address().getPort());
            given.cancel(false);
        }
    }

    @Test
    void aRequestMayBeHedgedAsItsClientSays() {
        try (Named slow = new Named();
                Named fast = new Named();
                RdmaClient client = builder()
                        .target(targetOf(slow, fast))
                        .hedgeAfter(brief(5))
                        .connect()) {
            awaitUse(client, slow, fast);
            slow.silent.set(true);
            slow.handled.set(0);
            RequestOptions harmless = RequestOptions.DEFAULTS.withIdempotent(true);
            Patience.until("the slow one is helped", () -> {
                assertThat(port(Patience.await("a reply", client.request(new byte[1], harmless))))
                        .isEqualTo(fast.address().getPort());
                return slow.handled.get() > 0;
            });
        }
    }

    /** The hedge answers in its place each time, so that no request of its own ever times out. */
    @Test
    void aServerThatOthersAnswerForIsLeftAlone() {
        try (Named dead = new Named();
                Named good = new Named();
                RdmaClient client = builder()
                        // Out for longer than the requests take: hedges for a server that is tried again, or for a
                        // good one that is slow, use up what the client has for them.
                        .backOff(Duration.ofSeconds(10), Duration.ofSeconds(20))
                        .target(targetOf(dead, good))
                        .idempotent(true)
                        .hedgeAfter(brief(50))
                        .requestTimeout(Duration.ofMinutes(5))
                        .connect()) {
            awaitUse(client, dead, good);
            dead.silent.set(true);
            dead.handled.set(0);
            for (int i = 0; i < 80; i++) { // more than the budget of hedges would allow for
                assertThat(port(Patience.await("a reply", client.request(new byte[1]))))
                        .isEqualTo(good.address().getPort());
            }
            assertThat(dead.handled.get()).isLessThan(20);
        }
    }

    /** Refuses each request as an overloaded server does. */
    @ChannelHandler.Sharable
    private static final class Overloaded extends ChannelInboundHandlerAdapter {
        private static final int OVERLOADED = 5;

        final AtomicInteger refused = new AtomicInteger();

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ByteBuf request = (ByteBuf) message;
            context.writeAndFlush(context.alloc()
                    .buffer()
                    .writeByte(OVERLOADED)
                    .writeBytes(request, request.readerIndex() + 1, 7)
                    .writeInt(0));
            request.release();
            refused.incrementAndGet();
        }
    }

    @Test
    void whatAnOverloadedServerRefusesGoesToAnother() {
        Overloaded busy = new Overloaded();
        AtomicReference<Consumer<List<InetSocketAddress>>> updates = new AtomicReference<>();
        try (Server refusing = listenForFrames(busy);
                Named good = new Named();
                RdmaClient client = builder()
                        .target(Target.resolver(found -> {
                            updates.set(found);
                            found.accept(List.of(good.address()));
                            return () -> {};
                        }))
                        .retries(1)
                        .connect()) {
            updates.get().accept(List.of(good.address(), refusing.address()));
            Patience.until("the busy one was asked often", () -> {
                assertThat(port(Patience.await("a reply", client.request(new byte[1]))))
                        .isEqualTo(good.address().getPort());
                return busy.refused.get() >= 8;
            });
        }
    }

    @Test
    void requestsThatMeetAClosingConnectionGoOn() throws Exception {
        try (Named one = new Named();
                Named two = new Named();
                RdmaClient client = builder().target(targetOf(one, two)).connect()) {
            awaitUse(client, one, two);
            for (int round = 0; round < 5; round++) {
                RdmaChannel closing = client.channel();
                List<CompletableFuture<byte[]>> requests =
                        Patience.await("the requests", closing.eventLoop().submit(() -> {
                            List<CompletableFuture<byte[]>> begun = new ArrayList<>();
                            closing.close();
                            for (int i = 0; i < 20; i++) {
                                begun.add(client.request(new byte[1]));
                            }
                            return begun;
                        }));
                requests.forEach(request ->
                        assertThat(Patience.await("a reply", request)).hasSize(Integer.BYTES));
                awaitUse(client, one, two);
            }
        }
    }

    @Test
    void aServerThatDoesNotAnswerIsLeftAlone() {
        try (Named good = new Named();
                RdmaServer dead = RdmaServer.builder().group(group).bind(host(), 0, SILENT);
                RdmaClient client = builder()
                        .target(Target.of(List.of(good.address(), dead.localAddress())))
                        .requestTimeout(brief(20))
                        .connect()) {
            awaitAll(good);
            Patience.until("both", () -> !dead.connections().isEmpty());
            int failures = 0;
            int inARow = 0;
            while (inARow < 50) {
                CompletableFuture<byte[]> request = client.request(new byte[1]);
                Patience.until("an outcome", request::isDone);
                if (request.isCompletedExceptionally()) {
                    assertThat(request.exceptionNow()).isInstanceOf(RequestException.TimedOut.class);
                    failures++;
                    inARow = 0;
                } else {
                    inARow++;
                }
                assertThat(failures).as("timeouts").isLessThan(60);
            }
            assertThat(failures).isGreaterThanOrEqualTo(5);
        }
    }

    /** That shows how little time there was, not that it does not answer. */
    @Test
    void aServerThatHadOnlyTheRestOfAHandlersTimeIsNotLeftAlone() {
        int requests = 100;
        try (Named good = new Named();
                Named slow = new Named();
                RdmaClient inner = builder().target(targetOf(good, slow)).connect();
                RdmaServer front = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(true)
                        .bind(
                                host(),
                                0,
                                (exchange, message) -> exchange.reply(inner.request(ByteBufUtil.getBytes(message))
                                        .get()));
                RdmaClient outer = builder().connect(host(), front.port())) {
            awaitUse(inner, good, slow);
            slow.silent.set(true);
            slow.handled.set(0);
            for (int i = 0; i < requests; i++) {
                CompletableFuture<byte[]> request = outer.request(new byte[1], brief(20));
                Patience.until("an outcome", request::isDone);
            }
            assertThat(slow.handled).hasValueGreaterThan(requests / 5);
        }
    }

    @Test
    void theOnlyServerIsNeverLeftAlone() {
        BlockingQueue<Exchange> kept = new LinkedBlockingQueue<>();
        AtomicBoolean answers = new AtomicBoolean();
        try (RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, (exchange, message) -> {
                    if (answers.get()) {
                        exchange.reply(message.retain());
                    } else {
                        kept.add(exchange);
                    }
                });
                RdmaClient client = builder().connect(host(), server.port())) {
            for (int i = 0; i < 20; i++) {
                assertThat(failure("a request", client.request(new byte[1], Duration.ofMillis(1))))
                        .isInstanceOf(RequestException.TimedOut.class);
            }
            answers.set(true);
            assertThat(Patience.await("a reply", client.request(new byte[1]))).hasSize(1);
            assertThat(client.state()).isEqualTo(ClientState.READY);
        }
    }

    @Test
    void oldConnectionsAreReplaced() {
        AtomicInteger connections = new AtomicInteger();
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .onConnect(channel -> connections.incrementAndGet())
                        .bind(host(), 0, (exchange, message) -> exchange.reply(message.retain()));
                RdmaClient client =
                        builder().maxConnectionAge(Duration.ofMillis(50)).connect(host(), server.port())) {
            Patience.until("some were replaced", () -> {
                assertThat(Patience.await("a reply", client.request(patternBytes(20, 3))))
                        .isEqualTo(patternBytes(20, 3));
                return connections.get() >= 5;
            });
            Patience.until("the old ones end", () -> server.connections().size() <= 2);
            assertThat(client.lateReplies()).isZero();
        }
    }
}
