package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.shm.HostilePeerTest.Attacker;
import org.verbena.transport.shm.ShmFixture.Pair;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingEndpointHandler.Completion;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** A peer that holds back, floods, or is killed, once its connection is up. */
@Timeout(240)
class HostileDataTest {
    private static final int RING_BYTES = Ring.MIN_BYTES;

    /** Keeps the server's loop from doing anything until it ends. */
    private static final class Block {
        private final CountDownLatch over = new CountDownLatch(1);

        Block(ShmFixture fixture) {
            CountDownLatch begun = new CountDownLatch(1);
            fixture.serverLoop().execute(() -> {
                begun.countDown();
                await(over);
            });
            await(begun);
        }

        void end() {
            over.countDown();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static WorkRequest send(long id) {
        return new WorkRequest(1).asSend(id, 0);
    }

    @Test
    void whatAKilledPeerHadWrittenIsReceived() throws IOException {
        int messages = 40; // more than a batch, after which the answers go out
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker attacker = new Attacker(fixture)) {
            attacker.request(fixture.address);
            RegisteredMemory into = fixture.region(4096, Access.LOCAL_WRITE);
            RecordingEndpointHandler victim = fixture.accept(handler -> handler.whenPrepared(endpoint -> {
                for (int i = 0; i < messages; i++) {
                    boolean unused = handler.postReceive(endpoint, i, new ScatterGatherList(1).add(into, 0, 64));
                }
            }));
            victim.whenReceived((endpoint, completion) -> {
                boolean unused = victim.post(endpoint, send(completion.workId()));
            });
            Block block = new Block(fixture);
            MemorySegment memory = attacker.memory();
            RingWriter writer = new RingWriter(memory, 0, RING_BYTES);
            for (int i = 0; i < messages; i++) {
                writer.claim(8, 8);
                writer.commit(Ring.SEND, Ring.FIRST | Ring.LAST, 8, 0, 0, 0, 8, i);
            }
            boolean unused = writer.publish();
            // It waited for room, and slept.
            Ring.set(memory, Ring.control(0) + Ring.WAITS, true);
            Ring.set(memory, Ring.control(1) + Ring.SLEEPS, true);
            attacker.socket.close();
            block.end();
            assertThat(victim.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
            assertThat(victim.awaitReceives(messages))
                    .extracting(Completion::status)
                    .containsOnly(WorkStatus.SUCCESS);
        }
    }

    @Test
    void aFloodOfWordsHoldsUpNobodyElse() throws Exception {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker attacker = new Attacker(fixture)) {
            List<String> order = new CopyOnWriteArrayList<>();
            RegisteredMemory memory = fixture.region(64, Access.LOCAL_WRITE);
            attacker.request(fixture.address);
            RecordingEndpointHandler victim = fixture.accept();
            victim.receive(1, memory, 0, 64);
            victim.whenReceived((endpoint, completion) -> order.add("the end of the flood"));
            Pair honest = fixture.connect();
            honest.server().receive(1, memory, 0, 64);
            honest.server().whenReceived((endpoint, completion) -> order.add("the honest peer's message"));
            Patience.until("none is polled, which would come first", () -> {
                long polls = fixture.work(fixture.serverLoop()).endpointPolls();
                return fixture.work(fixture.serverLoop()).endpointPolls() == polls;
            });
            Block block = new Block(fixture);
            ByteBuffer flood = ByteBuffer.allocate(64 << 10);
            while (flood.hasRemaining()) {
                flood.put((byte) 1);
            }
            attacker.write(flood.flip());
            attacker.write(Control.disconnect());
            honest.client().send(send(1));
            honest.client().awaitSend();
            block.end();
            victim.awaitDisconnected();
            honest.server().awaitReceive();
            Patience.until("both have come", () -> order.size() == 2);
            assertThat(order).containsExactly("the honest peer's message", "the end of the flood");
        }
    }

    @Test
    void aFullSocketDoesNotSwallowTheGoodbye() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker attacker = new Attacker(fixture)) {
            attacker.request(fixture.address);
            RecordingEndpointHandler victim = fixture.accept();
            Handshake.Reader reader = new Handshake.Reader();
            assertThat(reader.read(attacker.socket)).as("the answer").isNotNull();
            MemorySegment memory = attacker.memory();
            long sleeps = Ring.control(1) + Ring.SLEEPS;
            // Each message to a peer that sleeps is a byte on the socket: more than it takes.
            for (int i = 0; i < 2_000; i++) {
                Ring.set(memory, sleeps, true);
                Ring.publish(memory, Ring.control(1) + Ring.HEAD, Ring.position(memory, Ring.control(1) + Ring.TAIL));
                victim.send(send(i));
                assertThat(victim.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
            }
            victim.run(endpoint -> endpoint.disconnect());
            assertThat(victim.awaitDisconnected()).isNull();
            ByteBuffer all = ByteBuffer.allocate(4096);
            while (attacker.socket.read(all) >= 0) {
                // up to its end
            }
            assertThat(all.position()).as("bytes").isBetween(10, 2_000);
            assertThat(all.get(all.position() - 1))
                    .as("the last")
                    .isEqualTo(Control.disconnect().get(0));
        }
    }

    /** The keys that the victim has published, which is what the peer can read. */
    private static boolean isPublished(MemorySegment memory, int key) {
        return RegionTable.of(memory, 1, RING_BYTES).find(key) >= 0;
    }

    private static void setVisit(MemorySegment memory, int key) {
        memory.set(ValueLayout.JAVA_INT_UNALIGNED, Ring.control(1) + Ring.VISIT, key);
    }

    /** Registers memory until it is opened to the peer: the first time its file is announced. */
    private static RegisteredMemory published(
            ShmFixture fixture, Attacker attacker, RecordingEndpointHandler victim, Access... access) {
        MemorySegment segment = fixture.provider.memoryDomain().allocate(fixture.arena, 4096, Set.of(access));
        RegisteredMemory[] made = new RegisteredMemory[1];
        Patience.until("the memory is opened to the peer", () -> {
            if (made[0] != null) {
                made[0].close();
            }
            made[0] = victim.awaitPrepared().connectionMemory().register(segment, Set.of(access));
            return isPublished(attacker.memory(), made[0].remoteKey());
        });
        return made[0];
    }

    @Test
    void aVisitThatIsClaimedCostsTheLoopNothing() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker attacker = new Attacker(fixture)) {
            attacker.request(fixture.address);
            RecordingEndpointHandler victim = fixture.accept();
            RegisteredMemory written =
                    published(fixture, attacker, victim, Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);
            setVisit(attacker.memory(), written.remoteKey());
            AtomicBoolean gone = new AtomicBoolean();
            written.whenGone(() -> gone.set(true));
            boolean goneAtOnce = victim.call(endpoint -> {
                written.close();
                boolean isGone = gone.get();
                // Its peer ends its visit, before the loop can look how long that was.
                setVisit(attacker.memory(), 0);
                return isGone;
            });
            assertThat(goneAtOnce).as("the loop waited for the peer").isFalse();
            Patience.until("the memory is free", gone::get);
            assertThat(victim.isDisconnected()).isFalse();
        }
    }

    @Test
    void aVisitThatDoesNotEndEndsTheConnection() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker attacker = new Attacker(fixture)) {
            attacker.request(fixture.address);
            RecordingEndpointHandler victim = fixture.accept();
            RegisteredMemory written = published(fixture, attacker, victim, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
            setVisit(attacker.memory(), written.remoteKey());
            AtomicBoolean gone = new AtomicBoolean();
            written.whenGone(() -> gone.set(true));
            victim.run(endpoint -> written.close());
            assertThat(victim.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
            Patience.until("the memory is free", gone::get);
        }
    }

    /** What the loop would look at again later, it does not look at once it ends. */
    @Test
    void aLoopThatEndsWaitsForNoVisit() throws IOException {
        AtomicBoolean gone = new AtomicBoolean();
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker attacker = new Attacker(fixture)) {
            attacker.request(fixture.address);
            RecordingEndpointHandler victim = fixture.accept();
            RegisteredMemory written = published(fixture, attacker, victim, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
            setVisit(attacker.memory(), written.remoteKey());
            written.whenGone(() -> gone.set(true));
            victim.run(endpoint -> {
                written.close();
                fixture.group.shutdownGracefully(0, 1, TimeUnit.SECONDS);
            });
        }
        assertThat(gone).as("the memory is free").isTrue();
    }

    @Test
    void aVisitOfMemoryThatIsOnlyReadMeansNothing() throws IOException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS);
                Attacker attacker = new Attacker(fixture)) {
            attacker.request(fixture.address);
            RecordingEndpointHandler victim = fixture.accept();
            RegisteredMemory read = published(fixture, attacker, victim, Access.REMOTE_READ);
            setVisit(attacker.memory(), read.remoteKey());
            AtomicBoolean gone = new AtomicBoolean();
            read.whenGone(() -> gone.set(true));
            read.close();
            assertThat(gone).isTrue();
            victim.run(endpoint -> {});
            assertThat(victim.isDisconnected()).isFalse();
        }
    }
}
