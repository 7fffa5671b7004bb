package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.net.InetSocketAddress;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.Framing;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.buffer.BufferPoolOptions;
import org.verbena.transport.buffer.RegisteredBufferPool;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.Negotiated;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.memory.MessageBuffers;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RdmaProvider;

/** The message protocol over a real provider, which a subclass names. Failures print their seed. */
@Timeout(350)
public abstract class MessageContract {
    private static final EndpointOptions ENDPOINT = EndpointOptions.DEFAULTS;
    private static final MessageOptions OPTIONS = MessageOptions.DEFAULTS
            .withReceives(32, 4096)
            .withMaxMessageBytes(4 << 20)
            .withRendezvousThresholdBytes(32768);

    private final Map<MemoryDomain, MessageBuffers> buffers = new ConcurrentHashMap<>();
    private final List<RegisteredBufferPool> pools = new CopyOnWriteArrayList<>();
    private final List<Talker> talkers = new CopyOnWriteArrayList<>();
    private final List<Listener> listeners = new CopyOnWriteArrayList<>();
    private final CountDownLatch listenersClosed = new CountDownLatch(1);
    private final long seed = Long.getLong("verbena.protocol.seed", System.nanoTime() & 0xffff_ffffL);
    private MultiThreadIoEventLoopGroup group;

    /**
     * The provider under test.
     *
     * @return an available one
     */
    protected abstract RdmaProvider provider();

    /**
     * Where to listen.
     *
     * @return an address that this provider serves, with port 0
     */
    protected abstract InetSocketAddress listenAddress();

    /**
     * How many messages each end of a connection sends.
     *
     * @return 1 or more
     */
    protected int messageCount() {
        return Integer.getInteger("verbena.protocol.messages", 400);
    }

    /**
     * Whether endpoints of a loop can share a receive queue where they ask for it.
     *
     * @return false on a device that refuses that
     */
    protected boolean hasSharedReceiveQueues() {
        return true;
    }

    /** The connection as the provider gets it. */
    protected EndpointHandler handler(MessageConnection connection) {
        return connection;
    }

    @BeforeEach
    void open() {
        group = new MultiThreadIoEventLoopGroup(2, provider().newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
    }

    @AfterEach
    void close() {
        listeners.forEach(Listener::close);
        Patience.await("event loops ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
        for (RegisteredBufferPool pool : pools) {
            assertThat(pool.metrics().usedBytes())
                    .as("bytes of buffers still out, seed %d", seed)
                    .isZero();
            pool.close();
        }
    }

    @Test
    void everyMessageArrivesOnceAndInOrder() {
        traffic(OPTIONS, ENDPOINT, false);
    }

    @Test
    void everyMessageArrivesInFragments() {
        traffic(OPTIONS.withRendezvousThresholdBytes(Integer.MAX_VALUE), ENDPOINT, false);
    }

    /** On devices they are short at first. */
    @Test
    void everyMessageArrivesThroughReceivesByDefault() {
        traffic(
                OPTIONS.withReceives(MessageOptions.DEVICE_DEFAULT, MessageOptions.DEVICE_DEFAULT)
                        .withRendezvousThresholdBytes(Integer.MAX_VALUE),
                ENDPOINT,
                false);
    }

    @Test
    void everyMessageArrivesThroughQueuesOfTheLeastDepth() {
        EndpointOptions least = EndpointOptions.DEFAULTS.with(o -> {
            o.sendDepth = 3;
            o.receiveDepth = 3;
            o.maxSges = 2;
            o.maxInlineBytes = 0;
            o.readDepth = 1;
        });
        traffic(OPTIONS.withReceives(3, 256).withMaxMessageBytes(1 << 20), least, false);
    }

    @Test
    void everyMessageArrivesThroughASharedReceiveQueue() {
        assumeTrue(hasSharedReceiveQueues(), "the device has no shared receive queues");
        traffic(OPTIONS, shared(), false);
    }

    @Test
    void everyOperationHasItsOutcomeWhenAnEndIsCutOff() {
        traffic(OPTIONS, ENDPOINT, true);
    }

    @Test
    void rawMessagesArriveWhileThePeerHasReceives() {
        MessageOptions raw = OPTIONS.withFraming(Framing.RAW);
        Talker[] pair = connect(raw, ENDPOINT, 1);
        Talker client = pair[0];
        Talker server = pair[1];
        client.onLoop(() -> {
            for (int i = 0; i < 20; i++) {
                client.send(i * 100);
            }
            client.connection.flush();
        });
        Patience.until("20 messages", () -> server.received == 20);
        client.onLoop(client.connection::close);
        client.awaitInactive();
        server.awaitInactive();
        assertThat(client.cause).isNull();
    }

    @Test
    void aListenerRejectsStrangers() {
        Listening listening = listen(OPTIONS, ENDPOINT);
        Talker stranger = new Talker(Role.INITIATOR, OPTIONS.withFraming(Framing.RAW), new Random(seed), 0);
        stranger.start(group.next());
        stranger.endpoint =
                provider().connect(stranger.loop, listening.address(), ENDPOINT, handler(stranger.connection));
        stranger.awaitInactive();
        assertThat(stranger.cause).isInstanceOf(ConnectionException.Rejected.class);
        byte[] data = ((ConnectionException.Rejected) stranger.cause).privateData();
        assertThat(PrivateData.reason(data)).contains("framing MESSAGE");
    }

    private static EndpointOptions shared() {
        return ENDPOINT.with(o -> o.sharedReceiveQueue = true);
    }

    /**
     * Several connections, both directions, all sizes, readers that pause; then one end closes, or is cut off in the
     * middle.
     */
    private void traffic(MessageOptions options, EndpointOptions endpointOptions, boolean cutOff) {
        int connections = 3;
        Talker[] all = connect(options, endpointOptions, connections);
        int count = messageCount();
        for (Talker talker : all) {
            talker.toSend = count;
            talker.onLoop(talker::talk);
        }
        if (cutOff) {
            for (int i = 0; i < connections; i++) {
                Talker victim = all[2 * i + i % 2];
                Patience.until("some traffic", () -> victim.received > count / 4 || victim.inactive);
                if (i == 0) {
                    victim.endpoint.disconnect();
                } else {
                    victim.onLoop(() -> victim.connection.abort(new IllegalStateException("cut off by the test")));
                }
            }
        } else {
            for (Talker talker : all) {
                until(
                        () -> "all messages, seed " + seed + ": " + talker + " / " + talker.other,
                        () -> (talker.received == count && talker.told == count) || talker.inactive);
                assertThat(talker.problem).isNull();
                assertThat(talker.cause).as("%s, seed %d", talker, seed).isNull();
                assertThat(talker.received).isEqualTo(count);
            }
            for (int i = 0; i < connections; i++) {
                Talker closer = all[2 * i + i % 2];
                closer.onLoop(closer.connection::close);
            }
        }
        for (Talker talker : all) {
            talker.awaitInactive();
            assertThat(talker.problem).as("%s, seed %d", talker, seed).isNull();
            assertThat(talker.told).as("%s, seed %d", talker, seed).isEqualTo(talker.sent);
            if (!cutOff) {
                assertThat(talker.cause).as("%s, seed %d", talker, seed).isNull();
                assertThat(talker.failed).isZero();
            }
        }
    }

    /** Waits as long as frames come: with a window of one, a slow machine takes its time. */
    private void until(Supplier<String> what, BooleanSupplier condition) {
        long before;
        do {
            before = framesReceived();
            try {
                Patience.until("what follows", condition);
                return;
            } catch (AssertionError e) {
                if (framesReceived() == before) {
                    throw new AssertionError(e.getMessage() + ": " + what.get(), e);
                }
            }
        } while (true);
    }

    private long framesReceived() {
        long sum = 0;
        for (Talker talker : talkers) {
            sum += talker.connection.statistics().framesReceived();
        }
        return sum;
    }

    private record Listening(InetSocketAddress address, BlockingQueue<Talker> accepted) {}

    private Listening listen(MessageOptions options, EndpointOptions endpointOptions) {
        BlockingQueue<Talker> accepted = new LinkedBlockingQueue<>();
        BlockingQueue<InetSocketAddress> address = new LinkedBlockingQueue<>();
        ListenerHandler handler = new ListenerHandler() {
            @Override
            public void onListening(Listener listener) {
                address.add(listener.localAddress());
            }

            @Override
            public void onConnectRequest(Listener listener, IncomingConnection incoming) {
                byte[] rejection = PrivateData.rejection(options, incoming.privateData());
                if (rejection != null) {
                    incoming.reject(rejection);
                    return;
                }
                Talker talker = new Talker(Role.ACCEPTOR, options, new Random(seed + talkers.size()), talkers.size());
                talker.start(group.next());
                talker.endpoint = incoming.accept(
                        talker.loop,
                        endpointOptions.with(o -> o.privateData = PrivateData.of(options)),
                        handler(talker.connection));
                accepted.add(talker);
            }

            @Override
            public void onClosed(Listener listener, @Nullable Throwable cause) {
                listenersClosed.countDown();
            }
        };
        listeners.add(provider().listen(group.next(), listenAddress(), new ListenOptions(64, true), handler));
        return new Listening(Patience.take("an address", address), accepted);
    }

    /** Pairs: initiator, acceptor, initiator, acceptor ... */
    private Talker[] connect(MessageOptions options, EndpointOptions endpointOptions, int connections) {
        Listening listening = listen(options, endpointOptions);
        Talker[] all = new Talker[2 * connections];
        for (int i = 0; i < connections; i++) {
            Talker client = new Talker(Role.INITIATOR, options, new Random(seed + talkers.size()), talkers.size());
            client.start(group.next());
            client.endpoint = provider()
                    .connect(
                            client.loop,
                            listening.address(),
                            endpointOptions.with(o -> o.privateData = PrivateData.of(options)),
                            handler(client.connection));
            Talker server = Patience.take("a connection", listening.accepted());
            client.other = server;
            server.other = client;
            Patience.until("active", () -> (client.active && server.active) || client.inactive);
            assertThat(client.cause).isNull();
            all[2 * i] = client;
            all[2 * i + 1] = server;
        }
        return all;
    }

    private MessageBuffers buffersOf(MemoryDomain domain) {
        return buffers.computeIfAbsent(domain, key -> {
            BufferPoolOptions options =
                    BufferPoolOptions.DEFAULTS.withAccess(EnumSet.of(MemoryDomain.Access.LOCAL_WRITE));
            RegisteredBufferPool sending = new RegisteredBufferPool(key, options);
            RegisteredBufferPool receiving = new RegisteredBufferPool(key, options);
            pools.add(sending);
            pools.add(receiving);
            return new MessageBuffers(sending, receiving);
        });
    }

    /**
     * One end: sends what it is told to and checks what it receives. A message's size and content follow from the
     * sender's number and its own.
     */
    private final class Talker implements MessageListener {
        private static final int WINDOW = 32;

        private final Role role;
        private final int id;
        private final int largest;
        private final Random random;
        final MessageConnection connection;
        IoEventLoop loop;
        volatile Endpoint endpoint;
        volatile Talker other;
        volatile boolean active;
        volatile boolean inactive;
        volatile @Nullable Throwable cause;
        volatile @Nullable AssertionError problem;
        volatile int sent;
        volatile int told;
        volatile int failed;
        volatile int received;
        volatile int toSend;
        private final AtomicInteger kept = new AtomicInteger();
        private boolean reading = true;

        Talker(Role role, MessageOptions options, Random random, int id) {
            this.role = role;
            this.id = id;
            this.random = random;
            largest = options.maxMessageBytes();
            connection = new MessageConnection(role, options, MessageContract.this::buffersOf, this);
            talkers.add(this);
        }

        void start(io.netty.channel.EventLoop on) {
            loop = (IoEventLoop) on;
        }

        @Override
        public void onDeadline(MessageConnection from, long deadlineNanos) {
            loop.schedule(
                    () -> connection.onDeadline(System.nanoTime()),
                    deadlineNanos - System.nanoTime(),
                    TimeUnit.NANOSECONDS);
        }

        @Override
        public void onResumable(MessageConnection from) {
            loop.execute(connection::resume);
        }

        void onLoop(Runnable task) {
            loop.execute(() -> {
                try {
                    task.run();
                } catch (AssertionError e) {
                    problem = e;
                }
            });
        }

        private int lengthOf(int number) {
            Random sizes = new Random(seed * 31 + id * 1009L + number);
            return switch (sizes.nextInt(20)) {
                case 0 -> 0;
                case 1 -> sizes.nextInt(largest / 4) + 1;
                case 2, 3 -> sizes.nextInt(100_000);
                case 4, 5, 6, 7 -> sizes.nextInt(10_000);
                default -> sizes.nextInt(200);
            };
        }

        private long wordOf(int number, int index) {
            return (seed ^ id) * 0x9E3779B97F4A7C15L + number * 1_000_003L + index;
        }

        void talk() {
            while (!inactive && sent < toSend && sent - told < WINDOW) {
                send(lengthOf(sent));
            }
            connection.flush();
        }

        void send(int length) {
            int number = sent;
            ByteBuf message = null;
            if (endpoint != null && random.nextInt(4) > 0 && connection.endpoint() != null) {
                message = buffersOf(connection.endpoint().memoryDomain()).tryAllocateSend(Math.max(1, length));
            }
            if (message == null) {
                message = random.nextBoolean() ? Unpooled.directBuffer(length + 1) : Unpooled.buffer(length + 1);
            }
            for (int i = 0; i + 8 <= length; i += 8) {
                message.writeLong(wordOf(number, i));
            }
            for (int i = length & ~7; i < length; i++) {
                message.writeByte((byte) (number + i));
            }
            sent = number + 1;
            connection.send(message, this::onOutcome, number);
        }

        private void onOutcome(@Nullable Object context, @Nullable Throwable why) {
            check(context != null && (int) context == told, "outcome " + context + " comes after " + told);
            told++;
            if (why != null) {
                failed++;
            } else if (toSend > 0) {
                talk();
            }
        }

        private void check(boolean condition, String what) {
            if (!condition && problem == null) {
                problem = new AssertionError(what + ", seed " + seed + ", " + this);
            }
        }

        @Override
        public void onActive(MessageConnection from, Negotiated negotiated) {
            active = true;
        }

        @Override
        public void onMessage(MessageConnection from, ByteBuf message) {
            int number = received;
            Talker sender = other;
            int length = message.readableBytes();
            if (sender != null && sender.toSend > 0) {
                check(length == sender.lengthOf(number), "message " + number + " has " + length + " bytes");
                for (int i = 0; i + 8 <= length; i += 8) {
                    if (message.getLong(message.readerIndex() + i) != sender.wordOf(number, i)) {
                        check(false, "message " + number + " of " + length + " differs at " + i);
                        break;
                    }
                }
            }
            received = number + 1;
            if (random.nextInt(8) == 0) {
                // Kept for a while, as users do.
                kept.incrementAndGet();
                loop.schedule(
                        () -> {
                            message.release();
                            kept.decrementAndGet();
                        },
                        random.nextInt(5),
                        TimeUnit.MILLISECONDS);
            } else {
                message.release();
            }
            if (random.nextInt(50) == 0) {
                reading = false;
                connection.setReading(false);
                loop.schedule(this::resume, random.nextInt(10), TimeUnit.MILLISECONDS);
            }
        }

        private void resume() {
            if (!reading && !inactive) {
                reading = true;
                if (connection.setReading(true)) {
                    connection.deliverPending();
                }
            }
        }

        @Override
        public void onReadComplete(MessageConnection from) {
            connection.flush();
        }

        @Override
        public void onImmediate(MessageConnection from, int immediateData, int lengthBytes) {
            check(false, "immediate data that nobody sent");
        }

        @Override
        public void onWritabilityChanged(MessageConnection from, boolean writable) {
            // The window paces the sender.
        }

        @Override
        public void onInactive(MessageConnection from, @Nullable Throwable why) {
            check(!inactive, "inactive twice");
            cause = why;
            inactive = true;
        }

        void awaitInactive() {
            until(() -> "the end of " + this + ", seed " + seed, () -> inactive && kept.get() == 0);
        }

        @Override
        public String toString() {
            return role + " " + id + ": sent " + sent + " told " + told + " received " + received + " cause " + cause
                    + " " + connection;
        }
    }
}
