package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.ffm.MappedMemory;
import org.verbena.transport.shm.HostilePeerTest.Attacker;
import org.verbena.transport.shm.ffm.ProcessFiles;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.WorkRequest;

/** Peers whose steps come at the worst moment: nobody sleeps over what a peer has done. */
@Timeout(240)
class LostWakeUpTest {
    private static final int RING_BYTES = Ring.MIN_BYTES;
    private static final int MESSAGE_BYTES = 1 << 20;

    @TempDir
    Path directory;

    /** A peer that reads what it is sent, and wakes the sleeping loop as an honest one does, step by step. */
    private static final class Reader {
        private final Attacker peer;
        private final MemorySegment memory;
        private final RingReader ring;
        private final RingWriter bell;

        /** Null for a connection that is the only one with its process. */
        private final @Nullable MemorySegment page;

        private long bytes;

        Reader(Attacker peer, @Nullable MemorySegment page) {
            this.peer = peer;
            this.page = page;
            memory = peer.memory();
            ring = new RingReader(memory, 1, RING_BYTES);
            bell = new RingWriter(memory, 0, RING_BYTES);
        }

        long field(int field) {
            return Ring.control(1) + field;
        }

        long get(int position) {
            return Ring.position(memory, field(position));
        }

        private void readOne() {
            assertThat(ring.next()).isTrue();
            if (ring.opcode() == Ring.SEND) {
                bytes += ring.payloadBytes();
            }
            ring.consume();
        }

        /** The first step of a release. */
        void freeOne() {
            readOne();
            Ring.publish(memory, field(Ring.HEAD), get(Ring.HEAD) + Ring.recordBytes(ring.payloadBytes()));
        }

        void readAll() {
            while (ring.hasMore()) {
                readOne();
            }
        }

        void ring() {
            if (page == null ? bell.wakeReader() : Doorbell.ring(page, 0) != 0) {
                peer.wake();
            }
        }

        /** Waits until the loop has handled what was rung for, and sleeps. */
        void awaitSleep() {
            Patience.until(
                    "the loop sleeps",
                    () -> page == null
                            ? Ring.isSet(memory, Ring.control(0) + Ring.SLEEPS)
                            : !Doorbell.isRung(page, 0) && page.get(ValueLayout.JAVA_LONG, 0) > 0);
        }
    }

    /**
     * The reader of a full ring frees some of it, sees that the writer waits, and clears that late: when the writer has
     * used the room already, and waits once more.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aWriterIsRungForAlthoughItsRequestWasClearedLate(boolean hasDoorbell) throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker first = new Attacker(fixture);
                Attacker second = new Attacker(fixture);
                ProcessFiles files = ProcessFiles.of(ShmContext.PID)) {
            first.request(fixture.address);
            RecordingEndpointHandler victim = fixture.accept();
            first.awaitReply();
            MemorySegment page = null;
            if (hasDoorbell) {
                second.request(fixture.address);
                fixture.accept();
                second.awaitReply();
                page = open(files, HostileDoorbellTest.awaitDoorbell(first));
            }
            Reader reader = new Reader(first, page);
            RegisteredMemory memory = fixture.region(MESSAGE_BYTES, Access.LOCAL_WRITE);
            WorkRequest send = new WorkRequest(1).asSend(1, 0);
            send.buffers().add(memory, 0, MESSAGE_BYTES);
            victim.send(send);
            reader.awaitSleep();
            assertThat(Ring.isSet(first.memory(), reader.field(Ring.WAITS))).isTrue();

            reader.freeOne();
            reader.ring();
            reader.awaitSleep();
            victim.run(endpoint -> {
                long full = reader.get(Ring.TAIL);
                reader.freeOne();
                endpoint.flush();
                assertThat(reader.get(Ring.TAIL)).as("the room is used").isGreaterThan(full);
                Ring.set(first.memory(), reader.field(Ring.WAITS), false);
                reader.ring(); // the loop is awake, so no byte comes
            });
            reader.awaitSleep();

            reader.readAll();
            assertThat(reader.ring.release()).as("the writer waits").isTrue();
            reader.ring();
            Patience.until("everything has come", () -> {
                reader.readAll();
                if (reader.ring.release()) {
                    reader.ring();
                }
                return reader.bytes == MESSAGE_BYTES;
            });
            victim.awaitSend();
            if (page != null) {
                MappedMemory.unmap(page);
            }
        }
    }

    private static MemorySegment open(ProcessFiles files, int descriptor) throws IOException {
        try (SharedFile opened = files.open(descriptor, Doorbell.BYTES, true)) {
            return opened.memory();
        }
    }

    /** The peer takes the loop for woken by a byte that is still unread when its connection ends. */
    @Test
    void theEndOfAConnectionWakesTheDoorbellOfTheOthers() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker first = new Attacker(fixture);
                Attacker second = new Attacker(fixture);
                ProcessFiles files = ProcessFiles.of(ShmContext.PID)) {
            first.request(fixture.address);
            RecordingEndpointHandler ending = fixture.accept();
            first.awaitReply();
            second.request(fixture.address);
            fixture.accept();
            second.awaitReply();
            MemorySegment page = open(files, HostileDoorbellTest.awaitDoorbell(first));
            Reader reader = new Reader(first, page);
            reader.awaitSleep();
            ending.run(endpoint -> {
                reader.ring();
                endpoint.disconnect();
            });
            Patience.until("the bit is taken", () -> !Doorbell.isRung(page, 0));
            MappedMemory.unmap(page);
        }
    }

    /** A socket that closes once its last words are sent, or at once, has a byte that nobody reads. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatASocketHasUnreadWhenItClosesCountsAsRead(boolean hasLastWords) throws IOException {
        Path name = directory.resolve("s");
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                ServerSocketChannel listening = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            listening.bind(UnixDomainSocketAddress.of(name));
            try (SocketChannel peer = SocketChannel.open(UnixDomainSocketAddress.of(name))) {
                SocketChannel accepted = listening.accept();
                accepted.configureBlocking(false);
                AtomicInteger late = new AtomicInteger();
                CompletableFuture<Void> failure = new CompletableFuture<>();
                ControlSocket made = new ControlSocket(fixture.serverLoop(), accepted, owner(late, failure));
                fixture.onLoop(fixture.serverLoop(), io -> {
                    register(made);
                    while (hasLastWords && !made.hasUnsent()) {
                        made.send(ByteBuffer.allocate(64 << 10));
                    }
                    if (hasLastWords) {
                        made.closeWhenSent();
                    }
                    return made;
                });
                CountDownLatch holding = new CountDownLatch(1);
                CountDownLatch written = new CountDownLatch(1);
                fixture.serverLoop().execute(() -> {
                    holding.countDown();
                    await(written);
                    if (!hasLastWords) {
                        made.closeNow();
                    }
                });
                await(holding);
                peer.configureBlocking(false);
                ByteBuffer words = ByteBuffer.allocate(1 << 20);
                while (peer.read(words.clear()) > 0) {
                    // makes room for the rest
                }
                assertThat(peer.write(ByteBuffer.wrap(new byte[] {1}))).isEqualTo(1);
                written.countDown();
                Patience.until("it closes", () -> !accepted.isOpen());
                assertThat(late).as("late bytes").hasPositiveValue();
                assertThat(failure).isNotDone();
            }
        }
    }

    private static ControlSocket.Owner owner(AtomicInteger late, CompletableFuture<Void> failure) {
        return new ControlSocket.Owner() {
            @Override
            public void onReadable() {
                failure.completeExceptionally(new AssertionError("read as if it were open"));
            }

            @Override
            public void onLateBytes() {
                late.incrementAndGet();
            }

            @Override
            public void onFailure(Throwable cause) {
                failure.completeExceptionally(cause);
            }

            @Override
            public void onLoopEnding() {}
        };
    }

    private static void register(ControlSocket socket) {
        try {
            socket.register();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        socket.begin();
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
