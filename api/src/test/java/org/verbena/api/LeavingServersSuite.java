package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.Future;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.verbena.api.client.Target;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RateLimitedLog;

/** What clients do when a server says that it is leaving. Byte for byte, against a server that is none. */
public abstract class LeavingServersSuite extends ApiSuite {
    private static final byte LEAVE = 7;

    private RdmaClient.Builder builder() {
        return RdmaClient.builder().group(group).backOff(Duration.ofMillis(1), Duration.ofMillis(20));
    }

    private static byte[] text(String text) {
        return text.getBytes(US_ASCII);
    }

    private static void write(RdmaChannel server, String hex, byte... rest) {
        server.writeAndFlush(Unpooled.wrappedBuffer(HexFormat.of().parseHex(hex.replace(" ", "")), rest));
    }

    private Server listen() {
        return listenForFrames(new ClosesOnLeave());
    }

    /** As servers do. */
    @ChannelHandler.Sharable
    private static class ClosesOnLeave extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            if (message instanceof ByteBuf frame && frame.getByte(frame.readerIndex()) == LEAVE) {
                frame.release();
                context.close();
            } else {
                context.fireChannelRead(message);
            }
        }
    }

    @Test
    void furtherRequestsGoToAnotherConnection() {
        try (Server server = listen();
                RdmaClient client = builder().connect(host(), server.address().getPort())) {
            RdmaChannel old = server.next();
            CompletableFuture<byte[]> first = client.request(text("first"));
            byte[] asked = inbox(old).next();
            write(old, "09 00000000000000 00000000", text("a new release"));
            RdmaChannel next = server.next();
            CompletableFuture<byte[]> second = client.request(text("second"));
            byte[] askedNext = inbox(next).next();
            assertThat(payload(askedNext)).isEqualTo(text("second"));
            reply(next, askedNext);
            assertThat(Patience.await("a reply", second)).isEqualTo(text("second"));
            assertThat(old.isActive()).as("its request waits for a reply").isTrue();
            reply(old, asked);
            assertThat(Patience.await("a reply", first)).isEqualTo(text("first"));
            done("the old one closing", old.closeFuture());
            assertThat(next.isActive()).isTrue();
        }
    }

    private static String leaving(int retryMillis) {
        return "09 00000000000000"
                + HexFormat.of()
                        .formatHex(ByteBuffer.allocate(4).putInt(retryMillis).array());
    }

    @Test
    void theServerSaysWhenItMayBeConnectedToAgain() {
        try (Server server = listen();
                RdmaClient client = builder().connect(host(), server.address().getPort())) {
            RdmaChannel old = server.next();
            long before = System.nanoTime();
            write(old, leaving(300));
            done("the old one closing", old.closeFuture());
            RdmaChannel next = server.next();
            assertThat(System.nanoTime() - before)
                    .isGreaterThanOrEqualTo(Duration.ofMillis(300).toNanos());
            assertThat(next.isActive()).isTrue();
            assertThat(client.lateReplies()).isZero();
        }
    }

    @Test
    void aClientThatFailsFastDoesNotWaitForTheServer() {
        try (Server server = listen();
                RdmaClient client =
                        builder().failFast().connect(host(), server.address().getPort())) {
            RdmaChannel old = server.next();
            write(old, leaving(1_000_000));
            done("the old one closing", old.closeFuture());
            assertThat(failure("a request", client.request(text("early"))))
                    .isInstanceOf(ConnectionException.Unavailable.class);
            assertThat(server.accepted).isEmpty();
        }
    }

    /** Asks the first of its peers to leave before they can have sent anything. */
    @ChannelHandler.Sharable
    private static final class LeavesAtOnce extends ClosesOnLeave {
        private final AtomicInteger left;

        LeavesAtOnce(int times) {
            left = new AtomicInteger(times);
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            if (left.getAndDecrement() > 0) {
                context.writeAndFlush(Unpooled.wrappedBuffer(
                        HexFormat.of().parseHex(leaving(0).replace(" ", ""))));
            }
            context.fireChannelActive();
        }
    }

    @Test
    void aServerMayLeaveAtOnceAndLogsLittleAtItsClients() {
        int times = 2 * RateLimitedLog.LINES_PER_PERIOD;
        try (LoggedWarnings logged = new LoggedWarnings("org.verbena.api.internal.client", Level.INFO);
                Server server = listenForFrames(new LeavesAtOnce(times));
                RdmaClient client =
                        builder().target(Target.of(List.of(server.address()))).start()) {
            for (int i = 0; i < times; i++) {
                done("one that is left", server.next().closeFuture());
            }
            RdmaChannel last = server.next();
            CompletableFuture<byte[]> request = client.request(text("hello"));
            reply(last, inbox(last).next());
            assertThat(Patience.await("a reply", request)).isEqualTo(text("hello"));
            assertThat(logged.texts()).hasSizeBetween(1, RateLimitedLog.LINES_PER_PERIOD);
        }
    }

    /** A server that refuses because it leaves has to be left, whether or not it says so otherwise. */
    @Test
    void aServerThatRefusesIsLeft() {
        try (Server server = listen();
                RdmaClient client = builder()
                        .idempotent(true)
                        .connect(host(), server.address().getPort())) {
            CompletableFuture<byte[]> request = client.request(text("hello"));
            for (int i = 0; i < 3; i++) {
                RdmaChannel refusing = server.next();
                byte[] asked = inbox(refusing).next();
                write(refusing, "0a" + HexFormat.of().formatHex(Arrays.copyOfRange(asked, 1, 8)) + "01");
                done("one that is left", refusing.closeFuture());
            }
            RdmaChannel next = server.next();
            reply(next, inbox(next).next());
            assertThat(Patience.await("a reply", request)).isEqualTo(text("hello"));
        }
    }

    @Test
    void whatWasRefusedWasNotBegun() {
        for (boolean repeats : new boolean[] {false, true}) {
            try (Server server = listen();
                    RdmaClient client = builder()
                            .idempotent(repeats)
                            .connect(host(), server.address().getPort())) {
                RdmaChannel old = server.next();
                CompletableFuture<byte[]> request = client.request(text("hello"));
                byte[] asked = inbox(old).next();
                write(old, "09 00000000000000 00000000");
                write(old, "0a" + HexFormat.of().formatHex(Arrays.copyOfRange(asked, 1, 8)) + "01", text("leaving"));
                if (repeats) {
                    RdmaChannel next = server.next();
                    byte[] again = inbox(next).next();
                    assertThat(payload(again)).isEqualTo(text("hello"));
                    reply(next, again);
                    assertThat(Patience.await("a reply", request)).isEqualTo(text("hello"));
                } else {
                    assertThat(failure("the request", request))
                            .isInstanceOfSatisfying(
                                    ConnectionException.class,
                                    refused ->
                                            assertThat(refused.mayHaveBegun()).isFalse());
                }
            }
        }
    }

    @Test
    void truncatedFramesEndTheConnection() {
        try (Server server = listen();
                RdmaClient client = builder().connect(host(), server.address().getPort())) {
            for (String frame :
                    new String[] {"09 00000000000000 000000", "0a 00000000000001", "0a 00000000000001 7f"}) {
                RdmaChannel accepted = server.next();
                write(accepted, frame);
                done("the client closing", accepted.closeFuture());
            }
            server.next();
            assertThat(client.lateReplies()).isZero();
        }
    }

    /** Sends one request after another until told to stop, and counts those that fail. */
    private static CompletableFuture<Integer> failures(RdmaClient client, AtomicBoolean stop) {
        return CompletableFuture.supplyAsync(
                () -> {
                    int failed = 0;
                    while (!stop.get()) {
                        failed += Patience.await(
                                "a request",
                                client.request(text("again")).handle((reply, failure) -> failure == null ? 0 : 1));
                    }
                    return failed;
                },
                task -> Thread.ofPlatform().start(task));
    }

    /** A request that is under way when the server closes may have begun: that is one of each caller. */
    @Test
    void aServerThatClosesDrawsNoRequestsAfterIt() {
        MessageHandler echo = (exchange, message) -> exchange.reply(message.retain());
        try (RdmaServer stays = RdmaServer.builder().group(group).bind(host(), 0, echo)) {
            for (int round = 0; round < 10; round++) {
                RdmaServer closes = RdmaServer.builder().group(group).bind(host(), 0, echo);
                Target both = Target.of(List.of(stays.localAddress(), closes.localAddress()));
                try (RdmaClient client = builder().target(both).connect()) {
                    Patience.until(
                            "both connections", () -> !closes.connections().isEmpty());
                    AtomicBoolean stop = new AtomicBoolean();
                    List<CompletableFuture<Integer>> callers = Stream.generate(() -> failures(client, stop))
                            .limit(4)
                            .toList();
                    Patience.await("closing", closes.closeAsync());
                    stop.set(true);
                    assertThat(callers)
                            .allSatisfy(caller -> assertThat(Patience.await("a caller", caller))
                                    .isLessThanOrEqualTo(1));
                }
            }
        }
    }

    /** Whether they wait in the channel, or in its connection, which has been given them. */
    @Test
    void whatAClosedConnectionHasNotTakenGoesToAnother() {
        int count = 100;
        for (boolean handedOver : new boolean[] {false, true}) {
            try (Server server = listen();
                    RdmaClient client =
                            builder().connect(host(), server.address().getPort())) {
                RdmaChannel old = server.next();
                int behind = handedOver ? 100 : 10;
                List<Future<Void>> sends = fill(client, old, behind);
                List<CompletableFuture<byte[]>> requests = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    requests.add(client.request(new byte[] {(byte) i}));
                }
                settle(client.channel(), old);
                while (handedOver && unsent(sends) >= behind) {
                    old.read();
                    settle(client.channel(), old);
                }
                old.close();
                RdmaChannel next = server.next();
                for (int i = 0; i < count; i++) {
                    byte[] asked = nextRequest(next);
                    assertThat(payload(asked)).hasSize(1);
                    reply(next, asked);
                }
                for (int i = 0; i < count; i++) {
                    assertThat(Patience.await("a reply", requests.get(i))).containsExactly(i);
                }
            }
        }
    }
}
