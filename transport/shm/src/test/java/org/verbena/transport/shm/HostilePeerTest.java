package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.shm.ShmFixture.Pair;
import org.verbena.transport.shm.ffm.ProcessFiles;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** A peer of this user that writes what it likes into what it shares: it harms its own connection, and no other. */
@Timeout(240)
class HostilePeerTest {
    private static final int RING_BYTES = Ring.MIN_BYTES;
    private static final int FILE_BYTES = (int) Ring.fileBytes(RING_BYTES);

    private static final long SECRET = 0x123456789abcdefL;

    /** A client without a provider. */
    static final class Attacker implements AutoCloseable {
        private final Arena arena = Arena.ofShared();
        private final SharedFile file;
        final SocketChannel socket;

        Attacker(ShmFixture fixture) throws IOException {
            this(fixture, null);
        }

        Attacker(ShmFixture fixture, @Nullable Path directory) throws IOException {
            file = SharedFile.create("verbena-attack", FILE_BYTES, false, arena);
            Ring.putSecret(file.memory(), SECRET, ~SECRET);
            Path name = SocketDirectory.open(directory).find(fixture.address);
            assertThat(name).isNotNull();
            socket = SocketChannel.open(StandardProtocolFamily.UNIX);
            socket.connect(UnixDomainSocketAddress.of(name));
        }

        MemorySegment memory() {
            return file.memory();
        }

        void request(long pid, int descriptor, int ringBytes, InetSocketAddress to) throws IOException {
            request(pid, ProcessFiles.pidNamespace(), descriptor, SECRET, ringBytes, to);
        }

        void request(long pid, long namespace, int descriptor, long secret, int ringBytes, InetSocketAddress to)
                throws IOException {
            write(new Handshake.Request(pid, namespace, descriptor, secret, ~secret, ringBytes, 16, to, to, new byte[0])
                    .encode());
        }

        Handshake.Reply awaitReply() throws IOException {
            ByteBuffer frame = null;
            Handshake.Reader reader = new Handshake.Reader();
            while (frame == null) {
                frame = reader.read(socket);
                assertThat(reader.isEnded()).isFalse();
            }
            return Handshake.Reply.decode(frame);
        }

        void request(InetSocketAddress to) throws IOException {
            request(ShmContext.PID, file.descriptor(), RING_BYTES, to);
        }

        void write(ByteBuffer bytes) throws IOException {
            while (bytes.hasRemaining()) {
                socket.write(bytes);
            }
        }

        void wake() {
            try {
                write(ByteBuffer.wrap(new byte[] {1}));
            } catch (IOException found) {
                // The victim polls, and has ended the connection.
            }
        }

        @Override
        public void close() throws IOException {
            socket.close();
            file.close();
            arena.close();
        }
    }

    static void assertUnharmed(Pair bystander, RegisteredMemory memory) {
        bystander.server().receive(1, memory, 0, 8);
        WorkRequest send = new WorkRequest(1).asSend(2, 0);
        send.buffers().add(memory, 8, 8);
        bystander.client().send(send);
        assertThat(bystander.client().awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        assertThat(bystander.server().awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
    }

    @Test
    void garbageInTheRingEndsItsConnectionAlone() throws IOException {
        SplittableRandom random = new SplittableRandom(27);
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair bystander = fixture.connect();
            RegisteredMemory memory = fixture.region(4096, Access.LOCAL_WRITE, Access.REMOTE_READ);
            for (int round = 0; round < 300; round++) {
                try (Attacker attacker = new Attacker(fixture)) {
                    attacker.request(fixture.address);
                    RecordingEndpointHandler victim = fixture.accept();
                    victim.receive(1, memory, 0, 4096);
                    scribble(attacker.memory(), random, round);
                    attacker.wake();
                    // Nonsense may look like nothing at all, so the attacker also leaves.
                    attacker.socket.close();
                    assertThat(victim.awaitDisconnected()).isInstanceOf(RdmaException.class);
                    victim.awaitReceive();
                }
            }
            assertUnharmed(bystander, memory);
            bystander.client().awaitPrepared().disconnect();
        }
    }

    /** The reader's part of the ring into which this side writes: positions that cannot be, and flags of any value. */
    @Test
    void aReaderThatLiesEndsItsConnectionAlone() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair bystander = fixture.connect();
            RegisteredMemory memory = fixture.region(RING_BYTES, Access.LOCAL_WRITE);
            for (long head : new long[] {-1, RING_BYTES + 1L, Long.MIN_VALUE, Long.MAX_VALUE}) {
                try (Attacker attacker = new Attacker(fixture)) {
                    attacker.request(fixture.address);
                    RecordingEndpointHandler victim = fixture.accept();
                    for (int direction = 0; direction < 2; direction++) {
                        Ring.publish(attacker.memory(), Ring.control(direction) + Ring.SLEEPS, head);
                        Ring.publish(attacker.memory(), Ring.control(direction) + Ring.WAITS, head);
                    }
                    Ring.publish(attacker.memory(), Ring.control(1) + Ring.HEAD, head);
                    int taken = victim.call(endpoint -> {
                        int posted = 0;
                        WorkRequest send = new WorkRequest(1);
                        send.asSend(1, 0).buffers().add(memory, 0, RING_BYTES); // longer than the ring
                        while (posted < 4 && victim.post(endpoint, send)) {
                            posted++;
                        }
                        endpoint.flush();
                        return posted;
                    });
                    assertThat(taken).isPositive();
                    assertThat(victim.awaitSends(taken))
                            .noneMatch(completion -> completion.status() == WorkStatus.SUCCESS);
                    assertThat(victim.awaitDisconnected()).isInstanceOf(RdmaException.class);
                }
            }
            assertUnharmed(bystander, memory);
            fixture.awaitIdle(fixture.serverLoop());
            bystander.client().awaitPrepared().disconnect();
        }
    }

    /** Records whose fields are extreme or random, behind a position that says they are there. */
    private static void scribble(MemorySegment memory, SplittableRandom random, int round) {
        long data = Ring.data(0, RING_BYTES);
        long at = 0;
        while (at < RING_BYTES) {
            int payload = switch (random.nextInt(4)) {
                case 0 -> 0;
                case 1 -> random.nextInt(256);
                case 2 -> random.nextInt();
                default -> Integer.MAX_VALUE - random.nextInt(64);
            };
            long word = (payload & 0xffff_ffffL) | ((long) random.nextInt(9) << 32) | ((long) random.nextInt(32) << 40);
            memory.set(ValueLayout.JAVA_LONG, data + at, word);
            memory.set(ValueLayout.JAVA_LONG, data + at + 8, random.nextLong());
            memory.set(ValueLayout.JAVA_LONG, data + at + 16, random.nextLong());
            memory.set(ValueLayout.JAVA_LONG, data + at + 24, random.nextBoolean() ? payload : random.nextLong());
            at += payload > 0 && payload < 256 ? Ring.recordBytes(payload) : Ring.HEADER_BYTES;
        }
        long tail = switch (round % 4) {
            case 0 -> RING_BYTES;
            case 1 -> random.nextLong();
            case 2 -> random.nextInt(RING_BYTES);
            default -> (long) random.nextInt(RING_BYTES / 32) * 32;
        };
        Ring.publish(memory, Ring.control(0) + Ring.TAIL, tail);
        Ring.publish(memory, Ring.control(1) + Ring.HEAD, random.nextBoolean() ? 0 : random.nextLong());
        for (long field = Ring.table(0, RING_BYTES); field < Ring.table(1, RING_BYTES); field += 8) {
            memory.set(ValueLayout.JAVA_LONG, field, random.nextLong());
        }
    }

    @Test
    void whoWritesOnAfterItsGoodbyeIsNotHeardForEver() throws Exception {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker attacker = new Attacker(fixture)) {
            attacker.request(fixture.address);
            RecordingEndpointHandler victim = fixture.accept();
            MemorySegment memory = attacker.memory();
            long data = Ring.data(0, RING_BYTES);
            for (long at = 0; at < RING_BYTES; at += Ring.HEADER_BYTES) {
                memory.set(ValueLayout.JAVA_LONG, data + at, 0); // padding of no bytes
            }
            AtomicBoolean over = new AtomicBoolean();
            Thread writer = Thread.ofPlatform().start(() -> {
                long tail = 0;
                while (!over.get()) {
                    long head = Ring.position(memory, Ring.control(0) + Ring.HEAD);
                    tail = Math.max(tail, head + RING_BYTES / 2);
                    Ring.publish(memory, Ring.control(0) + Ring.TAIL, tail);
                }
            });
            try {
                attacker.write(Control.disconnect());
                victim.awaitDisconnected();
            } finally {
                over.set(true);
                writer.join();
            }
        }
    }

    @Test
    void memoryThatIsNotThePeersToShareIsRefused() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            for (int descriptor : new int[] {0, 1, 999_999}) {
                try (Attacker attacker = new Attacker(fixture)) {
                    attacker.request(ShmContext.PID, descriptor, RING_BYTES, fixture.address);
                    assertThat(fixture.acceptInVain())
                            .isInstanceOf(ConnectionException.class)
                            .hasMessageContaining("cannot be shared");
                }
            }
            try (Attacker attacker = new Attacker(fixture);
                    Arena arena = Arena.ofShared();
                    SharedFile sealed = SharedFile.create("verbena-sealed", FILE_BYTES, true, arena)) {
                // Nobody else may write it.
                attacker.request(ShmContext.PID, sealed.descriptor(), RING_BYTES, fixture.address);
                assertThat(fixture.acceptInVain())
                        .isInstanceOf(ConnectionException.class)
                        .hasMessageContaining("cannot be shared");
            }
            try (Attacker attacker = new Attacker(fixture)) {
                // A file of another size than the rings need.
                attacker.request(ShmContext.PID, attacker.file.descriptor(), 2 * RING_BYTES, fixture.address);
                assertThat(fixture.acceptInVain())
                        .isInstanceOf(ConnectionException.class)
                        .hasMessageContaining("expected");
            }
        }
    }

    /** Of a process in another namespace it would be another file, which only looks alike. */
    @Test
    void aFileThatIsNotThePeersIsRefused() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair bystander = fixture.connect();
            try (Attacker attacker = new Attacker(fixture)) {
                attacker.request(
                        ShmContext.PID,
                        ProcessFiles.pidNamespace(),
                        attacker.file.descriptor(),
                        SECRET + 1,
                        RING_BYTES,
                        fixture.address);
                assertThat(fixture.acceptInVain()).isInstanceOf(ConnectionException.class);
                assertThat(attacker.awaitReply().verdict()).isEqualTo(Handshake.Verdict.CANNOT_SHARE);
            }
            try (Attacker attacker = new Attacker(fixture)) {
                attacker.request(
                        ShmContext.PID,
                        ProcessFiles.pidNamespace() + 1,
                        attacker.file.descriptor(),
                        SECRET,
                        RING_BYTES,
                        fixture.address);
                assertThat(fixture.acceptInVain())
                        .isInstanceOf(ConnectionException.class)
                        .hasMessageContaining("PID namespace");
                Handshake.Reply reply = attacker.awaitReply();
                assertThat(reply.verdict()).isEqualTo(Handshake.Verdict.CANNOT_SHARE);
                assertThat(reply.namespace()).isEqualTo(ProcessFiles.pidNamespace());
            }
            bystander.client().awaitPrepared().disconnect();
        }
    }

    /** A server that says what it is asked to. */
    private static RecordingEndpointHandler answer(
            ShmFixture fixture, Function<Handshake.Request, Handshake.Reply> with) throws IOException {
        SocketDirectory.Bound bound =
                SocketDirectory.open(null).bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1);
        RecordingEndpointHandler client = fixture.connect(bound.address(), handler -> {});
        SocketChannel accepted = bound.channel().accept();
        bound.close();
        Handshake.Reader reader = new Handshake.Reader();
        ByteBuffer frame = null;
        while (frame == null) {
            frame = reader.read(accepted);
        }
        ByteBuffer reply = with.apply(Handshake.Request.decode(frame)).encode();
        while (reply.hasRemaining()) {
            accepted.write(reply);
        }
        if (client.awaitPrepared() != null) {
            Patience.until("the client has decided", () -> client.isConnected() || client.isDisconnected());
        }
        accepted.close();
        return client;
    }

    @Test
    void aClientSaysThatItsServerIsInAnotherNamespace() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            RecordingEndpointHandler client = answer(
                    fixture,
                    request -> new Handshake.Reply(
                            Handshake.Verdict.CANNOT_SHARE, 0, 1, request.namespace() + 1, -1, new byte[0]));
            assertThat(client.awaitDisconnected())
                    .isInstanceOf(ConnectionException.Rejected.class)
                    .hasMessageContaining("PID namespace");
        }
    }

    /** The server keeps a client's file open for a while, which does not make it the server's. */
    @Test
    void aFileThatTheServerHasOpenedIsNotItsOwn() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker first = new Attacker(fixture);
                Attacker second = new Attacker(fixture)) {
            first.request(fixture.address);
            fixture.accept();
            int shown = first.awaitReply().descriptor();
            second.request(ShmContext.PID, shown, RING_BYTES, fixture.address);
            assertThat(fixture.acceptInVain()).isInstanceOf(ConnectionException.class);
            assertThat(second.awaitReply().verdict()).isEqualTo(Handshake.Verdict.CANNOT_SHARE);
        }
    }

    @Test
    void aServerThatNamesItsClientIsNotBelieved() throws IOException {
        ListAppender<ILoggingEvent> appender = new ListAppender<>();
        Logger logger = (Logger) LoggerFactory.getLogger(ShmContext.class);
        appender.start();
        logger.addAppender(appender);
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            RecordingEndpointHandler client = answer(
                    fixture,
                    request -> new Handshake.Reply(
                            Handshake.Verdict.ACCEPTED,
                            1,
                            request.pid(),
                            request.namespace(),
                            request.descriptor(),
                            new byte[0]));
            client.awaitConnected();
            client.awaitDisconnected();
        } finally {
            logger.detachAppender(appender);
        }
        assertThat(appender.list)
                .extracting(ILoggingEvent::getFormattedMessage)
                .anyMatch(line -> line.contains("does not let this process map its memory"));
    }

    @Test
    void aListenerThatClosesEndsClientsWithoutARequest() throws IOException {
        ShmOptions patient = new ShmOptions(256 << 10, 100_000, 1024, 30_000, 4096, null);
        try (ShmFixture fixture = new ShmFixture(patient);
                Attacker silent = new Attacker(fixture)) {
            Pair behind = fixture.connect();
            fixture.closeListener();
            silent.socket.configureBlocking(false);
            Patience.until("the server closes", () -> read(silent.socket, ByteBuffer.allocate(1)) < 0);
            assertThat(behind.client().isDisconnected()).isFalse();
        }
    }

    /** It says that it is another process: the client works with it, and looks into nobody's files. */
    @Test
    void aServerThatNamesAnotherProcessIsNotBelieved() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            RecordingEndpointHandler client = answer(
                    fixture,
                    request -> new Handshake.Reply(
                            Handshake.Verdict.ACCEPTED, 1, ShmContext.PID, request.namespace(), 0, new byte[0]));
            client.awaitConnected();
            assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
        }
    }

    @Test
    void requestsThatAreNoneAreDropped() throws IOException {
        SplittableRandom random = new SplittableRandom(7);
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            for (int i = 0; i < 200; i++) {
                try (Attacker attacker = new Attacker(fixture)) {
                    byte[] bytes = new byte[random.nextInt(4, 2000)];
                    random.nextBytes(bytes);
                    if (i % 2 == 0) {
                        ByteBuffer.wrap(bytes).putInt(0, random.nextInt(1, 1200));
                    }
                    attacker.write(ByteBuffer.wrap(bytes));
                    attacker.socket.shutdownOutput(); // a request that is cut
                    ByteBuffer answer = ByteBuffer.allocate(16);
                    Patience.until("the server closes", () -> read(attacker.socket, answer) < 0);
                    assertThat(answer.position()).isZero();
                }
            }
            Pair pair = fixture.connect();
            pair.client().awaitPrepared().disconnect();
        }
    }

    private static int read(SocketChannel socket, ByteBuffer into) {
        try {
            return socket.read(into);
        } catch (IOException reset) {
            return -1;
        }
    }
}
