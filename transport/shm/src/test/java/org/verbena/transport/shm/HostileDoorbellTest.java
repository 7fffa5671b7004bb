package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.ffm.MappedMemory;
import org.verbena.transport.shm.HostilePeerTest.Attacker;
import org.verbena.transport.shm.ShmFixture.Pair;
import org.verbena.transport.shm.ffm.FileIdentity;
import org.verbena.transport.shm.ffm.ProcessFiles;
import org.verbena.transport.shm.ffm.SharedFile;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;

/** Peers that do what they like with doorbells: it harms their own connections, and those of no other process. */
@Timeout(240)
class HostileDoorbellTest {
    private static final int RING_BYTES = Ring.MIN_BYTES;
    private static final byte DOORBELL = 6;

    @TempDir
    Path directory;

    private Path owned() throws IOException {
        Path path = directory.resolve("d");
        assertThat(SocketDirectory.open(path)).isNotNull();
        return path;
    }

    /** Reads where to ring, and gives the descriptor. */
    static int awaitDoorbell(Attacker attacker) throws IOException {
        ByteBuffer word = ByteBuffer.allocate(17);
        while (word.hasRemaining()) {
            assertThat(attacker.socket.read(word)).isPositive();
        }
        assertThat(word.get(0)).isEqualTo(DOORBELL);
        return word.getInt(1);
    }

    private static void countReceives(RecordingEndpointHandler handler, RegisteredMemory memory, AtomicLong received) {
        handler.whenPrepared(endpoint -> {
            for (int i = 0; i < 64; i++) {
                ScatterGatherList list = new ScatterGatherList(1).addHeld(memory, 0, 4096);
                assertThat(handler.postReceive(endpoint, 1, list)).isTrue();
            }
        });
        handler.whenReceived((endpoint, completion) -> {
            received.incrementAndGet();
            ScatterGatherList list = new ScatterGatherList(1).addHeld(memory, 0, 4096);
            boolean unused = handler.postReceive(endpoint, 1, list);
        });
    }

    /** An honest process sends beside one that scribbles on its own page, which is another one. */
    @Test
    void scribblesOnADoorbellHarmNoOtherProcess() throws Exception {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS.withDirectory(owned()));
                Attacker first = new Attacker(fixture, directory.resolve("d"));
                Attacker second = new Attacker(fixture, directory.resolve("d"))) {
            RegisteredMemory memory = fixture.region(4096, Access.LOCAL_WRITE);
            first.request(fixture.address);
            RecordingEndpointHandler one = fixture.accept();
            first.awaitReply();
            second.request(fixture.address);
            RecordingEndpointHandler two = fixture.accept();
            second.awaitReply();
            int descriptor = awaitDoorbell(first);
            assertThat(awaitDoorbell(second)).isEqualTo(descriptor);

            Process honest =
                    ShmChild.start(directory.resolve("d"), "client", String.valueOf(fixture.address.getPort()), "3");
            List<AtomicLong> counts = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                AtomicLong count = new AtomicLong();
                counts.add(count);
                fixture.accept(handler -> countReceives(handler, memory, count));
            }
            AtomicBoolean over = new AtomicBoolean();
            AtomicLong scribbles = new AtomicLong();
            try (ProcessFiles files = ProcessFiles.of(ShmContext.PID)) {
                SharedFile page = files.open(descriptor, Doorbell.BYTES, true);
                Thread scribbler = Thread.ofPlatform().start(() -> scribble(page.memory(), seed, scribbles, over));
                try {
                    for (AtomicLong count : counts) {
                        long begin = count.get();
                        Patience.until("the honest peer's messages come", () -> count.get() > begin + 5_000);
                    }
                    Patience.until("enough scribbles", () -> scribbles.get() > 100_000);
                } finally {
                    over.set(true);
                    scribbler.join();
                    page.close();
                    MappedMemory.unmap(page.memory());
                    honest.destroyForcibly().waitFor();
                }
            }
            // Nor are its own connections broken: they are looked at too often or too late.
            for (RecordingEndpointHandler victim : List.of(one, two)) {
                assertThat(victim.isDisconnected()).isFalse();
                victim.receive(1, memory, 0, 8);
            }
            writeTo(first);
            assertThat(one.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
            writeTo(second);
            assertThat(two.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
        }
    }

    private static void scribble(MemorySegment page, long seed, AtomicLong scribbles, AtomicBoolean over) {
        SplittableRandom random = new SplittableRandom(seed);
        while (!over.get()) {
            long at = random.nextInt(4) == 0 ? 0 : 128 + 8L * random.nextInt((Doorbell.BYTES - 128) / 8);
            page.set(
                    ValueLayout.JAVA_LONG,
                    random.nextBoolean() ? at : 128,
                    switch (random.nextInt(3)) {
                        case 0 -> 0;
                        case 1 -> -1L;
                        default -> random.nextLong();
                    });
            scribbles.incrementAndGet();
        }
    }

    /** The loop looks once more at the most, and serves the connections that ring there. */
    @Test
    void aLoopSleepsWhateverItsPageHolds() throws Exception {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker first = new Attacker(fixture);
                Attacker second = new Attacker(fixture);
                ProcessFiles files = ProcessFiles.of(ShmContext.PID)) {
            RegisteredMemory memory = fixture.region(4096, Access.LOCAL_WRITE);
            Pair bystander = fixture.connect();
            List<RecordingEndpointHandler> victims = new ArrayList<>();
            List<RingWriter> writers = new ArrayList<>();
            for (Attacker attacker : List.of(first, second)) {
                attacker.request(fixture.address);
                victims.add(fixture.accept());
                attacker.awaitReply();
                writers.add(new RingWriter(attacker.memory(), 0, RING_BYTES));
            }
            SharedFile page = files.open(awaitDoorbell(first), Doorbell.BYTES, true);
            for (long value : new long[] {-1, 0, 1, Long.MIN_VALUE, Long.MAX_VALUE}) {
                for (int at = 0; at < Doorbell.BYTES; at += Long.BYTES) {
                    page.memory().set(ValueLayout.JAVA_LONG, at, value);
                }
                fixture.awaitIdle(fixture.serverLoop());
                victims.forEach(victim -> victim.receive(1, memory, 0, 8));
                write(writers.getFirst(), first);
                write(writers.getLast(), second);
                victims.forEach(
                        victim -> assertThat(victim.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS));
                HostilePeerTest.assertUnharmed(bystander, memory);
            }
            page.close();
            MappedMemory.unmap(page.memory());
            bystander.client().awaitPrepared().disconnect();
        }
    }

    /** Writes one message into a ring, and a wake-up into the socket. */
    private static void writeTo(Attacker attacker) {
        write(new RingWriter(attacker.memory(), 0, RING_BYTES), attacker);
    }

    private static void write(RingWriter writer, Attacker attacker) {
        writer.claim(8, 8);
        writer.commit(Ring.SEND, Ring.FIRST | Ring.LAST, 8, 0, 0, 0, 8, 1);
        assertThat(writer.publish()).isTrue();
        attacker.wake();
    }

    /** Descriptors of what is no doorbell, or not the peer's: each connection is woken by itself then. */
    @Test
    void whatIsNoDoorbellIsNotMapped() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Arena arena = Arena.ofShared()) {
            SharedFile large = SharedFile.create("verbena-attack", 2L * Doorbell.BYTES, false, arena);
            SharedFile readOnly = SharedFile.create("verbena-attack", Doorbell.BYTES, true, arena);
            RegisteredMemory memory = fixture.region(64, Access.LOCAL_WRITE);
            Map<Integer, Long> inodes = Map.of(
                    -1,
                    0L,
                    0,
                    0L,
                    999_999,
                    0L,
                    large.descriptor(),
                    large.identity().inode(),
                    readOnly.descriptor(),
                    readOnly.identity().inode());
            for (int descriptor : inodes.keySet()) {
                try (Attacker attacker = new Attacker(fixture)) {
                    attacker.request(fixture.address);
                    RecordingEndpointHandler victim = fixture.accept();
                    victim.receive(1, memory, 0, 8);
                    attacker.write(Control.doorbell(descriptor, inodes.get(descriptor), 0));
                    writeTo(attacker);
                    assertThat(victim.awaitReceive().status()).isEqualTo(WorkStatus.SUCCESS);
                }
            }
            large.close();
            readOnly.close();
        }
    }

    @Test
    void aSecondDoorbellEndsItsConnectionOnly() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Pair first = fixture.connect();
            Pair second = fixture.connect();
            RegisteredMemory memory = fixture.region(64, Access.LOCAL_WRITE);
            for (int[] slots : new int[][] {{0, 0}, {-1}, {Doorbell.MOST}}) {
                try (Attacker attacker = new Attacker(fixture)) {
                    attacker.request(fixture.address);
                    RecordingEndpointHandler victim = fixture.accept();
                    for (int slot : slots) {
                        attacker.write(Control.doorbell(999_999, 0, slot));
                    }
                    assertThat(victim.awaitDisconnected()).isInstanceOf(RdmaException.class);
                }
            }
            for (Pair pair : List.of(first, second)) {
                HostilePeerTest.assertUnharmed(pair, memory);
                pair.client().awaitPrepared().disconnect();
            }
        }
    }

    /** Until a wake-up was sent, whoever rings next has to send one: the first may have met a socket that closes. */
    @Test
    void aLoopCountsAsWokenOnlyOnceAWakeUpWasSent() {
        try (Arena arena = Arena.ofConfined()) {
            PeerDoorbell doorbell = new PeerDoorbell(new FileIdentity(1, 1), arena.allocate(Doorbell.BYTES, 8));
            assertThat(doorbell.ring(70)).as("awake").isZero();
            Doorbell.setSleeps(doorbell.memory, 1);
            assertThat(doorbell.ring(1)).isEqualTo(1);
            assertThat(doorbell.ring(2)).as("the first could not send").isEqualTo(1);
            doorbell.woken(1);
            assertThat(doorbell.ring(3)).isZero();
            Doorbell.setSleeps(doorbell.memory, 2);
            assertThat(doorbell.ring(4)).isEqualTo(2);
            assertThat(Doorbell.take(doorbell.memory, 0)).isEqualTo(0b11110);
            assertThat(Doorbell.take(doorbell.memory, 1)).isEqualTo(1L << 6);
            assertThat(Doorbell.take(doorbell.memory, 1)).isZero();
        }
    }

    /** A wake-up for the loop may go to a socket that closes once its last words are sent. */
    @Test
    void aSocketThatClosesIsReadStill() throws IOException {
        Path name = directory.resolve("s");
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                ServerSocketChannel listening = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            listening.bind(UnixDomainSocketAddress.of(name));
            try (SocketChannel peer = SocketChannel.open(UnixDomainSocketAddress.of(name))) {
                SocketChannel accepted = listening.accept();
                accepted.configureBlocking(false);
                CompletableFuture<Boolean> late = new CompletableFuture<>();
                ControlSocket.Owner owner = new ControlSocket.Owner() {
                    @Override
                    public void onReadable() {
                        late.completeExceptionally(new AssertionError("read as if it were open"));
                    }

                    @Override
                    public void onLateBytes() {
                        late.complete(true);
                    }

                    @Override
                    public void onFailure(Throwable cause) {
                        late.completeExceptionally(cause);
                    }

                    @Override
                    public void onLoopEnding() {}
                };
                CompletableFuture<ControlSocket> closing = CompletableFuture.supplyAsync(
                        () -> {
                            ControlSocket made = new ControlSocket(fixture.serverLoop(), accepted, owner);
                            try {
                                made.register();
                            } catch (IOException e) {
                                throw new UncheckedIOException(e);
                            }
                            made.begin();
                            while (!made.hasUnsent()) {
                                made.send(ByteBuffer.allocate(64 << 10));
                            }
                            assertThat(wasWoken(made))
                                    .as("through a full socket")
                                    .isFalse();
                            made.closeWhenSent();
                            return made;
                        },
                        fixture.serverLoop());
                ControlSocket made = Patience.await("the socket closes", closing);
                peer.write(ByteBuffer.wrap(new byte[] {1}));
                assertThat(Patience.await("the byte is read", late)).isTrue();
                peer.shutdownOutput();
                Patience.until("it closes with its peer", () -> !accepted.isOpen());
                assertThat(made.channel()).isSameAs(accepted);
            }
        }
    }

    private static boolean wasWoken(ControlSocket through) {
        try {
            return Control.wakePeer(through);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void clientsOfAnotherVersionGetAnAnswer() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker attacker = new Attacker(fixture)) {
            ByteBuffer old = ByteBuffer.allocate(64).putInt(0, 60).putLong(4, 0x5645_5242_534d_3032L);
            attacker.write(old);
            assertThat(attacker.awaitReply().verdict()).isEqualTo(Handshake.Verdict.REJECTED);
        }
    }
}
