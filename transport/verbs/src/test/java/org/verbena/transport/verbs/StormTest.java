package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.slf4j.LoggerFactory;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.transport.spi.WorkRequest.Opcode;

/**
 * Clients that connect again and again, send messages, and use the memory of the server, while the device does its
 * work late, loses and repeats events, takes its time, and refuses and breaks what it likes. No byte is wrong, each end
 * has a cause of its type, all get on when the storm is over, and nothing is left.
 */
@Timeout(300)
@Families.Suite
@Families.Everyday("mlx5")
class StormTest {
    /** One each day, and two with all families. */
    private static final int SEEDS = Integer.getInteger(
            "verbena.storm.seeds", "all".equals(System.getProperty("org.verbena.test.families")) ? 2 : 1);

    private static final int CLIENTS = 4;
    private static final int ECHOES = 4000;
    private static final int SLOTS = 8;
    private static final int WINDOW = 4;
    private static final int SLOT_BYTES = 1024;

    /** Of a message: its number, and of an echo the address and the key of the memory that the server has opened. */
    private static final int HEADER_BYTES = 24;

    // The slots of an end's memory. Receives have the first ones.
    private static final int SENDS = SLOTS;

    /** Messages that the client writes are written here. */
    private static final int WRITTEN = 2 * SLOTS;

    /** What the client writes elsewhere: its copy, and at the server the place. */
    private static final int PROBE = 3 * SLOTS;

    /** What is read from there. */
    private static final int READ = PROBE + 1;

    /** At the server eight bytes that atomics change, and at the client what they found. */
    private static final int WORD = PROBE + 2;

    private static final int ALL_SLOTS = PROBE + 3;

    /** How many of a thousand chances a quirk of stub_rdma.c takes at most. */
    private static final String MOST =
            "work 500 flush 900 slow 50 late 50 twice 100 lost 10 cm-late 300 cm-twice 200 cm-moved 5 fail 10 break 20";

    /** Each loop sleeps whenever it has nothing to do, so that it depends on events. */
    private static final CompletionLoopOptions SLEEPING = new CompletionLoopOptions(
            0,
            CompletionLoopOptions.DEFAULTS.maxCompletionsPerTurn(),
            CompletionLoopOptions.DEFAULTS.completionQueueDepth());

    private static final EndpointOptions OPTIONS = EndpointOptions.DEFAULTS.with(o -> {
        o.connectTimeoutMillis = 20_000;
        o.sendDepth = 2 * SLOTS;
        o.receiveDepth = SLOTS;
    });

    @Parameter
    String family;

    private final Map<String, Integer> ends = new ConcurrentHashMap<>();
    private final Map<Opcode, Integer> done = new ConcurrentHashMap<>();
    private final Queue<String> wrong = new ConcurrentLinkedQueue<>();
    private final Queue<Peer> peers = new ConcurrentLinkedQueue<>();
    private volatile Set<Opcode> able = Set.of();
    private volatile boolean isOver;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
        StubDevice.call("stub_link", 1);
    }

    static IntStream seeds() {
        return IntStream.rangeClosed(1, SEEDS);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void allGetOnWhenItIsOver(int seed) {
        VerbsProvider provider = new VerbsProvider();
        MultiThreadIoEventLoopGroup group = new MultiThreadIoEventLoopGroup(2, provider.newIoHandlerFactory(SLEEPING));
        RecordingListenerHandler listening = new RecordingListenerHandler(group.next());
        listening.whenRequested(request -> {
            Peer server = new Peer(group.next(), null);
            request.accept(server.loop(), OPTIONS, server);
        });
        provider.listen(
                group.next(),
                new InetSocketAddress(StubDevice.ROCE.getAddress(), 0),
                new ListenOptions(64, true),
                listening);
        Listener listener = listening.awaitListening();
        List<Client> clients = new ArrayList<>();
        for (int i = 0; i < CLIENTS; i++) {
            clients.add(new Client(provider, group.next(), listener.localAddress(), new Random(seed * 31L + i)));
        }
        try {
            begin(seed);
            clients.forEach(Client::connect);
            Patience.until("the storm has passed", () -> sum(clients) >= ECHOES);
        } finally {
            StubDevice.call("stub_calm");
        }
        for (Client client : clients) {
            int before = client.echoes;
            Patience.until("it gets on, seed " + seed + " " + ends, () -> client.echoes - before > ECHOES / 4);
        }
        isOver = true;
        clients.forEach(client -> Patience.await("its last attempt", client.loop.submit(() -> {})));
        listener.close();
        listening.awaitClosed();
        peers.forEach(Peer::end);
        peers.forEach(Peer::awaitDisconnected);
        Patience.await("the loops ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        StubDevice.close(provider);
        LoggerFactory.getLogger(StormTest.class)
                .warn(
                        "{}, seed {}: {} echoes, {} ends {}, done {}, quirks {}",
                        family,
                        seed,
                        sum(clients),
                        peers.size(),
                        new TreeMap<>(ends),
                        new TreeMap<>(done),
                        StubDevice.indulged());
        assertThat(StubDevice.indulged()).as("seed %d", seed).isNotEmpty();
        assertThat(wrong).as("seed %d", seed).isEmpty();
        assertThat(done.keySet()).as("seed %d", seed).isEqualTo(able);
        peers.forEach(RecordingEndpointHandler::assertNoViolations);
        assertThat(StubDevice.leaks()).as("seed %d", seed).isEmpty();
    }

    private static Set<Opcode> operations(Endpoint made) {
        Set<Opcode> able = EnumSet.of(Opcode.SEND, Opcode.WRITE, Opcode.READ);
        if (made.capabilities().immediateData()) {
            able.add(Opcode.WRITE_WITH_IMMEDIATE);
        }
        if (made.capabilities().atomics()) {
            able.addAll(Set.of(Opcode.FETCH_AND_ADD, Opcode.COMPARE_AND_SWAP));
        }
        return able;
    }

    private static int sum(List<Client> clients) {
        return clients.stream().mapToInt(client -> client.echoes).sum();
    }

    /** A mixture of its own for each seed. */
    private static void begin(int seed) {
        Random random = new Random(seed);
        StubDevice.call("stub_seed", seed);
        String[] words = MOST.split(" ");
        for (int i = 0; i < words.length; i += 2) {
            int permille = random.nextInt(Integer.parseInt(words[i + 1]) + 1);
            assertThat(StubDevice.call("stub_quirk", words[i], permille)).isZero();
        }
    }

    /** Connects again whenever it has lost its connection. */
    private final class Client {
        private final VerbsProvider provider;
        private final IoEventLoop loop;
        private final InetSocketAddress to;
        private final Random random;
        private volatile int echoes;

        Client(VerbsProvider provider, IoEventLoop loop, InetSocketAddress to, Random random) {
            this.provider = provider;
            this.loop = loop;
            this.to = to;
            this.random = random;
        }

        void connect() {
            if (!isOver) {
                provider.connect(loop, to, OPTIONS, new Peer(loop, this));
            }
        }
    }

    /** An end: that of a client sends, writes, reads and checks, the other one sends back. */
    private final class Peer extends RecordingEndpointHandler {
        private final @Nullable Client client;
        private final MemorySegment memory = Arena.ofAuto().allocate((long) ALL_SLOTS * SLOT_BYTES, Long.BYTES);
        private @Nullable RegisteredMemory region;
        private volatile @Nullable Endpoint endpoint;
        private int sent;
        private int echoed;

        /** Where the server's memory is, once an echo has said so. */
        private long address;

        private int key;
        private boolean isProbing;
        private int probeBytes;
        private int probes;
        private long word;
        private Opcode atomic = Opcode.FETCH_AND_ADD;

        Peer(IoEventLoop loop, @Nullable Client client) {
            super(client == null ? "server" : "client", loop);
            this.client = client;
            whenPrepared(this::prepare);
            whenConnected(made -> attempt(made, () -> {
                able = operations(made);
                for (int i = 0; client != null && i < WINDOW; i++) {
                    speak(made);
                }
                made.flush();
            }));
            whenReceived(this::receive);
            whenSent(this::finish);
            peers.add(this);
        }

        private void prepare(Endpoint made) {
            endpoint = made;
            attempt(made, () -> {
                Set<Access> access = EnumSet.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);
                if (made.capabilities().atomics()) {
                    access.add(Access.REMOTE_ATOMIC);
                }
                region = (client == null ? made.connectionMemory() : made.memoryDomain()).register(memory, access);
                for (int i = 0; i < SLOTS; i++) {
                    post(made, i);
                }
                made.flush();
            });
        }

        private void post(Endpoint made, long slot) {
            postReceive(made, slot, new ScatterGatherList(1).add(region, slot * SLOT_BYTES, SLOT_BYTES));
        }

        /** What is refused ends the connection, unless that has ended it already. */
        private void attempt(Endpoint made, Runnable work) {
            try {
                work.run();
            } catch (RdmaException refused) {
                count(refused);
                made.disconnect();
            }
        }

        private MemorySegment slot(int number) {
            return memory.asSlice((long) number * SLOT_BYTES, SLOT_BYTES);
        }

        /** A message, which is sent, or written where the server looks for it. */
        private void speak(Endpoint made) {
            int number = SENDS + sent % SLOTS;
            MemorySegment slot = slot(number);
            int length =
                    HEADER_BYTES + client.random.nextInt(client.random.nextBoolean() ? 44 : SLOT_BYTES - HEADER_BYTES);
            slot.set(ValueLayout.JAVA_LONG, 0, sent);
            for (int i = HEADER_BYTES; i < length; i++) {
                slot.set(ValueLayout.JAVA_BYTE, i, (byte) (sent * 31 + i));
            }
            WorkRequest work = new WorkRequest(1);
            if (address != 0 && made.capabilities().immediateData() && client.random.nextBoolean()) {
                int to = WRITTEN + sent % SLOTS;
                work.asWriteWithImmediate(sent, inline(made, length), remote(to), key, to);
            } else {
                work.asSend(sent, inline(made, length));
            }
            sent++;
            post(made, work, number, length);
        }

        private static int inline(Endpoint made, int length) {
            return length <= made.capabilities().maxInlineBytes() ? WorkRequest.INLINE : 0;
        }

        private long remote(int slot) {
            return address + (long) slot * SLOT_BYTES;
        }

        private void post(Endpoint made, WorkRequest work, int slot, int length) {
            work.buffers().add(region, (long) slot * SLOT_BYTES, length);
            if (!post(made, work)) {
                made.disconnect();
            }
        }

        /** A write, an atomic and a read of what was written, whose outcome is known; one of each at a time. */
        private void probe(Endpoint made) {
            if (address == 0 || isProbing) {
                return;
            }
            isProbing = true;
            probeBytes = 1 + client.random.nextInt(SLOT_BYTES);
            slot(PROBE).asSlice(0, probeBytes).fill((byte) ++probes);
            WorkRequest work = new WorkRequest(1);
            long id = -1 - Opcode.WRITE.ordinal();
            post(made, work.asWrite(id, inline(made, probeBytes), remote(PROBE), key), PROBE, probeBytes);
            if (made.capabilities().atomics()) {
                atomic = client.random.nextBoolean() ? Opcode.FETCH_AND_ADD : Opcode.COMPARE_AND_SWAP;
                id = -1 - atomic.ordinal();
                post(
                        made,
                        atomic == Opcode.FETCH_AND_ADD
                                ? work.asFetchAndAdd(id, 0, remote(WORD), key, probes)
                                : work.asCompareAndSwap(id, 0, remote(WORD), key, word, word + probes),
                        WORD,
                        Long.BYTES);
            }
            id = -1 - Opcode.READ.ordinal();
            post(made, work.asRead(id, 0, remote(PROBE), key), READ, probeBytes);
        }

        private void finish(Endpoint made, Completion completion) {
            if (completion.status() != WorkStatus.SUCCESS) {
                return;
            }
            Opcode opcode = completion.workId() < 0 ? Opcode.values()[(int) (-1 - completion.workId())] : Opcode.SEND;
            if (opcode == Opcode.READ) {
                isProbing = false;
                if (MemorySegment.mismatch(slot(PROBE), 0, probeBytes, slot(READ), 0, probeBytes) >= 0) {
                    wrong.add("probe " + probes + " was not read as it was written");
                }
            } else if (opcode == atomic) {
                if (slot(WORD).get(ValueLayout.JAVA_LONG, 0) != word) {
                    wrong.add(atomic + " found " + slot(WORD).get(ValueLayout.JAVA_LONG, 0) + " in place of " + word);
                }
                word += probes;
            }
            if (completion.workId() < 0) {
                done.merge(opcode, 1, Integer::sum);
            }
        }

        private void receive(Endpoint made, Completion completion) {
            if (completion.status() != WorkStatus.SUCCESS || region == null) {
                return;
            }
            boolean isWritten = (completion.flags() & EndpointHandler.WITH_IMMEDIATE) != 0;
            MemorySegment slot = slot(isWritten ? completion.immediateData() : (int) completion.workId())
                    .asSlice(0, completion.lengthBytes());
            int answer = SENDS + sent % SLOTS;
            if (client == null) {
                MemorySegment echo = slot(answer).copyFrom(slot);
                echo.set(ValueLayout.JAVA_LONG, 8, region.address());
                echo.set(ValueLayout.JAVA_LONG, 16, region.remoteKey());
                done.merge(isWritten ? Opcode.WRITE_WITH_IMMEDIATE : Opcode.SEND, 1, Integer::sum);
            } else {
                check(slot, completion.lengthBytes());
                address = slot.get(ValueLayout.JAVA_LONG, 8);
                key = (int) slot.get(ValueLayout.JAVA_LONG, 16);
                client.echoes++;
            }
            attempt(made, () -> {
                post(made, completion.workId());
                if (client == null) {
                    int length = completion.lengthBytes();
                    post(made, new WorkRequest(1).asSend(sent++, inline(made, length)), answer, length);
                } else if (isOver || client.random.nextInt(500) == 0) {
                    made.disconnect();
                } else {
                    speak(made);
                    probe(made);
                }
                made.flush();
            });
        }

        private void check(MemorySegment slot, int length) {
            int number = (int) slot.get(ValueLayout.JAVA_LONG, 0);
            boolean isRight = number == echoed++;
            for (int i = HEADER_BYTES; i < length; i++) {
                isRight &= slot.get(ValueLayout.JAVA_BYTE, i) == (byte) (number * 31 + i);
            }
            if (!isRight) {
                wrong.add("message " + number + " in the place of " + (echoed - 1));
            }
        }

        private void count(@Nullable Throwable cause) {
            ends.merge(cause == null ? "in order" : cause.getClass().getSimpleName(), 1, Integer::sum);
            if (cause != null && !(cause instanceof RdmaException)) {
                wrong.add(cause.toString());
            }
        }

        void end() {
            Endpoint made = endpoint;
            if (made != null) {
                made.disconnect();
            }
        }

        @Override
        public void onDisconnected(Endpoint made, @Nullable Throwable cause) {
            super.onDisconnected(made, cause);
            count(cause);
            if (region != null) {
                region.close();
            }
            if (client != null) {
                client.loop.schedule(client::connect, 1, TimeUnit.MILLISECONDS);
            }
        }
    }
}
