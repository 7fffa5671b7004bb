package org.verbena.sockets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.BindException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ServerSocketFactory;
import javax.net.SocketFactory;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.spi.Patience;

/**
 * What the JDK documents of its sockets, and what programs rely on besides: the same cases for the JDK's own and for
 * RDMA's.
 */
@Timeout(180)
public abstract class SocketSuite {
    private static final int PIECE = 64 << 10;

    private final Deque<AutoCloseable> open = new ArrayDeque<>();

    /** Makes the clients. */
    protected abstract SocketFactory clients();

    /** Makes the servers. */
    protected abstract ServerSocketFactory servers();

    /** Where servers listen. */
    protected String host() {
        return "127.0.0.1";
    }

    /** How much a direction carries in the tests of much. */
    protected int manyBytes() {
        return 16 << 20;
    }

    /** More than both ends and all that is between them keep of what nobody reads. */
    protected int tooManyBytes() {
        return 64 << 20;
    }

    /** How many connections at once. */
    protected int manySockets() {
        return 50;
    }

    enum Kind {
        PLATFORM,
        VIRTUAL;

        <T> Running<T> start(Callable<T> task) {
            FutureTask<T> result = new FutureTask<>(task);
            return new Running<>(
                    this == VIRTUAL
                            ? Thread.ofVirtual().start(result)
                            : Thread.ofPlatform().daemon().start(result),
                    result);
        }
    }

    record Running<T>(Thread thread, FutureTask<T> result) {
        T join() {
            return Patience.await("the thread", result);
        }

        /** Returns when the thread waits. */
        Running<T> letBlock() {
            Patience.until("the thread waits", this::isBlocked);
            return this;
        }

        /** The JDK's sockets wait in a system call, which is no state of a thread. */
        private boolean isBlocked() {
            return switch (thread.getState()) {
                case WAITING, TIMED_WAITING, TERMINATED -> true;
                default -> {
                    StackTraceElement[] stack = thread.getStackTrace();
                    yield stack.length > 0
                            && stack[0].isNativeMethod()
                            && stack[0].getClassName().startsWith("sun.nio.ch.");
                }
            };
        }
    }

    record Pair(Socket client, Socket server) {}

    @AfterEach
    void closeAll() throws Exception {
        while (!open.isEmpty()) {
            open.pop().close();
        }
    }

    private <T extends AutoCloseable> T closeLater(T socket) {
        open.push(socket);
        return socket;
    }

    private ServerSocket listen() throws IOException {
        return closeLater(servers().createServerSocket(0, 50, InetAddress.getByName(host())));
    }

    private Socket connect(ServerSocket server) throws IOException {
        return closeLater(clients().createSocket(host(), server.getLocalPort()));
    }

    private Pair pair() throws IOException {
        ServerSocket server = listen();
        Socket client = connect(server);
        return new Pair(client, closeLater(server.accept()));
    }

    private static byte[] random(long seed, int length) {
        byte[] bytes = new byte[length];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    // ---- streams
    // -----------------------------------------------------------------------------------------------------------------

    @ParameterizedTest
    @EnumSource
    void echoesLines(Kind kind) throws Exception {
        Pair pair = pair();
        Running<Void> echo = kind.start(() -> {
            pair.server().getInputStream().transferTo(pair.server().getOutputStream());
            pair.server().shutdownOutput();
            return null;
        });
        BufferedReader in =
                new BufferedReader(new InputStreamReader(pair.client().getInputStream(), StandardCharsets.UTF_8));
        for (int i = 0; i < 200; i++) {
            pair.client().getOutputStream().write(("line " + i + "\n").getBytes(StandardCharsets.UTF_8));
            assertThat(in.readLine()).isEqualTo("line " + i);
        }
        pair.client().shutdownOutput();
        assertThat(in.readLine()).isNull();
        echo.join();
    }

    @Test
    void carriesSingleBytes() throws Exception {
        Pair pair = pair();
        for (int value = 0; value < 256; value++) {
            pair.client().getOutputStream().write(value);
            assertThat(pair.server().getInputStream().read()).isEqualTo(value);
        }
    }

    @Test
    void carriesDataStreams() throws Exception {
        Pair pair = pair();
        DataOutputStream out = new DataOutputStream(pair.client().getOutputStream());
        out.writeLong(Long.MIN_VALUE);
        out.writeUTF("ключ");
        out.writeDouble(Math.PI);
        DataInputStream in = new DataInputStream(pair.server().getInputStream());
        assertThat(in.readLong()).isEqualTo(Long.MIN_VALUE);
        assertThat(in.readUTF()).isEqualTo("ключ");
        assertThat(in.readDouble()).isEqualTo(Math.PI);
    }

    @ParameterizedTest
    @EnumSource
    void carriesMuchInBothDirectionsAtOnce(Kind kind) throws Exception {
        Pair pair = pair();
        long seed = 7;
        byte[] there = random(seed, manyBytes());
        byte[] back = random(seed + 1, manyBytes());
        Running<Void> first = kind.start(() -> writeInPieces(pair.client(), there, seed + 2));
        Running<Void> second = kind.start(() -> writeInPieces(pair.server(), back, seed + 3));
        Running<byte[]> third = kind.start(() -> pair.client().getInputStream().readAllBytes());
        byte[] arrived = pair.server().getInputStream().readAllBytes();
        assertThat(Arrays.equals(arrived, there)).isTrue();
        assertThat(Arrays.equals(third.join(), back)).isTrue();
        first.join();
        second.join();
    }

    private static Void writeInPieces(Socket socket, byte[] bytes, long seed) throws IOException {
        Random random = new Random(seed);
        OutputStream out = socket.getOutputStream();
        int at = 0;
        while (at < bytes.length) {
            int length = Math.min(bytes.length - at, 1 + random.nextInt(200_000));
            out.write(bytes, at, length);
            at += length;
        }
        socket.shutdownOutput();
        return null;
    }

    @Test
    void readsPartsOfWhatArrived() throws Exception {
        Pair pair = pair();
        byte[] sent = random(3, 100_000);
        pair.client().getOutputStream().write(sent);
        InputStream in = pair.server().getInputStream();
        byte[] got = new byte[sent.length];
        int at = 0;
        while (at < got.length) {
            int read = in.read(got, at, Math.min(777, got.length - at));
            assertThat(read).isBetween(1, 777);
            at += read;
        }
        assertThat(got).isEqualTo(sent);
    }

    @Test
    void checksTheBoundsOfArrays() throws Exception {
        Pair pair = pair();
        InputStream in = pair.client().getInputStream();
        OutputStream out = pair.client().getOutputStream();
        assertThatThrownBy(() -> in.read(new byte[4], 2, 3)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> out.write(new byte[4], -1, 3)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(in.read(new byte[4], 4, 0)).isZero();
        out.write(new byte[0]);
        out.write(9);
        assertThat(pair.server().getInputStream().read()).isEqualTo(9);
    }

    @Test
    void tellsWhatIsAvailable() throws Exception {
        Pair pair = pair();
        InputStream in = pair.server().getInputStream();
        assertThat(in.available()).isZero();
        pair.client().getOutputStream().write(new byte[1000]);
        Patience.until("all has arrived", () -> available(in) == 1000);
        assertThat(in.skip(400)).isEqualTo(400);
        assertThat(in.available()).isEqualTo(600);
        pair.server().close();
        assertThatThrownBy(in::available).isInstanceOf(SocketException.class);
    }

    private static int available(InputStream in) {
        try {
            return in.available();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    // ---- back-pressure
    // -----------------------------------------------------------------------------------------------------------------

    @ParameterizedTest
    @EnumSource
    void aWriterWaitsForAReader(Kind kind) throws Exception {
        Pair pair = pair();
        AtomicLong written = new AtomicLong();
        int pieces = tooManyBytes() / PIECE;
        Running<Void> writer = kind.start(() -> {
            OutputStream out = pair.client().getOutputStream();
            for (int i = 0; i < pieces; i++) {
                byte[] piece = new byte[PIECE];
                piece[0] = (byte) i;
                out.write(piece);
                written.addAndGet(PIECE);
            }
            return null;
        });
        Patience.until("the writer has begun", () -> written.get() > 0);
        Pair other = pair();
        long before;
        do { // until no more goes, while others talk
            before = written.get();
            for (int i = 0; i < 100; i++) {
                other.client().getOutputStream().write(i);
                assertThat(other.server().getInputStream().read()).isEqualTo(i);
            }
        } while (written.get() > before);
        assertThat(before).isLessThan(tooManyBytes());
        InputStream in = pair.server().getInputStream();
        for (int i = 0; i < pieces; i++) {
            byte[] piece = in.readNBytes(PIECE);
            assertThat(piece).hasSize(PIECE);
            assertThat(piece[0]).isEqualTo((byte) i);
        }
        writer.join();
    }

    @ParameterizedTest
    @EnumSource
    void closeWakesAWriter(Kind kind) throws Exception {
        Pair pair = pair();
        Running<Throwable> writer = kind.start(() -> failure(() -> {
            OutputStream out = pair.client().getOutputStream();
            while (true) {
                out.write(new byte[PIECE]);
            }
        }));
        writer.letBlock();
        pair.client().setSoLinger(true, 0);
        pair.client().close();
        assertThat(writer.join()).isInstanceOf(SocketException.class);
    }

    // ---- timeouts
    // -----------------------------------------------------------------------------------------------------------------

    @ParameterizedTest
    @EnumSource
    void aReadTimesOutAndMayBeTriedAgain(Kind kind) throws Exception {
        Pair pair = pair();
        pair.server().setSoTimeout(20);
        assertThat(pair.server().getSoTimeout()).isEqualTo(20);
        InputStream in = pair.server().getInputStream();
        for (int i = 0; i < 2; i++) {
            Throwable failure = kind.start(() -> failure(in::read)).join();
            assertThat(failure).isInstanceOf(SocketTimeoutException.class).hasMessage("Read timed out");
        }
        pair.server().setSoTimeout(0);
        pair.client().getOutputStream().write(5);
        assertThat(kind.start(in::read).join()).isEqualTo(5);
    }

    @ParameterizedTest
    @EnumSource
    void acceptTimesOutAndMayBeTriedAgain(Kind kind) throws Exception {
        ServerSocket server = listen();
        server.setSoTimeout(20);
        Throwable failure = kind.start(() -> failure(server::accept)).join();
        assertThat(failure).isInstanceOf(SocketTimeoutException.class).hasMessage("Accept timed out");
        server.setSoTimeout(0);
        Running<Socket> accepting = kind.start(server::accept).letBlock();
        Socket client = connect(server);
        assertThat(closeLater(accepting.join()).getPort()).isEqualTo(client.getLocalPort());
    }

    /** Nobody accepts, and the backlog is used up. */
    @Test
    void connectingTimesOut() throws Exception {
        ServerSocket server = closeLater(servers().createServerSocket(0, 1, InetAddress.getByName(host())));
        InetSocketAddress address = new InetSocketAddress(host(), server.getLocalPort());
        Throwable failure = null;
        for (int i = 0; i < 10 && failure == null; i++) {
            Socket client = closeLater(clients().createSocket());
            failure = failure(() -> {
                client.connect(address, 200);
                return null;
            });
            assertThat(client.isClosed()).isEqualTo(failure != null);
        }
        assertThat(failure).isInstanceOf(SocketTimeoutException.class).hasMessage("Connect timed out");
    }

    @Test
    void refusesTimeoutsBelowZero() throws Exception {
        Socket socket = closeLater(clients().createSocket());
        assertThatThrownBy(() -> socket.setSoTimeout(-1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> socket.connect(new InetSocketAddress(host(), 1), -1))
                .isInstanceOf(IllegalArgumentException.class);
    }

    // ---- half close and close
    // -----------------------------------------------------------------------------------------------------------------

    @Test
    void halfClosesTheOutput() throws Exception {
        Pair pair = pair();
        OutputStream out = pair.client().getOutputStream();
        out.write(1);
        pair.client().shutdownOutput();
        assertThat(pair.client().isOutputShutdown()).isTrue();
        InputStream in = pair.server().getInputStream();
        assertThat(in.read()).isEqualTo(1);
        assertThat(in.read()).isEqualTo(-1);
        assertThat(in.read()).isEqualTo(-1);
        pair.server().getOutputStream().write(2);
        assertThat(pair.client().getInputStream().read()).isEqualTo(2);
        assertThatThrownBy(() -> out.write(3)).isInstanceOf(SocketException.class);
        assertThatThrownBy(pair.client()::getOutputStream).isInstanceOf(SocketException.class);
        assertThatThrownBy(pair.client()::shutdownOutput).isInstanceOf(SocketException.class);
    }

    @ParameterizedTest
    @EnumSource
    void halfClosesTheInput(Kind kind) throws Exception {
        Pair pair = pair();
        InputStream in = pair.server().getInputStream();
        Running<Integer> reader = kind.start(in::read).letBlock();
        pair.server().shutdownInput();
        assertThat(reader.join()).isEqualTo(-1);
        assertThat(pair.server().isInputShutdown()).isTrue();
        assertThat(in.read()).isEqualTo(-1);
        assertThatThrownBy(pair.server()::getInputStream).isInstanceOf(SocketException.class);
        pair.server().getOutputStream().write(4);
        assertThat(pair.client().getInputStream().read()).isEqualTo(4);
    }

    @Test
    void readsWhatWasSentBeforeClose() throws Exception {
        Pair pair = pair();
        byte[] sent = random(5, 300_000);
        Running<byte[]> reader =
                Kind.PLATFORM.start(() -> pair.server().getInputStream().readAllBytes());
        pair.client().getOutputStream().write(sent);
        pair.client().close();
        assertThat(reader.join()).isEqualTo(sent);
        assertThat(pair.server().getInputStream().read()).isEqualTo(-1);
        assertThat(pair.server().isClosed()).isFalse();
    }

    @ParameterizedTest
    @EnumSource
    void closeWakesAReader(Kind kind) throws Exception {
        Pair pair = pair();
        InputStream in = pair.client().getInputStream();
        Running<Throwable> reader = kind.start(() -> failure(in::read)).letBlock();
        pair.client().close();
        assertThat(reader.join()).isInstanceOf(SocketException.class).hasMessage("Socket closed");
        assertThatThrownBy(in::read).isInstanceOf(SocketException.class);
        assertThatThrownBy(pair.client()::getInputStream)
                .isInstanceOf(SocketException.class)
                .hasMessage("Socket is closed");
        assertThat(pair.server().getInputStream().read()).isEqualTo(-1);
    }

    @Test
    void closingAStreamClosesItsSocket() throws Exception {
        Pair pair = pair();
        pair.client().getInputStream().close();
        assertThat(pair.client().isClosed()).isTrue();
        pair.server().getOutputStream().close();
        assertThat(pair.server().isClosed()).isTrue();
        pair.server().close();
    }

    @Test
    void aReaderThatWasToldOfTheEndIsToldAgainAfterClose() throws Exception {
        Pair pair = pair();
        InputStream in = pair.client().getInputStream();
        pair.server().close();
        assertThat(in.read()).isEqualTo(-1);
        pair.client().close();
        assertThat(in.read()).isEqualTo(-1);
    }

    @Test
    void writingToAPeerThatHasGoneFails() throws Exception {
        Pair pair = pair();
        pair.server().close();
        OutputStream out = pair.client().getOutputStream();
        Throwable failure = failure(() -> {
            while (true) {
                out.write(new byte[PIECE]);
            }
        });
        assertThat(failure).isInstanceOf(SocketException.class);
    }

    @Test
    void lingerZeroResetsThePeer() throws Exception {
        Pair pair = pair();
        pair.client().setSoLinger(true, 0);
        Running<Throwable> reader = Kind.PLATFORM.start(
                () -> failure(() -> pair.server().getInputStream().read()));
        reader.letBlock();
        pair.client().close();
        assertThat(reader.join()).isInstanceOf(SocketException.class);
    }

    @Test
    void closeWaitsWithLinger() throws Exception {
        Pair pair = pair();
        pair.client().setSoLinger(true, 30);
        byte[] sent = random(11, 100_000);
        pair.client().getOutputStream().write(sent);
        Running<byte[]> reader =
                Kind.PLATFORM.start(() -> pair.server().getInputStream().readAllBytes());
        pair.client().close();
        assertThat(reader.join()).isEqualTo(sent);
    }

    // ---- interrupts
    // -----------------------------------------------------------------------------------------------------------------

    @Test
    void aPlatformThreadIsNotDisturbedByAnInterrupt() throws Exception {
        Pair pair = pair();
        Running<Boolean> reader = Kind.PLATFORM.start(() -> {
            assertThat(pair.client().getInputStream().read()).isEqualTo(6);
            return Thread.currentThread().isInterrupted();
        });
        reader.letBlock().thread().interrupt();
        pair.server().getOutputStream().write(6);
        assertThat(reader.join()).isTrue();
    }

    @Test
    void anInterruptedVirtualThreadClosesItsSocket() throws Exception {
        Pair pair = pair();
        Running<Throwable> reader = Kind.VIRTUAL.start(
                () -> failure(() -> pair.client().getInputStream().read()));
        reader.letBlock().thread().interrupt();
        assertThat(reader.join()).isInstanceOf(SocketException.class).hasMessage("Closed by interrupt");
        assertThat(pair.client().isClosed()).isTrue();
        assertThat(pair.server().getInputStream().read()).isEqualTo(-1);
    }

    @Test
    void anInterruptedVirtualThreadClosesItsServerSocket() throws Exception {
        ServerSocket server = listen();
        Running<Throwable> accepting = Kind.VIRTUAL.start(() -> failure(server::accept));
        accepting.letBlock().thread().interrupt();
        assertThat(accepting.join()).isInstanceOf(SocketException.class).hasMessage("Closed by interrupt");
        assertThat(server.isClosed()).isTrue();
    }

    // ---- connecting and accepting
    // ----------------------------------------------------------------------------------------------------------------

    @Test
    void acceptsWhatConnectedBefore() throws Exception {
        ServerSocket server = listen();
        List<Socket> clients = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            Socket client = connect(server);
            client.getOutputStream().write(i);
            clients.add(client);
        }
        clients.get(3).close();
        boolean[] seen = new boolean[5];
        for (int i = 0; i < 5; i++) {
            seen[closeLater(server.accept()).getInputStream().read()] = true;
        }
        assertThat(seen).doesNotContain(false);
    }

    @ParameterizedTest
    @EnumSource
    void closeWakesAccept(Kind kind) throws Exception {
        ServerSocket server = listen();
        Running<Throwable> accepting = kind.start(() -> failure(server::accept)).letBlock();
        server.close();
        assertThat(accepting.join()).isInstanceOf(SocketException.class).hasMessage("Socket closed");
        assertThatThrownBy(server::accept).isInstanceOf(SocketException.class).hasMessage("Socket is closed");
    }

    @Test
    void closingAServerEndsWhatWasNotAccepted() throws Exception {
        ServerSocket server = listen();
        Socket client = connect(server);
        server.close();
        Throwable failure = failure(() -> {
            assertThat(client.getInputStream().read()).isEqualTo(-1);
            throw new SocketException("the end"); // which TCP tells as a reset
        });
        assertThat(failure).isInstanceOf(SocketException.class);
    }

    @Test
    void aPortIsFreeAfterClose() throws Exception {
        ServerSocket server = listen();
        int port = server.getLocalPort();
        assertThatExceptionOfType(BindException.class)
                .isThrownBy(() -> servers().createServerSocket(port, 1, InetAddress.getByName(host())));
        server.close();
        assertThat(closeLater(servers().createServerSocket(port, 1, InetAddress.getByName(host())))
                        .getLocalPort())
                .isEqualTo(port);
    }

    @Test
    void aServerMayTryAnotherPort() throws Exception {
        int taken = listen().getLocalPort();
        ServerSocket server = closeLater(servers().createServerSocket());
        assertThatThrownBy(server::accept).isInstanceOf(SocketException.class).hasMessage("Socket is not bound yet");
        assertThatExceptionOfType(BindException.class)
                .isThrownBy(() -> server.bind(new InetSocketAddress(host(), taken)));
        assertThat(server.isBound()).isFalse();
        server.bind(new InetSocketAddress(host(), 0));
        Socket client = connect(server);
        assertThat(closeLater(server.accept()).getPort()).isEqualTo(client.getLocalPort());
    }

    @Test
    void isRefusedWhereNobodyListens() throws Exception {
        ServerSocket server = listen();
        int port = server.getLocalPort();
        server.close();
        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> clients().createSocket(host(), port));
        Socket socket = closeLater(clients().createSocket());
        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> socket.connect(new InetSocketAddress(host(), port), 10_000));
        assertThat(socket.isClosed()).isTrue();
    }

    @Test
    void namesThatAreNotKnownAreToldAsSuch() throws Exception {
        assertThatExceptionOfType(UnknownHostException.class)
                .isThrownBy(() -> clients().createSocket("nobody.invalid", 1));
        Socket socket = closeLater(clients().createSocket());
        assertThatExceptionOfType(UnknownHostException.class)
                .isThrownBy(() -> socket.connect(InetSocketAddress.createUnresolved("nobody.invalid", 1)));
    }

    @Test
    void connectsFromAnAddress() throws Exception {
        ServerSocket server = listen();
        int free;
        try (ServerSocket other = servers().createServerSocket(0, 1, InetAddress.getByName(host()))) {
            free = other.getLocalPort();
        }
        Socket client =
                closeLater(clients().createSocket(host(), server.getLocalPort(), InetAddress.getByName(host()), free));
        assertThat(client.getLocalPort()).isEqualTo(free);
        assertThat(closeLater(server.accept()).getPort()).isEqualTo(free);
    }

    /** Whether a client has its port before it connects. */
    protected boolean takesAPortWhenItIsBound() {
        return true;
    }

    @Test
    void knowsItsAddresses() throws Exception {
        Socket fresh = closeLater(clients().createSocket());
        assertThat(fresh.isBound()).isFalse();
        assertThat(fresh.isConnected()).isFalse();
        assertThat(fresh.getLocalPort()).isEqualTo(-1);
        assertThat(fresh.getPort()).isZero();
        assertThat(fresh.getInetAddress()).isNull();
        assertThat(fresh.getRemoteSocketAddress()).isNull();
        assertThat(fresh.getLocalSocketAddress()).isNull();
        assertThatThrownBy(fresh::getInputStream)
                .isInstanceOf(SocketException.class)
                .hasMessage("Socket is not connected");

        ServerSocket server = listen();
        fresh.bind(new InetSocketAddress(host(), 0));
        if (takesAPortWhenItIsBound()) {
            assertThat(fresh.getLocalPort()).isPositive();
        }
        fresh.connect(server.getLocalSocketAddress());
        Socket accepted = closeLater(server.accept());
        assertThat(fresh.getRemoteSocketAddress())
                .isEqualTo(accepted.getLocalSocketAddress())
                .isEqualTo(new InetSocketAddress(host(), server.getLocalPort()));
        assertThat(accepted.getRemoteSocketAddress())
                .isEqualTo(fresh.getLocalSocketAddress())
                .isEqualTo(new InetSocketAddress(host(), fresh.getLocalPort()));
        assertThat(fresh.getInetAddress().getHostAddress()).isEqualTo(host());
        assertThat(fresh.getLocalAddress().getHostAddress()).isEqualTo(host());
        assertThat(fresh.toString()).contains("port=" + server.getLocalPort());
        assertThatThrownBy(() -> fresh.connect(server.getLocalSocketAddress()))
                .isInstanceOf(SocketException.class)
                .hasMessageContaining("lready connected");
        int port = fresh.getPort();
        fresh.close();
        assertThat(fresh.getPort()).isEqualTo(port);
        assertThat(fresh.isConnected()).isTrue();
        server.close();
        assertThat(server.getLocalPort()).isPositive();
    }

    @ParameterizedTest
    @EnumSource
    void servesManyAtOnce(Kind kind) throws Exception {
        ServerSocket server = listen();
        Running<Void> accepting = kind.start(() -> {
            for (int i = 0; i < manySockets(); i++) {
                Socket accepted = server.accept();
                kind.start(() -> {
                    try (accepted) {
                        accepted.getInputStream().transferTo(accepted.getOutputStream());
                    }
                    return null;
                });
            }
            return null;
        });
        List<Running<byte[]>> clients = new ArrayList<>();
        for (int i = 0; i < manySockets(); i++) {
            byte[] sent = random(i, 5000);
            clients.add(kind.start(() -> {
                try (Socket client = clients().createSocket(host(), server.getLocalPort())) {
                    client.getOutputStream().write(sent);
                    client.shutdownOutput();
                    return client.getInputStream().readAllBytes();
                }
            }));
        }
        for (int i = 0; i < manySockets(); i++) {
            assertThat(clients.get(i).join()).isEqualTo(random(i, 5000));
        }
        accepting.join();
    }

    // ---- TLS
    // -----------------------------------------------------------------------------------------------------------------

    /** The JDK's TLS over a connected socket of either kind. */
    @ParameterizedTest
    @EnumSource
    void carriesTls(Kind kind) throws Exception {
        SSLContext tls = tls();
        Pair pair = pair();
        Running<byte[]> server = kind.start(() -> {
            SSLSocket secured = (SSLSocket) tls.getSocketFactory().createSocket(pair.server(), null, true);
            secured.setUseClientMode(false);
            byte[] got = secured.getInputStream().readAllBytes();
            secured.getOutputStream().write(got, 0, 1000);
            secured.close();
            return got;
        });
        byte[] sent = random(21, 1 << 20);
        SSLSocket secured = (SSLSocket) tls.getSocketFactory().createSocket(pair.client(), "localhost", 1, true);
        secured.getOutputStream().write(sent);
        secured.shutdownOutput();
        assertThat(secured.getInputStream().readAllBytes()).isEqualTo(Arrays.copyOf(sent, 1000));
        assertThat(Arrays.equals(server.join(), sent)).isTrue();
        secured.close();
        assertThat(pair.client().isClosed()).isTrue();
    }

    private static SSLContext tls() throws Exception {
        char[] password = "password".toCharArray();
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = SocketSuite.class.getResourceAsStream("localhost.p12")) {
            keys.load(in, password);
        }
        KeyManagerFactory identity = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        identity.init(keys, password);
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(keys);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(identity.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    // ---- options
    // -----------------------------------------------------------------------------------------------------------------

    @Test
    void hasTheOptionsOfSockets() throws Exception {
        Socket socket = pair().client();
        assertThat(socket.getTcpNoDelay()).isFalse();
        socket.setTcpNoDelay(true);
        assertThat(socket.getTcpNoDelay()).isTrue();
        assertThat(socket.getKeepAlive()).isFalse();
        socket.setKeepAlive(true);
        assertThat(socket.getKeepAlive()).isTrue();
        assertThat(socket.getSoLinger()).isEqualTo(-1);
        socket.setSoLinger(true, 7);
        assertThat(socket.getSoLinger()).isEqualTo(7);
        socket.setSoLinger(false, 0);
        assertThat(socket.getSoLinger()).isEqualTo(-1);
        socket.setOOBInline(true);
        assertThat(socket.getOOBInline()).isTrue();
        socket.setReuseAddress(true);
        assertThat(socket.getReuseAddress()).isTrue();
        socket.setSendBufferSize(50_000);
        socket.setReceiveBufferSize(50_000);
        assertThat(socket.getSendBufferSize()).isPositive();
        assertThat(socket.getReceiveBufferSize()).isPositive();
        assertThatThrownBy(() -> socket.setSendBufferSize(0)).isInstanceOf(IllegalArgumentException.class);
        assertThat(socket.getSoTimeout()).isZero();
        assertThat(socket.getTrafficClass()).isZero();
        assertThatCode(() -> socket.setPerformancePreferences(1, 2, 3)).doesNotThrowAnyException();
        assertThat(socket.getChannel()).isNull();
        assertThat(socket.supportedOptions())
                .contains(
                        StandardSocketOptions.SO_RCVBUF,
                        StandardSocketOptions.SO_SNDBUF,
                        StandardSocketOptions.SO_REUSEADDR,
                        StandardSocketOptions.SO_KEEPALIVE,
                        StandardSocketOptions.SO_LINGER,
                        StandardSocketOptions.IP_TOS,
                        StandardSocketOptions.TCP_NODELAY);
        socket.setOption(StandardSocketOptions.SO_LINGER, 3);
        assertThat(socket.getOption(StandardSocketOptions.SO_LINGER)).isEqualTo(3);
        assertThatThrownBy(() -> socket.setOption(StandardSocketOptions.IP_MULTICAST_LOOP, true))
                .isInstanceOf(UnsupportedOperationException.class);
        socket.close();
        assertThatThrownBy(() -> socket.setTcpNoDelay(true)).isInstanceOf(SocketException.class);
        assertThatThrownBy(() -> socket.getOption(StandardSocketOptions.SO_LINGER))
                .isInstanceOf(SocketException.class);
    }

    @Test
    void keepsOptionsFromBeforeItConnects() throws Exception {
        ServerSocket server = listen();
        Socket socket = closeLater(clients().createSocket());
        socket.setSoTimeout(30);
        socket.setTcpNoDelay(true);
        socket.setSoLinger(true, 9);
        socket.connect(server.getLocalSocketAddress());
        assertThat(socket.getSoTimeout()).isEqualTo(30);
        assertThat(socket.getTcpNoDelay()).isTrue();
        assertThat(socket.getSoLinger()).isEqualTo(9);
        assertThatExceptionOfType(SocketTimeoutException.class)
                .isThrownBy(() -> socket.getInputStream().read());
    }

    @Test
    void hasTheOptionsOfServerSockets() throws Exception {
        ServerSocket server = closeLater(servers().createServerSocket());
        assertThat(server.getLocalPort()).isEqualTo(-1);
        assertThat(server.getLocalSocketAddress()).isNull();
        server.setReuseAddress(false);
        assertThat(server.getReuseAddress()).isFalse();
        server.setReuseAddress(true);
        assertThat(server.getReuseAddress()).isTrue();
        server.setReceiveBufferSize(70_000);
        assertThat(server.getReceiveBufferSize()).isPositive();
        server.setSoTimeout(12);
        assertThat(server.getSoTimeout()).isEqualTo(12);
        assertThat(server.supportedOptions())
                .contains(StandardSocketOptions.SO_RCVBUF, StandardSocketOptions.SO_REUSEADDR);
        assertThat(server.getOption(StandardSocketOptions.SO_REUSEADDR)).isTrue();
        server.setOption(StandardSocketOptions.SO_REUSEADDR, false);
        assertThat(server.getReuseAddress()).isFalse();
        assertThatThrownBy(() -> server.setOption(StandardSocketOptions.TCP_NODELAY, true))
                .isInstanceOf(UnsupportedOperationException.class);
        server.bind(new InetSocketAddress(host(), 0), 5);
        assertThat(server.getInetAddress().getHostAddress()).isEqualTo(host());
        assertThat(server.toString()).contains("localport=" + server.getLocalPort());
        assertThatThrownBy(() -> server.bind(new InetSocketAddress(host(), 0))).isInstanceOf(SocketException.class);
        server.close();
        assertThatThrownBy(() -> server.setSoTimeout(1)).isInstanceOf(SocketException.class);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void mayBeClosedBeforeItIsConnected(boolean created) throws Exception {
        Socket socket = clients().createSocket();
        if (created) {
            socket.setTcpNoDelay(true);
        }
        socket.close();
        socket.close();
        assertThatThrownBy(() -> socket.connect(new InetSocketAddress(host(), 1)))
                .isInstanceOf(SocketException.class)
                .hasMessage("Socket is closed");
        ServerSocket server = servers().createServerSocket();
        server.close();
        assertThatThrownBy(() -> server.bind(null)).isInstanceOf(SocketException.class);
    }

    /** Runs something that is to fail. */
    protected static Throwable failure(Callable<?> task) {
        try {
            task.call();
            return null;
        } catch (Throwable failure) {
            return failure;
        }
    }
}
