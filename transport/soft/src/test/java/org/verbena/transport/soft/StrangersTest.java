package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;

/** Strangers at the door: a listener stays open to honest clients whatever they do. */
@Timeout(240)
class StrangersTest {
    /** {@code -Dverbena.soft.strangers=5000} shows what many of them cost. */
    private static final int STRANGERS = Integer.getInteger("verbena.soft.strangers", 500);

    private static final byte[] REQUEST = RawPeer.request(0x1002, RawPeer.hex("00100010"));

    /** No handshake runs out of time while a test lasts. */
    private static final SoftOptions PATIENT = SoftOptions.ofSystemProperties().with(o -> {
        o.handshakeTimeoutMillis = 100_000;
        o.maxHandshakes = 64;
        o.maxHandshakesPerAddress = 16;
    });

    private static Socket silent(SoftFixture fixture, String from) throws IOException {
        Socket socket = new Socket();
        socket.bind(new InetSocketAddress(InetAddress.getByName(from), 0));
        socket.connect(fixture.address, RawPeer.PATIENCE_MILLIS);
        return socket;
    }

    private static void closeAll(List<Socket> sockets) throws IOException {
        for (Socket socket : sockets) {
            socket.close();
        }
    }

    @Test
    void honestClientsConnectBesideSilentOnes() throws IOException {
        List<Socket> silent = new ArrayList<>();
        List<Long> micros = new ArrayList<>();
        try (SoftFixture fixture = new SoftFixture(PATIENT)) {
            for (int i = 1; i <= STRANGERS; i++) {
                silent.add(silent(fixture, "127.0.0.1"));
                if (i % 10 == 0) {
                    long start = System.nanoTime();
                    RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS);
                    client.awaitConnected();
                    fixture.awaitAccepted().awaitConnected();
                    micros.add((System.nanoTime() - start) / 1_000);
                }
            }
            assertThat(new RawPeer(silent.getFirst()).isEnded())
                    .as("the first one made room")
                    .isTrue();
        } finally {
            closeAll(silent);
        }
        micros.sort(null);
        System.out.println(micros.size() + " honest clients beside " + STRANGERS + " silent ones: median "
                + micros.get(micros.size() / 2) + " us, p99 " + micros.get(micros.size() * 99 / 100) + " us, most "
                + micros.getLast() + " us");
    }

    /**
     * Silent connections as fast as one thread can make them, besides those that are there; the limits are the
     * defaults.
     */
    @Test
    void honestClientsConnectDuringAFlood() throws Exception {
        List<Long> micros = new ArrayList<>();
        AtomicBoolean over = new AtomicBoolean();
        AtomicLong flooded = new AtomicLong();
        long begin = System.nanoTime();
        try (SoftFixture fixture = new SoftFixture(SoftOptions.ofSystemProperties())) {
            CountDownLatch there = new CountDownLatch(1);
            Thread flood = Thread.ofPlatform().start(() -> {
                ArrayDeque<Socket> sockets = new ArrayDeque<>();
                try {
                    while (!over.get()) {
                        Socket socket = silent(fixture, "127.0.0.2");
                        socket.setSoLinger(true, 0);
                        sockets.add(socket);
                        if (flooded.incrementAndGet() == STRANGERS) {
                            there.countDown();
                        }
                        if (sockets.size() > STRANGERS) {
                            sockets.remove().close();
                        }
                    }
                    closeAll(new ArrayList<>(sockets));
                } catch (IOException e) {
                    there.countDown();
                    System.out.println("the flood ends: " + e);
                }
            });
            there.await();
            for (int i = 0; i < 100; i++) {
                long start = System.nanoTime();
                fixture.connect(EndpointOptions.DEFAULTS).awaitConnected();
                fixture.awaitAccepted().awaitConnected();
                micros.add((System.nanoTime() - start) / 1_000);
            }
            over.set(true);
            flood.join();
        }
        micros.sort(null);
        System.out.printf(
                "%d honest clients in a flood of %d silent ones, %.0f a second: median %d us, p99 %d us, most %d us%n",
                micros.size(),
                flooded.get(),
                flooded.get() * 1e9 / (System.nanoTime() - begin),
                micros.get(micros.size() / 2),
                micros.get(micros.size() * 99 / 100),
                micros.getLast());
    }

    @Test
    void aListenerThatClosesEndsUnfinishedHandshakes() throws IOException {
        try (SoftFixture fixture = new SoftFixture(PATIENT);
                RawPeer silent = new RawPeer(silent(fixture, "127.0.0.1"));
                RawPeer slow = new RawPeer(silent(fixture, "127.0.0.1"))) {
            slow.send(Arrays.copyOf(REQUEST, 10));
            // Taken from the backlog behind them, and stays open.
            RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS);
            client.awaitConnected();
            fixture.awaitAccepted().awaitConnected();
            fixture.closeListener();
            assertThat(silent.isEnded()).isTrue();
            assertThat(slow.isEnded()).isTrue();
            assertThat(client.isDisconnected()).isFalse();
        }
    }

    @Test
    void anAddressMakesRoomForItself() throws IOException {
        List<Socket> flood = new ArrayList<>();
        try (SoftFixture fixture = new SoftFixture(PATIENT);
                RawPeer slow = new RawPeer(silent(fixture, "127.0.0.3"))) {
            slow.send(Arrays.copyOf(REQUEST, 10));
            for (int i = 0; i < 3 * PATIENT.maxHandshakes(); i++) {
                flood.add(silent(fixture, "127.0.0.2"));
            }
            assertThat(new RawPeer(flood.getFirst()).isEnded())
                    .as("the flood's first")
                    .isTrue();
            slow.send(Arrays.copyOfRange(REQUEST, 10, REQUEST.length));
            assertThat(slow.readFrame().key()).isEqualTo("MPA ID Rep Frame");
            fixture.awaitAccepted().awaitConnected();
        } finally {
            closeAll(flood);
        }
    }

    @Test
    void manyAddressesMakeRoomOldestFirst() throws IOException {
        List<Socket> flood = new ArrayList<>();
        try (SoftFixture fixture = new SoftFixture(PATIENT)) {
            int count = PATIENT.maxHandshakes() + 8;
            for (int i = 0; i < count; i++) {
                flood.add(silent(fixture, "127.0.0." + (2 + i % 32)));
            }
            for (int i = 0; i < 8; i++) {
                assertThat(new RawPeer(flood.get(i)).isEnded()).as("no. " + i).isTrue();
            }
            RawPeer next = new RawPeer(flood.get(8));
            next.send(REQUEST);
            assertThat(next.readFrame().key()).isEqualTo("MPA ID Rep Frame");
            fixture.awaitAccepted().awaitConnected();
        } finally {
            closeAll(flood);
        }
    }

    @Test
    void waitsForItsUserRatherThanDropCompleteRequests() throws IOException {
        SoftOptions few = PATIENT.with(o -> o.maxHandshakes = 4);
        List<RawPeer> peers = new ArrayList<>();
        try (SoftFixture fixture = new SoftFixture(few)) {
            List<IncomingConnection> asked = new CopyOnWriteArrayList<>();
            fixture.listening.whenRequested(asked::add);
            for (int i = 0; i < 40; i++) {
                RawPeer peer = RawPeer.connect(fixture.address);
                peer.send(REQUEST);
                peers.add(peer);
            }
            // One more if a request came between its connection and the next one.
            Patience.until("four requests", () -> asked.size() >= 4);
            for (int turn = 0; turn < 20; turn++) {
                fixture.loop.submit(() -> {}).syncUninterruptibly();
            }
            assertThat(asked).hasSizeLessThanOrEqualTo(5);
            for (int i = 0; i < peers.size(); i++) {
                int next = i;
                Patience.until("another request", () -> asked.size() > next);
                asked.get(i).reject(new byte[] {1});
            }
            for (RawPeer peer : peers) {
                assertThat(peer.readFrame().privateData()).endsWith((byte) 1);
            }
        } finally {
            for (RawPeer peer : peers) {
                peer.close();
            }
        }
    }

    /** A request that is read to make room may be reported by the selector once more, with nothing left to read. */
    @Test
    void keepsARequestThatWasReadBeforeItsEventCame() throws Exception {
        SoftOptions one = PATIENT.with(o -> o.maxHandshakes = 1);
        List<IncomingConnection> asked = new CopyOnWriteArrayList<>();
        CountDownLatch held = new CountDownLatch(1);
        CountDownLatch holding = new CountDownLatch(1);
        try (SoftFixture fixture = new SoftFixture(one);
                RawPeer first = RawPeer.connect(fixture.address)) {
            fixture.listening.whenRequested(asked::add);
            first.send(Arrays.copyOf(REQUEST, 10));
            fixture.loop.execute(() -> {
                holding.countDown();
                try {
                    held.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            holding.await();
            try (RawPeer second = RawPeer.connect(fixture.address)) {
                first.send(Arrays.copyOfRange(REQUEST, 10, REQUEST.length));
                held.countDown();
                Patience.until("the first request", () -> asked.size() == 1);
                asked.getFirst().reject(new byte[] {1});
                assertThat(first.readFrame().privateData()).endsWith((byte) 1);
                second.send(REQUEST);
                Patience.until("the second request", () -> asked.size() == 2);
                asked.getLast().reject(new byte[] {2});
                assertThat(second.readFrame().privateData()).endsWith((byte) 2);
            }
        }
    }

    @Test
    void anAddressThatTriesKeysConnectsNoMoreForAWhile() throws IOException {
        SoftOptions strict = SoftOptions.ofSystemProperties().with(o -> {
            o.handshakeTimeoutMillis = 2_000;
            o.wrongKeysPerSecond = 1;
        });
        try (SoftFixture fixture = new SoftFixture(strict)) {
            RegisteredMemory table = fixture.region(64, Access.REMOTE_WRITE);
            int tried = 0;
            boolean isRejected = false;
            // On a slow machine it takes more of them: each second makes up for one.
            while (!isRejected && tried < 10 * KeyGuesses.FREE) {
                try (RawPeer peer = new RawPeer(silent(fixture, "127.0.0.2"))) {
                    peer.send(REQUEST);
                    isRejected = (peer.readFrame().flags() & 0x2000) != 0;
                    if (!isRejected) {
                        int key = 0x01010101 * (tried + 1);
                        peer.send(peer.tagged(RawPeer.WRITE, key, table.address(), new byte[8]));
                        assertThat(peer.readTerminate()).isEqualTo(0x1100);
                        tried++;
                    }
                }
            }
            assertThat(isRejected).as("rejected").isTrue();
            assertThat(tried).isGreaterThanOrEqualTo(KeyGuesses.FREE);
            try (RawPeer other = new RawPeer(silent(fixture, "127.0.0.3"))) {
                other.send(REQUEST);
                assertThat(other.readFrame().flags() & 0x2000)
                        .as("another address")
                        .isZero();
            }
        }
    }

    @Test
    void rejectsPeersThatItCannotServe() throws IOException {
        try (SoftFixture fixture = new SoftFixture(SoftOptions.ofSystemProperties())) {
            fixture.listening.whenRequested(connection -> {
                RecordingEndpointHandler handler = fixture.handler("server");
                handler.whenPrepared(endpoint -> endpoint.disconnect());
                connection.accept(fixture.loop, EndpointOptions.DEFAULTS, handler);
            });
            RecordingEndpointHandler client = fixture.connect(EndpointOptions.DEFAULTS);
            assertThat(client.awaitDisconnected())
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining("rejected");
        }
    }

    /** A socket that the loop does not take is closed, not forgotten. */
    @Test
    void closesASocketThatItCannotRegister() throws IOException {
        SoftContext context = SoftContext.of(SoftOptions.ofSystemProperties());
        SoftProvider provider = new SoftProvider(SoftOptions.ofSystemProperties());
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        try (SocketChannel blocking = SocketChannel.open()) {
            InetSocketAddress anywhere = new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
            SoftListener listener = new SoftListener(
                    group.next(),
                    context,
                    anywhere,
                    ListenOptions.DEFAULTS,
                    new RecordingListenerHandler(group.next()));
            PendingConnection pending = new PendingConnection(listener, anywhere, anywhere, 0);
            Patience.await("begun", group.next().submit(() -> pending.begin(blocking)));
            assertThat(blocking.isOpen()).isFalse();
        } finally {
            Patience.await("the loop ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
        }
    }
}
