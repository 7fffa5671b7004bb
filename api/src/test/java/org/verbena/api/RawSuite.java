package org.verbena.api;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.Future;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.Patience;

/** What framing RAW has of the connection and of the device that the other framings keep to themselves. */
public abstract class RawSuite extends ApiSuite {

    /** The most private data of a connect request. */
    protected abstract int greatestConnectBytes();

    /** The most private data of an acceptance. */
    protected abstract int greatestAcceptBytes();

    private static ServerBootstrap serving() {
        return new ServerBootstrap().childOption(RdmaChannelOption.FRAMING, Framing.RAW);
    }

    private Bootstrap raw(ChannelHandler... handlers) {
        return bootstrap(handlers).option(RdmaChannelOption.FRAMING, Framing.RAW);
    }

    /** Records private data and becoming active, in order; and answers if it is told to. */
    private static final class Watch extends ChannelInboundHandlerAdapter {
        final List<String> seen = new CopyOnWriteArrayList<>();
        private final byte[] answer;

        Watch(byte... answer) {
            this.answer = answer;
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            seen.add("active");
            context.fireChannelActive();
        }

        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (event instanceof PrivateDataEvent peers) {
                seen.add(new String(peers.data(), US_ASCII).replace("\0", ""));
                if (answer.length > 0) {
                    context.channel().config().setOption(RdmaChannelOption.ACCEPT_PRIVATE_DATA, answer);
                }
            }
            context.fireUserEventTriggered(event);
        }
    }

    private static byte[] privateData(RdmaChannel channel) {
        Object event = Patience.take("the peer's private data", inbox(channel).events);
        assertThat(event).isInstanceOf(PrivateDataEvent.class);
        return ((PrivateDataEvent) event).data();
    }

    @Test
    void exchangesPrivateDataBeforeTheChannelsAreActive() {
        Watch atServer = new Watch("welcome".getBytes(US_ASCII));
        Watch atClient = new Watch();
        try (Server server = new Server(serving(), atServer)) {
            RdmaChannel client = connect(
                    raw(atClient).option(RdmaChannelOption.CONNECT_PRIVATE_DATA, "hello".getBytes(US_ASCII)), server);
            RdmaChannel peer = server.next();
            Patience.until("the client is active", () -> atClient.seen.size() == 2);
            assertThat(atServer.seen).containsExactly("hello", "active");
            assertThat(atClient.seen).containsExactly("welcome", "active");
            client.writeAndFlush(pattern(client, 10, 1));
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, 1));
            done("closing", client.close());
        }
    }

    @Tag("lab-full")
    @Test
    void tellsOfAPeerWithoutPrivateData() {
        try (Server server = new Server(serving())) {
            RdmaChannel client = connect(raw(), server);
            // All zeros, or no byte at all.
            assertThat(new String(privateData(server.next()), US_ASCII).replace("\0", ""))
                    .isEmpty();
            assertThat(new String(privateData(client), US_ASCII).replace("\0", ""))
                    .isEmpty();
            done("closing", client.close());
        }
    }

    @Test
    void carriesAsMuchPrivateDataAsTheDeviceCan() {
        byte[] request = patternBytes(greatestConnectBytes(), 1);
        byte[] answer = patternBytes(greatestAcceptBytes(), 2);
        try (Server server = new Server(serving().childOption(RdmaChannelOption.ACCEPT_PRIVATE_DATA, answer))) {
            RdmaChannel client = connect(raw().option(RdmaChannelOption.CONNECT_PRIVATE_DATA, request), server);
            assertThat(privateData(server.next())).startsWith(request);
            assertThat(privateData(client)).startsWith(answer);
            done("closing", client.close());
        }
    }

    @Test
    void refusesMorePrivateDataThanTheDeviceCarries() {
        if (greatestConnectBytes() == EndpointOptions.GREATEST_PRIVATE_DATA_BYTES) {
            byte[] more = new byte[EndpointOptions.GREATEST_PRIVATE_DATA_BYTES + 1];
            assertThatThrownBy(() -> EndpointOptions.DEFAULTS.with(o -> o.privateData = more))
                    .isInstanceOf(IllegalArgumentException.class);
            return;
        }
        byte[] request = patternBytes(greatestConnectBytes() + 1, 1);
        byte[] answer = patternBytes(greatestAcceptBytes() + 1, 2);
        try (LoggedWarnings logged = new LoggedWarnings("org.verbena");
                Server server = new Server(serving().childOption(RdmaChannelOption.ACCEPT_PRIVATE_DATA, answer))) {
            ChannelFuture tooMuch = raw().option(RdmaChannelOption.CONNECT_PRIVATE_DATA, request)
                    .connect(server.address());
            assertThat(failure("too long a request", tooMuch))
                    .isInstanceOf(ConnectionException.class)
                    .hasMessageContaining("at most " + greatestConnectBytes() + " bytes of private data")
                    .hasMessageContaining("not " + request.length);
            assertThat(failure("too long an answer", raw().connect(server.address())))
                    .isInstanceOf(ConnectionException.class);
            Patience.until(
                    "the server says why",
                    () -> logged.texts().stream()
                            .anyMatch(line ->
                                    line.contains("at most " + greatestAcceptBytes() + " bytes of private data")));
            assertThat(server.accepted).isEmpty();
        }
    }

    @Test
    void aHandlerRejectsAPeerForItsPrivateData() {
        ChannelHandler guard = new Guard();
        try (Server server = new Server(serving(), guard)) {
            Bootstrap stranger = raw().option(RdmaChannelOption.CONNECT_PRIVATE_DATA, new byte[] {13});
            assertThat(failure("a stranger", stranger.connect(server.address())))
                    .isInstanceOf(ConnectionException.Rejected.class);
            assertThat(server.accepted).isEmpty();
            RdmaChannel client = connect(raw().option(RdmaChannelOption.CONNECT_PRIVATE_DATA, new byte[] {7}), server);
            server.next();
            done("closing", client.close());
        }
    }

    @ChannelHandler.Sharable
    private static final class Guard extends ChannelInboundHandlerAdapter {
        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (event instanceof PrivateDataEvent peers && peers.data()[0] != 7) {
                context.close();
            }
        }
    }

    @Tag("lab-full")
    @Test
    void otherFramingsKeepThePrivateDataToThemselves() {
        try (Server server = listen()) {
            ChannelFuture connecting = bootstrap()
                    .option(RdmaChannelOption.CONNECT_PRIVATE_DATA, new byte[] {1})
                    .connect(server.address());
            assertThat(failure("connecting with MESSAGE", connecting))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("CONNECT_PRIVATE_DATA")
                    .hasMessageContaining("RAW");
            assertThat(server.accepted).isEmpty();
        }
    }

    @Tag("lab-full")
    @Test
    void copiesPrivateDataWhenItIsSet() {
        RdmaChannel channel =
                (RdmaChannel) done("registering", raw().register()).channel();
        byte[] data = {1, 2, 3};
        channel.config().setOption(RdmaChannelOption.CONNECT_PRIVATE_DATA, data);
        Arrays.fill(data, (byte) 0);
        assertThat(channel.config().getOption(RdmaChannelOption.CONNECT_PRIVATE_DATA))
                .containsExactly(1, 2, 3);
        assertThat(channel.config().getOption(RdmaChannelOption.ACCEPT_PRIVATE_DATA))
                .isNull();
        done("closing", channel.close());
    }

    // ---- queues and timers

    /** Whether the device repeats sends that find no receive, as InfiniBand and RoCE do. */
    protected abstract boolean repeatsSends();

    @Test
    void hasQueuesOfTheDepthsAskedFor() {
        ServerBootstrap shallow = serving().childOption(RdmaChannelOption.RECEIVE_DEPTH, 3);
        try (Server server = new Server(shallow)) {
            RdmaChannel client = connect(
                    raw().option(RdmaChannelOption.SEND_DEPTH, 1).option(RdmaChannelOption.RECEIVE_DEPTH, 2), server);
            RdmaChannel peer = server.next();
            assertThat(client.capabilities().sendDepth()).isEqualTo(1);
            assertThat(client.capabilities().receiveDepth()).isEqualTo(2);
            assertThat(peer.capabilities().receiveDepth()).isEqualTo(3);
            for (int round = 0; round < 10; round++) {
                for (int i = 0; i < 3; i++) { // as many as the peer can take; one at a time goes to the device
                    client.write(pattern(client, 100 + i, round));
                }
                client.flush();
                for (int i = 0; i < 3; i++) {
                    assertThat(inbox(peer).next()).isEqualTo(patternBytes(100 + i, round));
                }
                settle(client, peer);
            }
            done("closing", client.close());
        }
    }

    @Test
    void tellsThePeerWhenToRepeatASendOrRefuses() {
        try (Server server = new Server(serving())) {
            Bootstrap quick = raw().option(RdmaChannelOption.MIN_RNR_TIMER_MICROS, 640);
            ChannelFuture connecting = quick.connect(server.address());
            if (repeatsSends()) {
                RdmaChannel client =
                        (RdmaChannel) done("connecting", connecting).channel();
                RdmaChannel peer = server.next();
                assertStillWorks(client, peer);
                assertStillWorks(peer, client);
                done("closing", client.close());
            } else {
                assertThat(failure("a timer that the device does not have", connecting))
                        .isInstanceOf(ConnectionException.class)
                        .hasMessageContaining("minRnrTimerMicros 640")
                        .hasMessageContaining("InfiniBand and RoCE");
            }
        }
    }

    // ---- kinds of SEND

    private static List<Object> eventsAfterSetup(RdmaChannel channel, int count) {
        List<Object> events = new ArrayList<>();
        while (events.size() < count) {
            Object event = Patience.take("an event", inbox(channel).events);
            if (!(event instanceof PrivateDataEvent)) {
                events.add(event);
            }
        }
        return events;
    }

    private static void assertStillWorks(RdmaChannel from, RdmaChannel to) {
        from.writeAndFlush(pattern(from, 100, 77));
        assertThat(inbox(to).next()).isEqualTo(patternBytes(100, 77));
    }

    @Test
    void sendsImmediateDataOrRefusesIt() {
        try (Server server = new Server(serving())) {
            RdmaChannel client = connect(raw(), server);
            RdmaChannel peer = server.next();
            if (!client.capabilities().immediateData()) {
                ChannelFuture refused = client.writeAndFlush(
                        RawMessage.of(pattern(client, 10, 1)).withImmediate(1));
                assertThat(failure("immediate data", refused))
                        .isInstanceOf(UnsupportedOperationException.class)
                        .hasMessageMatching("(?s).*(IMMEDIATE|immediate data).*");
                assertStillWorks(client, peer);
                done("closing", client.close());
                return;
            }
            client.write(pattern(client, 10, 1));
            client.write(RawMessage.of(pattern(client, 500, 2)).withImmediate(0xcafe_f00d));
            client.write(RawMessage.of(Unpooled.EMPTY_BUFFER).withImmediate(7).solicited());
            ChannelFuture last = client.writeAndFlush(RawMessage.of(pattern(client, 20, 3)));
            done("the last write", last);
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(10, 1));
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(500, 2));
            assertThat(inbox(peer).next()).isEmpty();
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(20, 3));
            assertThat(eventsAfterSetup(peer, 2))
                    .containsExactly(new ImmediateDataEvent(0xcafe_f00d, 500), new ImmediateDataEvent(7, 0));
            done("closing", client.close());
        }
    }

    @Test
    void invalidatesATokenOfThePeerOrRefuses() {
        try (Server server = new Server(serving());
                Arena arena = Arena.ofShared()) {
            RdmaChannel client = connect(raw(), server);
            RdmaChannel peer = server.next();
            MemorySegment table = arena.allocate(4096, 4096);
            RegisteredMemory region = peer.memory().register(table, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
            RemoteMemory token = region.remote();
            RawMessage message = RawMessage.of(pattern(client, 30, 2)).withInvalidate(token);
            if (!client.capabilities().sendWithInvalidate()) {
                assertThat(failure("invalidating", client.writeAndFlush(message)))
                        .isInstanceOf(UnsupportedOperationException.class)
                        .hasMessageContaining("INVALIDATE");
                assertStillWorks(client, peer);
                done("closing", client.close());
                region.close();
                return;
            }
            ByteBuf early = pattern(client, 100, 1);
            done("a write", client.write(token, 0, early));
            early.release();
            done("the message", client.writeAndFlush(message));
            assertThat(inbox(peer).next()).isEqualTo(patternBytes(30, 2));
            assertThat(eventsAfterSetup(peer, 1)).containsExactly(new KeyInvalidatedEvent(token.key()));
            assertThat(table.asSlice(0, 100).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(patternBytes(100, 1));
            ByteBuf late = pattern(client, 100, 9);
            client.write(token, 0, late)
                    .awaitUninterruptibly(Patience.LIMIT.toMillis()); // its outcome is the provider's
            late.release();
            Patience.until("the connection ends for the access", () -> !client.isOpen());
            assertThat(table.asSlice(0, 100).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(patternBytes(100, 1));
            region.close();
        }
    }

    /** The content of the message is what the read before it fetches. */
    @Test
    void aFencedMessageWaitsForTheReadBeforeIt() {
        int length = 32 << 10;
        ServerBootstrap largeReceives = serving().childOption(RdmaChannelOption.RECEIVE_BUFFER_BYTES, length);
        try (Server server = new Server(largeReceives);
                Arena arena = Arena.ofShared()) {
            RdmaChannel client = connect(raw(), server);
            RdmaChannel peer = server.next();
            MemorySegment table = arena.allocate(length, 4096);
            MemorySegment.copy(patternBytes(length, 5), 0, table, ValueLayout.JAVA_BYTE, 0, length);
            RegisteredMemory region = peer.memory().register(table, Access.REMOTE_READ);
            for (int bytes : new int[] {length, 64}) { // the shorter one would be sent inline without its fence
                ByteBuf relay = client.alloc().buffer(bytes, bytes);
                ByteBuf fetched = relay.retainedSlice(0, bytes);
                Future<Void> read = client.read(region.remote(), 0, relay);
                ChannelFuture sent = client.writeAndFlush(RawMessage.of(fetched).fenced());
                done("the read", read);
                done("the message", sent);
                byte[] arrived = inbox(peer).next();
                if (client.capabilities().readSinkNeedsRemoteWrite()) {
                    assertThat(arrived).hasSize(bytes); // such a device fills other memory, which is copied later
                } else {
                    assertThat(arrived).isEqualTo(patternBytes(bytes, 5));
                }
                relay.release();
            }
            done("closing", client.close());
            region.close();
        }
    }

    @Tag("lab-full")
    @Test
    void otherFramingsRefuseKindsOfSend() {
        try (Server server = listen()) {
            RdmaChannel client = connect(server);
            RdmaChannel peer = server.next();
            ChannelFuture refused =
                    client.writeAndFlush(RawMessage.of(pattern(client, 10, 1)).fenced());
            assertThat(failure("a RawMessage with MESSAGE", refused))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("RawMessage")
                    .hasMessageContaining("RAW")
                    .hasMessageContaining("MESSAGE");
            assertStillWorks(client, peer);
            done("closing", client.close());
        }
    }
}
