package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.VirtualHandlers;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.RequestFailure;
import org.verbena.transport.spi.Patience;

/** What a server does for requests that nobody waits for any more: as little as it can. */
public abstract class CancellationSuite extends ApiSuite {
    private static final Duration LONG = Duration.ofMinutes(10);

    /** What a handler has of a request; it answers when the test says so. */
    private record Held(Exchange exchange, byte[] message, AtomicInteger cancelled) {
        Held(Exchange exchange, byte[] message) {
            this(exchange, message, new AtomicInteger());
            exchange.onCancel(cancelled::incrementAndGet);
        }
    }

    private final BlockingQueue<Held> held = new LinkedBlockingQueue<>();

    private final MessageHandler holding =
            MessageHandler.ofBytes((exchange, message) -> held.add(new Held(exchange, message)));

    private RdmaServer serve(boolean virtual) {
        return RdmaServer.builder().group(group).virtualThreads(virtual).bind(host(), 0, holding);
    }

    private RdmaClient client(RdmaServer server) {
        return RdmaClient.builder().group(group).requestTimeout(LONG).connect(host(), server.port());
    }

    private static void write(RdmaChannel channel, String hex) {
        channel.writeAndFlush(Unpooled.wrappedBuffer(HexFormat.of().parseHex(hex.replace(" ", ""))));
    }

    private static String hex(byte[] frame) {
        return HexFormat.of().formatHex(frame);
    }

    /** Cancelled by its future, by its timeout, by its client's end; with the JDK's futures and Netty's. */
    @Test
    void cancellationTravels() {
        for (boolean virtual : new boolean[] {false, true}) {
            try (RdmaServer server = serve(virtual)) {
                for (int how = 0; how < 4; how++) {
                    RdmaClient client = client(server);
                    Duration timeout = how == 2 ? brief(50) : LONG;
                    CompletableFuture<byte[]> answered = client.request(new byte[] {1});
                    Held first = Patience.take("the first request", held);
                    CompletableFuture<byte[]> bytes = new CompletableFuture<>();
                    Future<ByteBuf> buffer = null;
                    if (how == 1) {
                        buffer = client.request(Unpooled.wrappedBuffer(new byte[] {2}), timeout);
                    } else {
                        bytes = client.request(new byte[] {2}, timeout);
                    }
                    Held second = Patience.take("the second request", held);
                    if (how != 2) { // which is cancelled by time
                        assertThat(second.exchange.isCancelled()).isFalse();
                        assertThat(second.cancelled).hasValue(0);
                    }
                    switch (how) {
                        case 0 -> assertThat(bytes.cancel(true)).isTrue();
                        case 1 -> assertThat(buffer.cancel(true)).isTrue();
                        case 2 ->
                            assertThat(failure("the request", bytes)).isInstanceOf(RequestException.TimedOut.class);
                        default -> client.close();
                    }
                    Patience.until("it is cancelled", () -> second.cancelled.get() == 1);
                    assertThat(second.exchange.isCancelled()).isTrue();
                    AtomicInteger later = new AtomicInteger();
                    second.exchange.onCancel(later::incrementAndGet);
                    assertThat(later).as("at once").hasValue(1);
                    CompletableFuture<Void> inVain = second.exchange.reply(second.message);
                    assertThat(failure("the reply", inVain))
                            .isInstanceOf(how == 3 ? ConnectionException.class : CancellationException.class);
                    if (how == 3) {
                        Patience.until("the first is cancelled too", () -> first.cancelled.get() == 1);
                        failure("the first", answered);
                        continue;
                    }
                    first.exchange.reply(first.message);
                    assertThat(Patience.await("the first reply", answered)).containsExactly(1);
                    assertThat(first.exchange.isCancelled()).isFalse();
                    assertThat(client.lateReplies()).as("it was not sent").isZero();
                    client.close();
                    assertThat(first.cancelled).as("it was answered").hasValue(0);
                    assertThat(second.cancelled).as("once").hasValue(1);
                }
            }
        }
    }

    @Test
    void whatIsCancelledBeforeItsTurnIsNotBegun() {
        BlockingQueue<byte[]> begun = new LinkedBlockingQueue<>();
        Semaphore turns = new Semaphore(0);
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(true)
                        .maxHandlers(1, 1000)
                        .bind(host(), 0, MessageHandler.ofBytes((exchange, message) -> {
                            begun.add(message);
                            turns.acquire();
                            exchange.reply(message);
                        }));
                RdmaClient client = client(server)) {
            CompletableFuture<byte[]> first = client.request(new byte[] {1});
            Patience.take("the first", begun);
            List<CompletableFuture<byte[]>> cancelled = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                cancelled.add(client.request(new byte[] {2}));
            }
            CompletableFuture<byte[]> last = client.request(new byte[] {3});
            RdmaChannel channel = client.channel();
            Patience.until("all are sent", () -> channel.statistics().messagesSent() == 52);
            cancelled.forEach(each -> each.cancel(false));
            Patience.until("all are dropped", () -> server.abandonedRequests() == 50);
            turns.release(1000);
            assertThat(Patience.await("the first reply", first)).containsExactly(1);
            assertThat(Patience.await("the last reply", last)).containsExactly(3);
            assertThat(Patience.take("the other that was begun", begun)).containsExactly(3);
            assertThat(begun).isEmpty();
            assertThat(server.overloadedRequests() + server.expiredRequests()).isZero();
            assertThat(server.abandonedRequests()).isEqualTo(50);
        }
    }

    @Test
    void aHandlerThatWaitsIsInterruptedIfTheServerSaysSo() {
        BlockingQueue<Object> outcomes = new LinkedBlockingQueue<>();
        Semaphore never = new Semaphore(0);
        BlockingQueue<Boolean> begun = new LinkedBlockingQueue<>();
        MessageHandler waits = (exchange, message) -> {
            if (message.readableBytes() == 1) {
                outcomes.add(Thread.currentThread().isInterrupted());
                exchange.reply(message.retain());
                return;
            }
            begun.add(true);
            try {
                never.acquire();
                outcomes.add("released");
            } catch (InterruptedException interruption) {
                outcomes.add(interruption);
                throw interruption;
            }
        };
        for (boolean interrupts : new boolean[] {true, false}) {
            try (LoggedWarnings logged = new LoggedWarnings(Messenger.class.getName());
                    RdmaServer server = RdmaServer.builder()
                            .group(group)
                            .virtualThreads(true)
                            .maxHandlers(1, 100)
                            .interruptCancelled(interrupts)
                            .bind(host(), 0, waits);
                    RdmaClient client = client(server)) {
                CompletableFuture<byte[]> request = client.request(new byte[2]);
                Patience.take("it has begun", begun);
                request.cancel(false);
                CompletableFuture<byte[]> next = client.request(new byte[1]);
                if (interrupts) {
                    assertThat(Patience.take("the interruption", outcomes)).isInstanceOf(InterruptedException.class);
                } else {
                    settle(client.channel(), server.connections().iterator().next());
                    assertThat(outcomes).isEmpty();
                    never.release();
                    assertThat(Patience.take("its end", outcomes)).isEqualTo("released");
                }
                assertThat(Patience.await("the next reply", next)).hasSize(1);
                assertThat(Patience.take("the next", outcomes))
                        .as("the next is interrupted")
                        .isEqualTo(false);
                assertThat(logged.texts()).isEmpty();
            }
        }
        assertThatThrownBy(() -> RdmaServer.builder()
                        .group(group)
                        .interruptCancelled(true)
                        .bind(host(), 0, waits))
                .isInstanceOf(IllegalStateException.class);
    }

    /** A program that sends what it means as the reply: its clients wait until their timeouts. */
    @Test
    void aHandlerThatSendsAndNeverRepliesIsLogged() {
        MessageHandler sends = (exchange, message) -> {
            exchange.send(message.retainedDuplicate());
            if (message.readableBytes() == 2) {
                exchange.reply(message.retain());
            }
        };
        BlockingQueue<Integer> sent = new LinkedBlockingQueue<>();
        try (LoggedWarnings logged = new LoggedWarnings(Messenger.class.getName());
                RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, sends);
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .requestTimeout(LONG)
                        .onMessage((exchange, message) -> sent.add(message.readableBytes()))
                        .connect(host(), server.port())) {
            client.send(new byte[3]);
            assertThat(Patience.await("a reply", client.request(new byte[2]))).hasSize(2);
            settle(client.channel(), server.connections().iterator().next());
            assertThat(logged.texts()).isEmpty();
            for (int i = 0; i < 20; i++) {
                sent.clear();
                CompletableFuture<byte[]> unanswered = client.request(new byte[1]);
                assertThat(Patience.take("what it sends", sent)).isEqualTo(1);
                unanswered.cancel(false);
            }
            Patience.until("all are cancelled", () -> !logged.texts().isEmpty());
            assertThat(logged.texts().getFirst()).contains("reply");
            assertThat(logged.texts()).as("not for each of them").hasSizeLessThan(20);
        }
    }

    /** More hang than are read at once, so that their cancels wait behind requests that are not read. */
    @Test
    void whatHasExpiredEndsAlsoIfNoCancelIsRead() {
        Semaphore never = new Semaphore(0);
        AtomicInteger interrupted = new AtomicInteger();
        MessageHandler hangs = (exchange, message) -> {
            if (message.readableBytes() == 1) {
                exchange.reply(message.retain());
                return;
            }
            try {
                never.acquire();
            } catch (InterruptedException expired) {
                interrupted.incrementAndGet();
                throw expired;
            }
        };
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(true)
                        .interruptCancelled(true)
                        .bind(host(), 0, hangs);
                RdmaClient client = client(server)) {
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            for (int i = 0; i < VirtualHandlers.MAX + 100; i++) {
                requests.add(client.request(new byte[2], Duration.ofSeconds(1)));
            }
            CompletableFuture<byte[]> last = client.request(new byte[1]);
            for (CompletableFuture<byte[]> each : requests) {
                assertThat(failure("a request", each)).isInstanceOf(RequestException.TimedOut.class);
            }
            assertThat(Patience.await("the last reply", last)).hasSize(1);
            Patience.until(
                    "each is interrupted, or dropped",
                    () -> interrupted.get() + server.expiredRequests() + server.abandonedRequests() == requests.size());
        }
    }

    /** The time of a peer that says nothing further. */
    @Test
    void aRequestIsCancelledWhenItsTimeIsOver() {
        for (boolean virtual : new boolean[] {false, true}) {
            try (RdmaServer server = serve(virtual)) {
                RdmaChannel stranger = stranger(server);
                write(stranger, "04 00000000000001 ffffffff 68"); // no limit
                write(stranger, "04 00000000000002 00100000 6869"); // about a second
                write(stranger, "04 00000000000003 00080000 686970"); // about half of that
                List<Held> all = new ArrayList<>();
                for (int i = 0; i < 3; i++) {
                    all.add(Patience.take("a request", held));
                }
                for (Held each : all) {
                    if (each.message.length > 1) {
                        Patience.until("it is cancelled", () -> each.cancelled.get() == 1);
                        assertThat(failure("a reply", each.exchange.reply(each.message)))
                                .isInstanceOf(CancellationException.class);
                    }
                }
                Held unlimited = all.stream()
                        .filter(each -> each.message.length == 1)
                        .findFirst()
                        .orElseThrow();
                assertThat(unlimited.cancelled).hasValue(0);
                unlimited.exchange.reply(unlimited.message);
                assertThat(hex(inbox(stranger).next())).isEqualTo("0200000000000001" + "68");
                assertThat(server.expiredRequests() + server.abandonedRequests())
                        .as("they had begun")
                        .isZero();
                done("closing", stranger.close());
            }
        }
    }

    @Test
    void anActionThatFailsHindersNoOther() {
        try (RdmaServer server = serve(false);
                RdmaClient client = client(server)) {
            CompletableFuture<byte[]> request = client.request(new byte[1]);
            Held one = Patience.take("the request", held);
            AtomicInteger ran = new AtomicInteger();
            one.exchange.onCancel(() -> {
                throw new IllegalStateException("for a test");
            });
            one.exchange.onCancel(ran::incrementAndGet);
            request.cancel(false);
            Patience.until("the one behind it runs", () -> ran.get() == 1);
            one.exchange.onCancel(() -> {
                throw new IllegalStateException("for a test");
            });
            CompletableFuture<byte[]> next = client.request(new byte[2]);
            Held two = Patience.take("the next request", held);
            two.exchange.reply(two.message);
            assertThat(Patience.await("the next reply", next)).hasSize(2);
        }
    }

    @Test
    void aMessageIsNeverCancelled() {
        try (RdmaServer server = serve(false)) {
            RdmaClient client = client(server);
            client.send(new byte[1]);
            Held message = Patience.take("the message", held);
            client.close();
            Patience.until("the connection is gone", () -> server.connections().isEmpty());
            assertThat(message.exchange.isCancelled()).isFalse();
            assertThat(message.cancelled).hasValue(0);
        }
    }

    // ---- byte for byte

    /** A peer that takes nothing for a while gets no work that nobody waits for, nor a word about it. */
    @Test
    void whatIsGivenUpBeforeItsTurnIsNotSent() {
        int count = 100;
        int behind = 10;
        for (boolean inTime : new boolean[] {false, true}) {
            try (Server server = listenForFrames();
                    RdmaClient client = RdmaClient.builder()
                            .group(group)
                            .requestTimeout(LONG)
                            .maxPending(behind + count + 1, 100_000_000)
                            .connect(host(), server.address().getPort())) {
                RdmaChannel atServer = server.next();
                List<Future<Void>> sends = fill(client, atServer, behind);
                for (int round = 0; round < 2; round++) { // the second has the room of the first
                    List<CompletableFuture<byte[]>> givenUp = new ArrayList<>();
                    for (int i = 1; i < count; i++) {
                        givenUp.add(client.request(new byte[] {1}, inTime ? LONG : brief(50)));
                    }
                    if (inTime) {
                        Patience.turns(client.channel().eventLoop());
                        givenUp.forEach(each -> each.cancel(false));
                    }
                    for (CompletableFuture<byte[]> each : givenUp) {
                        assertThat(failure("a request", each))
                                .isInstanceOf(inTime ? CancellationException.class : RequestException.TimedOut.class);
                    }
                    Patience.turns(client.channel().eventLoop());
                }
                CompletableFuture<byte[]> wanted = client.request(new byte[] {2});
                Patience.turns(client.channel().eventLoop());
                atServer.config().setAutoRead(true);
                byte[] frame = nextRequest(atServer);
                assertThat(payload(frame)).containsExactly(2);
                reply(atServer, frame);
                assertThat(Patience.await("the reply", wanted)).containsExactly(2);
                sends.forEach(send -> done("a message", send));
                done("another", client.send(Unpooled.wrappedBuffer(new byte[] {3})));
                byte[] next = inbox(atServer).next();
                assertThat(hex(next)).isEqualTo("0000000000000000" + "03");
            }
        }
    }

    @Test
    void cancelsAreAsDocumented() {
        try (Server server = listenForFrames();
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .connect(host(), server.address().getPort())) {
            RdmaChannel atServer = server.next();
            CompletableFuture<byte[]> request = client.request(new byte[] {0x68});
            assertThat(hex(inbox(atServer).next()))
                    .startsWith("0400000000000001")
                    .endsWith("68");
            request.cancel(false);
            assertThat(hex(inbox(atServer).next())).isEqualTo("0800000000000001");
            CompletableFuture<byte[]> next = client.request(new byte[] {0x69});
            assertThat(hex(inbox(atServer).next()))
                    .startsWith("0400000000000002")
                    .endsWith("69");
            write(atServer, "08 00000000000007"); // nobody's, and ignored
            write(atServer, "02 00000000000002 6a");
            assertThat(Patience.await("the reply", next)).containsExactly(0x6a);
        }
    }

    @Test
    void strangeCancelsDoNoHarm() {
        try (RdmaServer server = serve(false)) {
            RdmaChannel stranger = stranger(server);
            write(stranger, "08 00000000000001"); // of a request that never was
            write(stranger, "04 00000000000001 ffffffff 68");
            Held one = Patience.take("a request", held);
            write(stranger, "08 00000000000002");
            write(stranger, "08 00000000000001");
            Patience.until("it is cancelled", () -> one.cancelled.get() == 1);
            write(stranger, "08 00000000000001"); // again
            write(stranger, "04 00000000000003 ffffffff 69");
            Held two = Patience.take("a request", held);
            two.exchange.reply(two.message);
            assertThat(hex(inbox(stranger).next())).isEqualTo("0200000000000003" + "69");
            write(stranger, "08 00000000000003"); // it has its answer
            write(stranger, "04 00000000000004 ffffffff 6b");
            Held four = Patience.take("a request", held);
            assertThat(one.cancelled).hasValue(1);
            write(stranger, "08 00000000000004 00"); // too long
            done("the server closing", stranger.closeFuture());
            Patience.until("a lost client cancels", () -> four.cancelled.get() == 1);
            assertThat(two.cancelled).hasValue(0);
        }
    }

    /** The later one would take the place of the earlier, which nothing could end any more. */
    @Test
    void aNumberThatIsInUseEndsTheConnectionAndAllItsRequests() {
        for (boolean virtual : new boolean[] {false, true}) {
            for (String again : new String[] {"04 00000000000007 ffffffff 6a", "0c 00000000000007 ffffffff 02 0000"}) {
                try (RdmaServer server = serve(virtual)) {
                    RdmaChannel stranger = stranger(server);
                    write(stranger, "04 00000000000007 ffffffff 69");
                    write(stranger, "04 00000000000008 ffffffff 69");
                    Held one = Patience.take("a request", held);
                    Held two = Patience.take("a request", held);
                    write(stranger, again);
                    done("the server closing", stranger.closeFuture());
                    Patience.until("both end", () -> one.cancelled.get() == 1 && two.cancelled.get() == 1);
                    assertThat(held).isEmpty();
                }
            }
        }
    }

    @Test
    void whatHasNoAnswerIsBoundedAndEndsWithItsConnection() {
        for (boolean virtual : new boolean[] {false, true}) {
            for (int bytes : new int[] {1, 1000}) {
                int max = bytes == 1 ? 10 : 5;
                try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(virtual)
                        .maxOpenRequests(10, 5500)
                        .bind(host(), 0, holding)) {
                    RdmaClient client = client(server);
                    List<CompletableFuture<byte[]>> requests = new ArrayList<>();
                    for (int i = 0; i < max; i++) {
                        requests.add(client.request(new byte[bytes]));
                    }
                    List<Held> all = new ArrayList<>();
                    for (int i = 0; i < max; i++) {
                        all.add(Patience.take("a request", held));
                    }
                    assertThat(((RequestException.Refused) failure("one more", client.request(new byte[bytes])))
                                    .reason())
                            .isEqualTo(RequestException.Refused.Reason.LIMIT);
                    Held first = all.removeFirst();
                    first.exchange.reply(first.message);
                    assertThat(Patience.await(
                                    "a reply", CompletableFuture.anyOf(requests.toArray(CompletableFuture[]::new))))
                            .isNotNull();
                    client.request(new byte[bytes]);
                    all.add(Patience.take("there is room again", held));
                    client.close();
                    Patience.until("all end", () -> all.stream().allMatch(each -> each.cancelled.get() == 1));
                }
            }
        }
    }

    /** Frames of all kinds, of any length, with numbers that exist and numbers that do not. */
    @Test
    void randomFramesHarmNobody() {
        long seed = new Random().nextLong();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        MessageHandler some = MessageHandler.ofBytes((exchange, message) -> {
            exchange.onCancel(() -> {});
            switch (message.length % 3) {
                case 0 -> exchange.reply(message);
                case 1 -> throw new RequestFailure(message.length, "for a test");
                default -> {} // no answer
            }
        });
        try (RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, some);
                RdmaClient client = client(server)) {
            for (int i = 0; i < 60; i++) {
                RdmaChannel stranger = stranger(server);
                for (int frames = random.nextInt(20); frames > 0 && stranger.isActive(); frames--) {
                    ByteBuf frame = Unpooled.buffer();
                    frame.writeLong((long) random.nextInt(14) << 56 | random.nextInt(4));
                    frame.writeBytes(patternBytes(random.nextInt(random.nextBoolean() ? 12 : 3000), i));
                    stranger.writeAndFlush(frame);
                }
                assertThat(Patience.await("a reply to another", client.request(new byte[3])))
                        .hasSize(3);
                done("closing", stranger.close());
            }
            Patience.until("all strangers are gone", () -> server.connections().size() == 1);
            assertThat(Patience.await("the shutdown", server.shutdown(LONG))).isTrue();
        }
    }
}
