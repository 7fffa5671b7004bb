package org.verbena.transport.soft;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingListenerHandler;

/** A listener that takes TCP connections of other protocols tells them by their first bytes. */
@Timeout(240)
class PlainConnectionsTest {
    private static final byte[] REQUEST = RawPeer.request(0x1002, RawPeer.hex("00100010"));

    /** Long enough for a test that waits for it, and no handshake of the others runs out of time. */
    private static final int SHORT_MILLIS = 1_000;

    private final BlockingQueue<Plain> plain = new LinkedBlockingQueue<>();
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;
    private RecordingListenerHandler listening;
    private InetSocketAddress address;

    /** A connection that left the listener. */
    private record Plain(SocketChannel channel, ByteBuffer firstBytes) {
        /** What was read of it. */
        String first() {
            return US_ASCII.decode(firstBytes.duplicate()).toString();
        }

        /** What the peer sent, up to its end. */
        String all() throws IOException {
            channel.configureBlocking(true);
            StringBuilder text = new StringBuilder(US_ASCII.decode(firstBytes.duplicate()));
            ByteBuffer more = ByteBuffer.allocate(100);
            while (channel.read(more.clear()) >= 0) {
                text.append(US_ASCII.decode(more.flip()));
            }
            return text.toString();
        }
    }

    private void listen(SoftOptions options, ListenOptions listenOptions) {
        SoftProvider provider = new SoftProvider(options);
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
        listening = new RecordingListenerHandler(loop) {
            @Override
            public void onPlainConnection(Listener from, SocketChannel channel, ByteBuffer firstBytes) {
                plain.add(new Plain(channel, firstBytes));
            }
        };
        provider.listen(loop, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), listenOptions, listening);
        address = listening.awaitListening().localAddress();
    }

    private void listen() {
        listen(
                SoftOptions.ofSystemProperties().with(o -> o.handshakeTimeoutMillis = 100_000),
                new ListenOptions(64, true, true, 0));
    }

    private Plain awaitPlain() {
        return Patience.take("a plain connection", plain);
    }

    @AfterEach
    void end() throws IOException {
        group.shutdownGracefully(0, 0, TimeUnit.SECONDS).awaitUninterruptibly();
        for (Plain one : plain) {
            one.channel.close();
        }
    }

    private SocketChannel client() throws IOException {
        return SocketChannel.open(address);
    }

    private static void send(SocketChannel to, byte[] bytes) throws IOException {
        to.write(ByteBuffer.wrap(bytes));
    }

    /** Whether the stream ends here, by FIN or reset. */
    private static boolean isEnded(SocketChannel channel) {
        try {
            return channel.read(ByteBuffer.allocate(1)) < 0;
        } catch (IOException reset) {
            return true;
        }
    }

    /** The listener takes nobody until the latch is open: what was sent by then is there when the time begins. */
    private CountDownLatch holdLoop() {
        CountDownLatch latch = new CountDownLatch(1);
        loop.execute(() -> {
            try {
                assertThat(latch.await(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                        .isTrue();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        return latch;
    }

    private void oneAtATime(SocketChannel to, byte[] bytes) throws IOException {
        to.setOption(StandardSocketOptions.TCP_NODELAY, true);
        for (byte one : bytes) {
            to.write(ByteBuffer.wrap(new byte[] {one}));
            Patience.turns(1, loop); // which reads it
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "G",
                "GET / HTTP/1.1\r\nHost: here\r\n\r\n",
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                "\u0016\u0003\u0001\u0002",
                "MPA",
                "MPA IDENTIFY yourself, please, at length",
                "MPA ID Rep Frame and more",
                "MPA ID Req Fram!"
            })
    void losesNoByteOfAnotherProtocol(String text) throws Exception {
        listen();
        try (SocketChannel whole = client();
                SocketChannel slow = client()) {
            send(whole, text.getBytes(US_ASCII));
            whole.shutdownOutput();
            assertThat(awaitPlain().all()).isEqualTo(text);
            oneAtATime(slow, text.getBytes(US_ASCII));
            slow.shutdownOutput();
            assertThat(awaitPlain().all()).isEqualTo(text);
        }
    }

    @Test
    void decidesAtTheFirstByteThatDiffers() throws Exception {
        listen();
        try (SocketChannel client = client()) {
            oneAtATime(client, "MPA ID Req Fr".getBytes(US_ASCII));
            assertThat(plain).as("it may be MPA yet").isEmpty();
            send(client, "x".getBytes(US_ASCII));
            assertThat(awaitPlain().first()).isEqualTo("MPA ID Req Frx");
        }
    }

    @Test
    void takesMpaByteByByte() throws Exception {
        listen();
        try (SocketChannel client = client()) {
            oneAtATime(client, REQUEST);
            listening.awaitRequest().reject(new byte[0]);
            assertThat(plain).isEmpty();
        }
    }

    @Test
    void waitsForNobody() throws Exception {
        listen();
        try (SocketChannel silent = client();
                SocketChannel half = client();
                SocketChannel http = client();
                SocketChannel iwarp = client()) {
            send(half, "MPA".getBytes(US_ASCII));
            send(http, "GET /".getBytes(US_ASCII));
            assertThat(awaitPlain().first()).isEqualTo("GET /");
            send(iwarp, REQUEST);
            listening.awaitRequest().reject(new byte[0]);
            send(silent, REQUEST);
            listening.awaitRequest().reject(new byte[0]);
        }
    }

    @Test
    void dropsTheSilentWhenTheHandshakesTimeIsOver() throws Exception {
        listen(
                SoftOptions.ofSystemProperties().with(o -> o.handshakeTimeoutMillis = SHORT_MILLIS),
                new ListenOptions(64, true, true, 0));
        CountDownLatch sent = holdLoop();
        try (SocketChannel silent = client();
                SocketChannel half = client()) {
            send(half, "MPA ID".getBytes(US_ASCII));
            sent.countDown();
            assertThat(silent.read(ByteBuffer.allocate(1))).isEqualTo(-1);
            assertThat(isEnded(half)).isTrue();
            assertThat(plain).isEmpty();
        }
    }

    @Test
    void takesTheSilentForPlainAfterTheGivenTime() throws Exception {
        listen(
                SoftOptions.ofSystemProperties().with(o -> o.handshakeTimeoutMillis = 100_000),
                new ListenOptions(64, true, true, SHORT_MILLIS));
        CountDownLatch sent = holdLoop();
        try (SocketChannel iwarp = client();
                SocketChannel silent = client();
                SocketChannel half = client()) {
            send(iwarp, Arrays.copyOf(REQUEST, 18)); // known for what it is, and the oldest
            send(half, "MPA".getBytes(US_ASCII));
            sent.countDown();
            Plain first = awaitPlain();
            Plain second = awaitPlain();
            assertThat(first.firstBytes().remaining() + second.firstBytes().remaining())
                    .isEqualTo(3);
            assertThat(silent.isConnected()).isTrue();
            send(iwarp, Arrays.copyOfRange(REQUEST, 18, REQUEST.length));
            IncomingConnection request = listening.awaitRequest();
            assertThat(request.isPending()).isTrue();
            request.reject(new byte[0]);
            first.channel().close();
            second.channel().close();
        }
    }

    @Test
    void dropsOtherProtocolsUnlessAsked() throws Exception {
        listen(SoftOptions.ofSystemProperties(), ListenOptions.DEFAULTS);
        try (SocketChannel http = client()) {
            send(http, "GET /".getBytes(US_ASCII));
            assertThat(isEnded(http)).isTrue();
            assertThat(plain).isEmpty();
        }
    }

    @Test
    void freesThePlaceOfAHandshake() throws Exception {
        listen(
                SoftOptions.ofSystemProperties().with(o -> {
                    o.handshakeTimeoutMillis = 100_000;
                    o.maxHandshakes = 1;
                }),
                new ListenOptions(64, true, true, 0));
        for (int i = 0; i < 5; i++) {
            try (SocketChannel http = client()) {
                send(http, "GET /".getBytes(US_ASCII));
                awaitPlain().channel().close();
            }
        }
        try (SocketChannel iwarp = client()) {
            send(iwarp, REQUEST);
            listening.awaitRequest().reject(new byte[0]);
        }
    }
}
