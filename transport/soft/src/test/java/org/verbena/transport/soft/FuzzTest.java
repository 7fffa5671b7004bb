package org.verbena.transport.soft;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.LoggerFactory;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/**
 * Seeded mutations of recorded streams. First a session of two endpoints is recorded, both directions; then each
 * execution changes one direction of it a little and plays it to a fresh endpoint. Whatever comes, the endpoint must
 * end within its time, complete all of its work exactly once, touch nothing outside of what peers may touch, and log no
 * error of its own.
 *
 * <p>{@code -Dverbena.fuzz.executions=1000000 -Dverbena.fuzz.seed=...} for longer runs and for one seen before.
 */
class FuzzTest {
    private static final int EXECUTIONS = Integer.getInteger("verbena.fuzz.executions", 400);
    private static final int TABLE_BYTES = 16 * 1024;
    private static final int OPERATIONS = 40;
    private static final byte GUARD = 0x5b;

    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private final AtomicInteger live = new AtomicInteger();
    private final AtomicInteger connected = new AtomicInteger();
    private final AtomicInteger terminated = new AtomicInteger();
    private final AtomicInteger completed = new AtomicInteger();

    private SoftProvider provider;
    private IoEventLoop loop;
    private RegisteredMemory table;
    private RegisteredMemory own;

    @ParameterizedTest
    @CsvSource({"false, false", "true, false", "false, true", "true, true"})
    @Timeout(value = 4, unit = TimeUnit.HOURS)
    void survivesMutatedStreams(boolean crc, boolean toInitiator) throws Exception {
        long seed =
                Long.getLong("verbena.fuzz.seed", ThreadLocalRandom.current().nextLong());
        String name = (toInitiator ? "initiator" : "responder") + (crc ? " with CRC" : " without CRC");
        System.out.println(
                "fuzzing the " + name + ": -Dverbena.fuzz.executions=" + EXECUTIONS + " -Dverbena.fuzz.seed=" + seed);
        List<String> errors = new ArrayList<>();
        Logger logger = (Logger) LoggerFactory.getLogger("org.verbena.transport.soft");
        Level before = logger.getLevel();
        AppenderBase<ILoggingEvent> appender = new AppenderBase<>() {
            @Override
            protected void append(ILoggingEvent event) {
                if (event.getLevel().isGreaterOrEqual(Level.ERROR)) {
                    errors.add(event.getFormattedMessage() + ": "
                            + (event.getThrowableProxy() == null
                                    ? ""
                                    : event.getThrowableProxy().getClassName() + " "
                                            + event.getThrowableProxy().getMessage() + " "
                                            + Arrays.toString(
                                                    event.getThrowableProxy().getStackTraceElementProxyArray())));
                }
            }
        };
        appender.start();
        logger.addAppender(appender);
        logger.setLevel(Level.WARN);
        provider = new SoftProvider(SoftOptions.ofSystemProperties().with(o -> {
            o.crc = crc;
            o.handshakeTimeoutMillis = 2_000;
            o.maxHandshakes = 64;
            o.wrongKeysPerSecond = 0;
            o.stallTimeoutMillis = 2_000;
            o.sharedReceiveDepth = 64;
        }));
        MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
        try (Arena arena = Arena.ofShared()) {
            MemorySegment pages = arena.allocate(3L * TABLE_BYTES, 4096);
            pages.fill(GUARD);
            table = provider.memoryDomain()
                    .register(
                            pages.asSlice(TABLE_BYTES, TABLE_BYTES),
                            Set.of(Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC));
            own = provider.memoryDomain().register(arena.allocate(256 * 1024), Set.of(Access.LOCAL_WRITE));
            fuzz(name, new Random(seed), crc, toInitiator);
            assertThat(pages.asSlice(0, TABLE_BYTES).toArray(ValueLayout.JAVA_BYTE))
                    .containsOnly(GUARD);
            assertThat(pages.asSlice(2L * TABLE_BYTES, TABLE_BYTES).toArray(ValueLayout.JAVA_BYTE))
                    .containsOnly(GUARD);
            table.close();
            own.close();
            assertThat(provider.memoryDomain().registeredBytes()).isZero();
        } finally {
            Patience.await("the loop ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
            logger.detachAppender(appender);
            logger.setLevel(before);
        }
        assertThat(errors).isEmpty();
        assertThat(violations).isEmpty();
    }

    private void fuzz(String name, Random random, boolean crc, boolean toInitiator) throws Exception {
        Listening listening = new Listening();
        Listener listener = provider.listen(
                loop, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), ListenOptions.DEFAULTS, listening);
        InetSocketAddress address = Patience.await("listening", listening.address);
        byte[][] recorded = record(address);
        assertThat(recorded[0].length).isGreaterThan(4_000);
        assertThat(recorded[1].length).isGreaterThan(4_000);
        Mutator mutator = new Mutator(random, crc, toInitiator ? recorded[1] : recorded[0]);
        long start = System.nanoTime();
        // Unchanged, the recording passes to its end: what follows begins deep inside.
        int attempts = 0;
        do {
            connected.set(0);
            completed.set(0);
            terminated.set(0);
            play(toInitiator, address, mutator.original(), new Random(), true);
            Patience.until("the unchanged session is over", () -> live.get() == 0);
            // This thread may have stalled for longer than the endpoint waits, but not each time.
        } while (completed.get() < OPERATIONS + 25 && ++attempts < 3);
        assertThat(connected).hasValue(1);
        assertThat(terminated).hasValue(0);
        assertThat(completed)
                .as("sends and receives that succeed unchanged")
                .hasValueGreaterThanOrEqualTo(OPERATIONS + 25);
        for (int i = 0; i < EXECUTIONS && violations.isEmpty(); i++) {
            byte[][] stream = mutator.mutate();
            try {
                play(toInitiator, address, stream, random, false);
            } catch (SocketTimeoutException e) {
                throw new AssertionError("execution " + i + " hangs", e);
            }
        }
        Patience.until("all endpoints have ended", () -> live.get() == 0);
        listener.close();
        Patience.await("closed", listening.closed);
        System.out.printf(
                "fuzzed the %s: %d executions in %d s, %d came up, %d were ended with a Terminate message%n",
                name,
                EXECUTIONS,
                TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start),
                connected.get(),
                terminated.get());
    }

    /** Records what a session sends: from the initiator, and from the responder. */
    private byte[][] record(InetSocketAddress address) throws Exception {
        ByteArrayOutputStream[] directions = {new ByteArrayOutputStream(), new ByteArrayOutputStream()};
        try (ServerSocket proxy = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            CountDownLatch done = new CountDownLatch(1);
            Victim initiator = new Victim(true, done);
            Endpoint endpoint = provider.connect(
                    loop, (InetSocketAddress) proxy.getLocalSocketAddress(), EndpointOptions.DEFAULTS, initiator);
            try (Socket in = proxy.accept();
                    Socket out = new Socket(address.getAddress(), address.getPort())) {
                Thread there = Thread.ofPlatform().start(() -> copy(in, out, directions[0]));
                Thread back = Thread.ofPlatform().start(() -> copy(out, in, directions[1]));
                assertThat(done.await(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                        .as("the recorded session")
                        .isTrue();
                endpoint.disconnect();
                there.join();
                back.join();
            }
        }
        Patience.until("the recorded session is over", () -> live.get() == 0);
        return new byte[][] {directions[0].toByteArray(), directions[1].toByteArray()};
    }

    private static void copy(Socket from, Socket to, OutputStream record) {
        try {
            byte[] buffer = new byte[64 * 1024];
            InputStream in = from.getInputStream();
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                record.write(buffer, 0, n);
                to.getOutputStream().write(buffer, 0, n);
            }
            to.shutdownOutput();
        } catch (IOException e) {
            // The session is over.
        }
    }

    /** Plays a stream in parts, reading the endpoint's output between them, and waits for its end of the connection. */
    private void play(boolean toInitiator, InetSocketAddress address, byte[][] stream, Random random, boolean patient)
            throws IOException {
        if (toInitiator) {
            try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                Endpoint unused = provider.connect(
                        loop,
                        (InetSocketAddress) server.getLocalSocketAddress(),
                        EndpointOptions.DEFAULTS,
                        new Victim(true, new CountDownLatch(1)));
                try (Socket socket = server.accept()) {
                    exchange(socket, stream, random, patient);
                }
            }
        } else {
            try (Socket socket = new Socket(address.getAddress(), address.getPort())) {
                exchange(socket, stream, random, patient);
            }
        }
    }

    private static void exchange(Socket socket, byte[][] stream, Random random, boolean patient) throws IOException {
        socket.setTcpNoDelay(true);
        byte[] sink = new byte[64 * 1024];
        try {
            for (int part = 0; part < stream.length; part++) {
                if (part > 0 && patient) {
                    awaitRequest(new DataInputStream(socket.getInputStream()), part == 1);
                } else if (part > 0) {
                    hearOut(socket, sink);
                }
                int at = 0;
                while (at < stream[part].length) {
                    int now = random.nextInt(8) == 0 ? 1 + random.nextInt(40) : stream[part].length;
                    now = Math.min(now, stream[part].length - at);
                    socket.getOutputStream().write(stream[part], at, now);
                    at += now;
                }
            }
            socket.shutdownOutput();
            socket.setSoTimeout(RawPeer.PATIENCE_MILLIS);
            while (socket.getInputStream().read(sink) >= 0) {
                // What it answers is not looked at.
            }
        } catch (SocketTimeoutException e) {
            throw e;
        } catch (IOException e) {
            // It may reset the connection.
        }
    }

    /** Reads up to the next request that a response is for. */
    private static void awaitRequest(DataInputStream in, boolean first) throws IOException {
        if (first) {
            in.readFully(new byte[18]);
            in.readFully(new byte[in.readUnsignedShort()]);
        }
        int opcode;
        do {
            int length = in.readUnsignedShort();
            opcode = in.readUnsignedShort() & 0xf;
            in.readFully(new byte[length - 2 + (-(2 + length) & 3) + 4]);
        } while (opcode != 1 && opcode != 10);
    }

    /** Reads until there is a pause. */
    private static void hearOut(Socket socket, byte[] sink) throws IOException {
        socket.setSoTimeout(2);
        try {
            while (socket.getInputStream().read(sink) >= 0) {
                // Only that it has come counts.
            }
        } catch (SocketTimeoutException e) {
            // The pause.
        }
    }

    /** Changes streams. It knows where the segments begin, for most of its changes are to be near the truth. */
    private static final class Mutator {
        private final Random random;
        private final boolean crc;
        private final byte[] frame;
        private final List<byte[]> segments = new ArrayList<>();

        Mutator(Random random, boolean crc, byte[] stream) {
            this.random = random;
            this.crc = crc;
            int frameBytes = 20 + ByteBuffer.wrap(stream).getShort(18);
            frame = Arrays.copyOf(stream, frameBytes);
            int at = frameBytes;
            while (at < stream.length) {
                int length = ByteBuffer.wrap(stream).getShort(at) & 0xffff;
                int whole = 2 + length + (-(2 + length) & 3) + 4;
                segments.add(Arrays.copyOfRange(stream, at, at + whole));
                at += whole;
            }
        }

        byte[][] original() {
            return split(frame, segments);
        }

        private static byte[] join(byte[] frame, List<byte[]> segments) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            out.writeBytes(frame);
            segments.forEach(out::writeBytes);
            return out.toByteArray();
        }

        /** What can be sent at once, and each response, which must not come before its request. */
        private static byte[][] split(byte[] frame, List<byte[]> segments) {
            List<byte[]> parts = new ArrayList<>();
            List<byte[]> others = new ArrayList<>();
            for (byte[] segment : segments) {
                int opcode = segment.length < 4 ? 0 : segment[3] & 0xf;
                (opcode == 2 || opcode == 11 ? parts : others).add(segment);
            }
            parts.addFirst(join(frame, others));
            return parts.toArray(byte[][]::new);
        }

        byte[][] mutate() {
            byte[] start = frame.clone();
            List<byte[]> list = new ArrayList<>(segments);
            int changes = 1 + random.nextInt(3);
            for (int i = 0; i < changes; i++) {
                switch (random.nextInt(16)) {
                    case 0 -> flip(start, 0, start.length);
                    case 1 -> list.remove(random.nextInt(list.size()));
                    case 2 -> list.add(random.nextInt(list.size()), pick(list));
                    case 3 -> list.add(random.nextInt(list.size()), randomBytes());
                    case 4 -> {
                        int a = random.nextInt(list.size());
                        int b = random.nextInt(list.size());
                        byte[] kept = list.get(a);
                        list.set(a, list.get(b));
                        list.set(b, kept);
                    }
                    case 5 -> {
                        int index = random.nextInt(list.size());
                        byte[] old = list.get(index);
                        list.set(index, Arrays.copyOf(old, random.nextInt(old.length + 1)));
                    }
                    case 6 -> {
                        int index = random.nextInt(list.size());
                        byte[] old = list.get(index);
                        list.set(index, Arrays.copyOf(old, old.length + 1 + random.nextInt(64)));
                    }
                    default -> change(list);
                }
                if (list.isEmpty()) {
                    break;
                }
            }
            if (random.nextInt(4) == 0) {
                return split(start, list);
            }
            byte[] stream = join(start, list);
            return new byte[][] {
                random.nextInt(20) == 0 ? Arrays.copyOf(stream, random.nextInt(stream.length + 1)) : stream
            };
        }

        private byte[] pick(List<byte[]> list) {
            return list.get(random.nextInt(list.size()));
        }

        private byte[] randomBytes() {
            byte[] bytes = new byte[random.nextInt(200)];
            random.nextBytes(bytes);
            return bytes;
        }

        private void flip(byte[] bytes, int from, int to) {
            bytes[from + random.nextInt(to - from)] ^= (byte) (1 << random.nextInt(8));
        }

        /** Changes a field of a header, or a bit anywhere, and mostly corrects the CRC. */
        private void change(List<byte[]> list) {
            int index = random.nextInt(list.size());
            byte[] bytes = list.get(index).clone();
            if (bytes.length < 20) {
                return;
            }
            ByteBuffer view = ByteBuffer.wrap(bytes);
            int[] fields = {0, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44};
            int at = Math.min(fields[random.nextInt(fields.length)], bytes.length - 8);
            switch (random.nextInt(6)) {
                case 0 -> flip(bytes, 0, bytes.length);
                case 1 -> flip(bytes, 0, Math.min(20, bytes.length));
                case 2 -> view.putShort(at, interesting16());
                case 3 -> view.putInt(at, interesting32(view.getInt(at)));
                case 4 -> view.putLong(at, interesting64(view.getLong(at)));
                default -> view.putShort(2, (short) (view.getShort(2) & ~0xf | random.nextInt(16)));
            }
            if (crc && random.nextInt(8) != 0) {
                CRC32C sum = new CRC32C();
                sum.update(bytes, 0, bytes.length - 4);
                view.putInt(bytes.length - 4, Integer.reverseBytes((int) sum.getValue()));
            }
            list.set(index, bytes);
        }

        private short interesting16() {
            int[] values = {0, 1, 13, 14, 17, 18, 46, 70, 0x7fff, 0x8000, 0xffff, random.nextInt()};
            return (short) values[random.nextInt(values.length)];
        }

        private int interesting32(int old) {
            int[] values = {
                0, 1, -1, old + 1, old - 1, Integer.MAX_VALUE, Integer.MIN_VALUE, old ^ 0x80, random.nextInt()
            };
            return values[random.nextInt(values.length)];
        }

        private long interesting64(long old) {
            long[] values = {
                0,
                -1,
                -8,
                old + 1,
                old - 1,
                old + TABLE_BYTES,
                old - TABLE_BYTES,
                Long.MAX_VALUE,
                Long.MIN_VALUE,
                random.nextLong()
            };
            return values[random.nextInt(values.length)];
        }
    }

    /** Accepts every connection. */
    private final class Listening implements ListenerHandler {
        private final java.util.concurrent.CompletableFuture<InetSocketAddress> address =
                new java.util.concurrent.CompletableFuture<>();
        private final java.util.concurrent.CompletableFuture<Boolean> closed =
                new java.util.concurrent.CompletableFuture<>();

        @Override
        public void onListening(Listener listener) {
            address.complete(listener.localAddress());
        }

        @Override
        public void onConnectRequest(Listener listener, IncomingConnection connection) {
            connection.accept(loop, EndpointOptions.DEFAULTS, new Victim(false, new CountDownLatch(1)));
        }

        @Override
        public void onClosed(Listener listener, @Nullable Throwable cause) {
            closed.complete(true);
        }
    }

    /**
     * An endpoint's user that does a bit of everything, the same each time, and counts. All on the loop.
     */
    private final class Victim implements EndpointHandler {
        private final boolean initiator;
        private final CountDownLatch done;
        private final WorkRequest request = new WorkRequest(2);
        private final ScatterGatherList list = new ScatterGatherList(2);
        private long nextSend;
        private long nextSendDone;
        private long nextReceive;
        private long nextReceiveDone;
        private boolean up;
        private boolean over;

        Victim(boolean initiator, CountDownLatch done) {
            this.initiator = initiator;
            this.done = done;
            live.incrementAndGet();
        }

        private void check(boolean good, String what) {
            if (!good) {
                violations.add(what);
            }
        }

        @Override
        public void onPrepared(Endpoint endpoint) {
            for (int i = 0; i < 2 * OPERATIONS; i++) {
                receive(endpoint);
            }
        }

        private void receive(Endpoint endpoint) {
            list.clear().add(own, 64 * 1024, 700).add(own, 70 * 1024, 4096);
            if (endpoint.postReceive(nextReceive, list)) {
                nextReceive++;
            }
        }

        @Override
        public void onConnected(Endpoint endpoint, byte[] privateData) {
            check(!up, "connected twice");
            up = true;
            connected.incrementAndGet();
            boolean ours =
                    endpoint.capabilities().atomics() && endpoint.capabilities().immediateData();
            boolean reads = endpoint.capabilities().readDepth() > 0;
            long address = table.address();
            int key = table.remoteKey();
            for (int i = 0; i < OPERATIONS; i++) {
                int bytes = i % 5 == 0 ? 3000 + 100 * i : 16 + i;
                switch (i % 8) {
                    case 0, 1 -> request.asSend(nextSend, i % 3 == 0 ? WorkRequest.SOLICITED : 0);
                    case 2 -> request.asWrite(nextSend, 0, address + 32L * i, key);
                    case 3 -> {
                        if (reads) {
                            request.asRead(nextSend, 0, address + 16L * i, key);
                        } else {
                            request.asSend(nextSend, 0);
                        }
                    }
                    case 4 -> request.asSend(nextSend, i == 36 ? WorkRequest.FENCE : 0);
                    case 5 -> {
                        if (ours) {
                            request.asFetchAndAdd(nextSend, 0, address + 8, key, i);
                            bytes = 8;
                        } else {
                            request.asSend(nextSend, 0);
                        }
                    }
                    case 6 -> {
                        if (ours) {
                            request.asWriteWithImmediate(nextSend, 0, address + 64, key, i);
                        } else {
                            request.asWrite(nextSend, 0, address + 64, key);
                        }
                    }
                    default -> {
                        if (ours) {
                            request.asSendWithImmediate(nextSend, 0, i);
                        } else {
                            request.asSend(nextSend, 0);
                        }
                    }
                }
                request.buffers().add(own, initiator ? 0 : 128 * 1024, Math.min(bytes, 4000));
                if (endpoint.post(request)) {
                    nextSend++;
                }
            }
            endpoint.flush();
        }

        @Override
        public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
            check(
                    !over && workId == nextSendDone,
                    "send completion " + workId + " where " + nextSendDone + " was next");
            nextSendDone++;
            if (status == WorkStatus.SUCCESS) {
                completed.incrementAndGet();
            }
            finish();
        }

        private void finish() {
            // All of this side's work, and what the peer's work consumed here, as many as the unchanged session has.
            if (nextSendDone == OPERATIONS && nextReceiveDone >= 25) {
                done.countDown();
            }
        }

        @Override
        public void onReceiveCompletion(
                Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
            check(
                    !over && workId == nextReceiveDone,
                    "receive completion " + workId + " where " + nextReceiveDone + " was next");
            check(
                    status != WorkStatus.SUCCESS || lengthBytes <= 4796 || (flags & REMOTE_WRITE) != 0,
                    "a receive of " + lengthBytes + " bytes");
            nextReceiveDone++;
            if (status == WorkStatus.SUCCESS) {
                completed.incrementAndGet();
                receive(endpoint);
                finish();
            }
        }

        @Override
        public void onCompletionsHandled(Endpoint endpoint) {
            endpoint.flush();
        }

        @Override
        public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
            check(!over, "disconnected twice");
            check(nextSendDone == nextSend, "sends left: " + (nextSend - nextSendDone));
            check(nextReceiveDone == nextReceive, "receives left: " + (nextReceive - nextReceiveDone));
            check(
                    cause == null
                            || cause instanceof ConnectionException
                            || cause instanceof org.verbena.transport.WorkCompletionException,
                    "ended with " + cause);
            if (cause != null && String.valueOf(cause.getMessage()).contains("TERMINATE")) {
                terminated.incrementAndGet();
            }
            over = true;
            live.decrementAndGet();
        }
    }
}
