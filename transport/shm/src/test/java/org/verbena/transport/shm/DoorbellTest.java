package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.shm.ShmFixture.Pair;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;

/** What many connections between two loops cost: counts of system calls, and of looks at connections. */
@Timeout(240)
class DoorbellTest {
    private static final int MESSAGE_BYTES = 64;
    private static final int WINDOW = 4;

    /** Connections that come up at the same time: fewer than the listener's backlog. */
    private static final int CONNECTS = 64;

    /** Connections whose two ends send back whatever comes, until a number of messages has come. */
    private static final class Echoes {
        private final ShmFixture fixture;
        private final RegisteredMemory memory;
        private final List<Pair> pairs = new ArrayList<>();
        private final AtomicLong left = new AtomicLong();
        private final AtomicLong underWay = new AtomicLong();

        Echoes(ShmFixture fixture, int connections) {
            this.fixture = fixture;
            memory = fixture.region(2 * MESSAGE_BYTES, Access.LOCAL_WRITE);
            while (pairs.size() < connections) {
                int batch = connections <= CONNECTS ? 1 : Math.min(CONNECTS, connections - pairs.size());
                List<RecordingEndpointHandler> clients = new ArrayList<>();
                for (int i = 0; i < batch; i++) {
                    clients.add(fixture.connect(fixture.address, handler -> handler.whenPrepared(all(handler))));
                }
                // Requests come in any order: with several at a time the two of a pair are not one connection's ends.
                List<RecordingEndpointHandler> servers = new ArrayList<>();
                for (int i = 0; i < batch; i++) {
                    servers.add(fixture.accept(handler -> handler.whenPrepared(all(handler))));
                }
                for (int i = 0; i < batch; i++) {
                    pairs.add(pair(clients.get(i), servers.get(i)));
                }
            }
        }

        private Pair pair(RecordingEndpointHandler client, RecordingEndpointHandler server) {
            client.awaitConnected();
            client.whenReceived((endpoint, completion) -> {
                receive(client, endpoint);
                if (left.getAndDecrement() > 0) {
                    send(client, endpoint);
                } else {
                    underWay.decrementAndGet();
                }
            });
            server.whenReceived((endpoint, completion) -> {
                receive(server, endpoint);
                send(server, endpoint);
            });
            return new Pair(client, server);
        }

        private Consumer<Endpoint> all(RecordingEndpointHandler handler) {
            return endpoint -> {
                for (int i = 0; i < 2 * WINDOW; i++) {
                    receive(handler, endpoint);
                }
            };
        }

        private void receive(RecordingEndpointHandler handler, Endpoint endpoint) {
            ScatterGatherList list = new ScatterGatherList(1).addHeld(memory, 0, MESSAGE_BYTES);
            assertThat(handler.postReceive(endpoint, 1, list)).isTrue();
        }

        private void send(RecordingEndpointHandler handler, Endpoint endpoint) {
            WorkRequest request = new WorkRequest(1).asSend(1, 0);
            request.buffers().addHeld(memory, MESSAGE_BYTES, MESSAGE_BYTES);
            assertThat(handler.post(endpoint, request)).isTrue();
        }

        /** Has so many messages go to and fro on each connection at a time, and waits for the last. */
        void run(int window, long messages) {
            left.set(messages - (long) window * pairs.size());
            underWay.set((long) window * pairs.size());
            for (Pair pair : pairs) {
                pair.client().run(endpoint -> {
                    for (int i = 0; i < window; i++) {
                        send(pair.client(), endpoint);
                    }
                    endpoint.flush();
                });
            }
            Patience.until("all have come back", () -> underWay.get() == 0);
            Patience.turns(fixture.clientLoop(), fixture.serverLoop());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, ShmIoHandler.FEW, ShmIoHandler.FEW + 1, 100, 1000})
    void aLoopIsWokenOnceForEachTimeThatItSleeps(int connections) {
        long messages = 10_000;
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Echoes echoes = new Echoes(fixture, connections);
            IoEventLoop client = fixture.clientLoop();
            IoEventLoop server = fixture.serverLoop();
            // A connection that does not know yet where to ring is looked at in each turn.
            Patience.until("each has rung once", () -> {
                long before = looks(fixture);
                echoes.run(1, connections);
                return connections <= ShmIoHandler.FEW || looks(fixture) - before <= 4L * connections;
            });
            ShmIoHandler.Work clientBefore = fixture.work(client);
            ShmIoHandler.Work serverBefore = fixture.work(server);
            echoes.run(WINDOW, messages);
            ShmIoHandler.Work clientAfter = fixture.work(client);
            ShmIoHandler.Work serverAfter = fixture.work(server);
            assertCheap(clientBefore, clientAfter, serverBefore, serverAfter, connections, messages);
            assertCheap(serverBefore, serverAfter, clientBefore, clientAfter, connections, messages);
            echoes.pairs.forEach(pair -> pair.client().awaitPrepared().disconnect());
        }
    }

    /** Of both loops. */
    private static long looks(ShmFixture fixture) {
        return fixture.work(fixture.clientLoop()).endpointPolls()
                + fixture.work(fixture.serverLoop()).endpointPolls();
    }

    /** What a loop did, and its peer's sleeps. */
    private static void assertCheap(
            ShmIoHandler.Work before,
            ShmIoHandler.Work after,
            ShmIoHandler.Work peerBefore,
            ShmIoHandler.Work peerAfter,
            int connections,
            long messages) {
        long wakeUps = after.wakeUps() - before.wakeUps();
        long sleeps = peerAfter.sleeps() - peerBefore.sleeps();
        System.out.printf(
                "%d connections, %d messages: %d wake-ups for %d sleeps, %d looks at connections, %d at sockets%n",
                connections,
                messages,
                wakeUps,
                sleeps,
                after.endpointPolls() - before.endpointPolls(),
                after.socketPolls() - before.socketPolls());
        // One sleep may have begun before the first look at the counters.
        assertThat(wakeUps).as("wake-ups of a loop that slept %d times", sleeps).isLessThanOrEqualTo(sleeps + 1);
        if (connections > ShmIoHandler.FEW) {
            assertThat(after.endpointPolls() - before.endpointPolls())
                    .as("looks at connections")
                    .isLessThanOrEqualTo(2 * messages + connections);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 9, 100})
    void idleLoopsBlock(int connections) {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Echoes echoes = new Echoes(fixture, connections);
            echoes.run(WINDOW, 20L * connections);
            fixture.awaitIdle(fixture.clientLoop());
            fixture.awaitIdle(fixture.serverLoop());
            echoes.run(WINDOW, 20L * connections); // and are woken
            echoes.pairs.forEach(pair -> pair.server().awaitPrepared().disconnect());
        }
    }

    private static long count(String file) {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
            return lines.filter(line -> line.contains(file)).count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long descriptors(String file) {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.filter(path -> {
                        try {
                            return Files.readSymbolicLink(path).toString().contains(file);
                        } catch (IOException closed) {
                            return false;
                        }
                    })
                    .count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** This process is both sides: each loop has made a page, and this process has mapped it as a peer's. */
    @Test
    void aDoorbellIsMadeForTheSecondConnectionAndNoOther() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Echoes first = new Echoes(fixture, 1);
            first.run(1, 10);
            assertThat(count("verbena-doorbell")).as("of one connection").isZero();
            Echoes more = new Echoes(fixture, 200);
            more.run(1, 1000);
            first.run(1, 10);
            assertThat(count("verbena-doorbell")).as("of 201 connections").isEqualTo(4);
            assertThat(descriptors("verbena-doorbell")).isEqualTo(2);
            for (Echoes each : List.of(first, more)) {
                each.pairs.forEach(pair -> pair.client().awaitPrepared().disconnect());
            }
            Patience.until("the last has unmapped them", () -> count("verbena-doorbell") == 0);
            assertThat(descriptors("verbena-doorbell")).isZero();
        }
    }

    /** The loop of the server finds the bits only when all of its peers have said goodbye. */
    @Test
    void whatWasRungForBeforeTheEndIsReceived() throws InterruptedException {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Echoes echoes = new Echoes(fixture, 20);
            echoes.run(1, 20);
            CountDownLatch begun = new CountDownLatch(1);
            CountDownLatch over = new CountDownLatch(1);
            fixture.serverLoop().execute(() -> {
                begun.countDown();
                awaitQuietly(over);
            });
            awaitQuietly(begun);
            for (Pair pair : echoes.pairs) {
                pair.server().awaitReceives(1);
                pair.server().whenReceived((endpoint, completion) -> {});
                pair.client().awaitReceives(1);
                pair.client().run(endpoint -> {
                    echoes.send(pair.client(), endpoint);
                    echoes.send(pair.client(), endpoint);
                    endpoint.flush();
                    endpoint.disconnect();
                });
                assertThat(pair.client().awaitDisconnected()).isNull();
            }
            over.countDown();
            for (Pair pair : echoes.pairs) {
                assertThat(pair.server().awaitDisconnected()).isNull();
                assertThat(pair.server().awaitReceives(2))
                        .extracting(RecordingEndpointHandler.Completion::status)
                        .containsOnly(WorkStatus.SUCCESS);
            }
        }
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** The loops look at eight connections, and take the bits of nine: messages come while they change. */
    @Test
    void connectionsBecomeManyAndFewWhileMessagesCome() {
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            Echoes kept = new Echoes(fixture, ShmIoHandler.FEW - 1);
            kept.run(1, 100);
            for (int round = 0; round < 20; round++) {
                kept.left.set(Long.MAX_VALUE);
                kept.underWay.set(kept.pairs.size());
                for (Pair pair : kept.pairs) {
                    pair.client().run(endpoint -> {
                        kept.send(pair.client(), endpoint);
                        endpoint.flush();
                    });
                }
                Echoes more = new Echoes(fixture, 2);
                more.run(1, 10);
                more.pairs.forEach(pair -> pair.client().awaitPrepared().disconnect());
                more.pairs.forEach(
                        pair -> assertThat(pair.server().awaitDisconnected()).isNull());
                kept.left.set(0);
                Patience.until("all have come back", () -> kept.underWay.get() == 0);
            }
            kept.pairs.forEach(pair -> pair.client().awaitPrepared().disconnect());
        }
    }

    /** Slots are given to others at once, and bells that are late ring for them. */
    @Test
    void connectionsComeAndGoBesideOthers() {
        long seed = Long.getLong("verbena.shm.seed", System.nanoTime());
        System.out.println("seed " + seed);
        SplittableRandom random = new SplittableRandom(seed);
        try (ShmFixture fixture = new ShmFixture(ShmOptions.DEFAULTS)) {
            List<Echoes> all = new ArrayList<>();
            for (int round = 0; round < 80; round++) {
                switch (all.isEmpty() ? 0 : random.nextInt(4)) {
                    case 0 -> all.add(new Echoes(fixture, 1 + random.nextInt(3)));
                    case 1 -> {
                        Echoes ended = all.remove(random.nextInt(all.size()));
                        for (Pair pair : ended.pairs) {
                            boolean isClients = random.nextBoolean();
                            pair.client().run(endpoint -> ended.send(pair.client(), endpoint));
                            (isClients ? pair.client() : pair.server())
                                    .awaitPrepared()
                                    .disconnect();
                        }
                    }
                    default -> {
                        Echoes next = all.get(random.nextInt(all.size()));
                        next.run(1 + random.nextInt(WINDOW), 50);
                    }
                }
            }
            for (Echoes each : all) {
                each.run(1, 50);
                each.pairs.forEach(pair -> pair.client().awaitPrepared().disconnect());
            }
        }
    }

    /** A ring is full while its reader does nothing, and the room rings, or is looked for. */
    @ParameterizedTest
    @ValueSource(ints = {3, 10})
    void aWriterThatWaitsForRoomIsRungFor(int connections) {
        ShmOptions small = new ShmOptions(Ring.MIN_BYTES, 5000, 1024, 30_000, 4096, null);
        try (ShmFixture fixture = new ShmFixture(small)) {
            RegisteredMemory memory = fixture.region(1 << 20, Access.LOCAL_WRITE);
            List<Pair> pairs = new ArrayList<>();
            for (int i = 0; i < connections; i++) {
                pairs.add(fixture.connect());
            }
            for (int round = 0; round < 5; round++) {
                for (Pair pair : pairs) {
                    pair.server().receive(round, memory, 0, 1 << 20);
                    WorkRequest send = new WorkRequest(1).asSend(round, 0);
                    send.buffers().add(memory, 0, 1 << 20); // far more than the ring has
                    pair.client().send(send);
                }
                for (Pair pair : pairs) {
                    assertThat(pair.server().awaitReceive().lengthBytes()).isEqualTo(1 << 20);
                    pair.client().awaitSend();
                }
            }
            pairs.forEach(pair -> pair.client().awaitPrepared().disconnect());
        }
    }
}
