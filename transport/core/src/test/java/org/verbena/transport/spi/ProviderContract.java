package org.verbena.transport.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.util.IllegalReferenceCountException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkCompletionException;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.RecordingEndpointHandler.Completion;

/**
 * What every provider does, as the Javadoc of this package promises it. A provider's tests are one subclass that says
 * which provider and where to listen. Nothing here depends on how fast anything is; every wait is bounded by
 * {@link Patience}.
 *
 * <p>After each test everything is closed, every handler is asked whether the contract was kept
 * ({@link RecordingEndpointHandler#violations()}), and the memory that is registered must be what it was before.
 */
@Timeout(350)
public abstract class ProviderContract {
    /** Deeper than the default, for tests that post much at once. */
    private static final EndpointOptions OPTIONS = EndpointOptions.DEFAULTS.with(o -> {
        o.sendDepth = 256;
        o.receiveDepth = 256;
        o.maxInlineBytes = 128;
    });

    private static final ValueLayout.OfLong BIG_ENDIAN =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

    private static final int LOOPS = 2;
    private static final int PAGE_BYTES = 4096;

    /** Registered bytes of each domain when it was first seen. */
    private static final Map<MemoryDomain, Long> REGISTERED_AT_FIRST = new ConcurrentHashMap<>();

    private final List<RecordingEndpointHandler> handlers = new CopyOnWriteArrayList<>();
    private final List<RegisteredMemory> regions = new CopyOnWriteArrayList<>();
    private final List<Listener> listeners = new CopyOnWriteArrayList<>();
    private final List<RecordingListenerHandler> listenerHandlers = new CopyOnWriteArrayList<>();
    private Arena arena;
    private MultiThreadIoEventLoopGroup group;

    // ---- what a subclass says

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
     * How many connections {@link #manyConnections} opens.
     *
     * @return {@code -Dverbena.test.connections}, 1000 by default
     */
    protected int connectionCount() {
        return Integer.getInteger("verbena.test.connections", 1000);
    }

    /**
     * Whether a peer's refusal of memory access comes back as {@link WorkStatus#REMOTE_ACCESS_ERROR} of the request.
     *
     * @param opcode a read, write or atomic
     * @return false for operations that complete before the peer has answered (writes over iWARP), or on devices that
     *     flush the request instead
     */
    protected boolean reportsRemoteAccessErrors(WorkRequest.Opcode opcode) {
        return true;
    }

    /**
     * Whether a peer without the right for an operation is refused.
     *
     * @param opcode a read, write or atomic
     * @return false where the device does not check it
     */
    protected boolean refusesWithoutRight(WorkRequest.Opcode opcode) {
        return true;
    }

    /**
     * How a receive ends that is smaller than its message.
     *
     * @return the statuses that are right here; {@link WorkStatus#LOCAL_LENGTH_ERROR} unless a device knows no better
     */
    protected Set<WorkStatus> receiveTooSmallStatuses() {
        return EnumSet.of(WorkStatus.LOCAL_LENGTH_ERROR);
    }

    /**
     * The largest message the size tests send.
     *
     * @return bytes
     */
    protected int largestMessageBytes() {
        return 1 << 20;
    }

    /**
     * How much of a message every endpoint takes inline at least.
     *
     * @return bytes; 80, as siw has, and 0 on a device that sends nothing inline
     */
    protected int minInlineBytes() {
        return 80;
    }

    /**
     * How many elements a send may have at least.
     *
     * @return {@link EndpointOptions#maxSges()} of the defaults, unless a device has fewer
     */
    protected int minSges() {
        return OPTIONS.maxSges();
    }

    /**
     * Whether the outcome of the operation that ends a connection is that one's, and those before it succeed.
     *
     * @return false where a driver reports the oldest that it has not reported in its place, and flushes the others
     */
    protected boolean namesWhatFailed() {
        return true;
    }

    /**
     * Whether endpoints of a loop can share a receive queue where they ask for it.
     *
     * @return false on a device that refuses that
     */
    protected boolean hasSharedReceiveQueues() {
        return true;
    }

    // ---- before and after

    @BeforeEach
    void open() {
        assertThat(provider().unavailabilityCause())
                .as("why the provider is not available")
                .isNull();
        arena = Arena.ofShared();
        group = new MultiThreadIoEventLoopGroup(LOOPS, provider().newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
    }

    @AfterEach
    void close() {
        listeners.forEach(Listener::close);
        listenerHandlers.forEach(RecordingListenerHandler::awaitClosed);
        for (RecordingEndpointHandler handler : handlers) {
            if (!handler.isDisconnected()) {
                handler.awaitPrepared().disconnect();
                handler.awaitDisconnected();
            }
        }
        regions.forEach(RegisteredMemory::close);
        REGISTERED_AT_FIRST.forEach((domain, bytes) -> Patience.until(
                "registered bytes are " + bytes + " again, not " + domain.registeredBytes(),
                () -> domain.registeredBytes() == bytes));
        shutDown();
        handlers.forEach(RecordingEndpointHandler::assertNoViolations);
        listenerHandlers.forEach(RecordingListenerHandler::assertNoViolations);
        arena.close();
    }

    private void shutDown() {
        Patience.await("event loops ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
    }

    // ---- fixtures

    /** Both ends of one connection. */
    private record Pair(RecordingEndpointHandler client, RecordingEndpointHandler server) {}

    private IoEventLoop loop() {
        return group.next();
    }

    private RecordingEndpointHandler newHandler(String name) {
        return newHandler(name, loop());
    }

    private RecordingEndpointHandler newHandler(String name, IoEventLoop loop) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler(name, loop);
        handlers.add(handler);
        return handler;
    }

    /** A handler whose endpoint may never be prepared, so that the end of the test does not wait for it. */
    private RecordingEndpointHandler newLoser(String name) {
        return new RecordingEndpointHandler(name, loop());
    }

    private RecordingListenerHandler listen() {
        return listen(listenAddress());
    }

    private RecordingListenerHandler listen(InetSocketAddress address) {
        IoEventLoop loop = loop();
        RecordingListenerHandler handler = new RecordingListenerHandler(loop);
        listeners.add(provider().listen(loop, address, ListenOptions.DEFAULTS, handler));
        listenerHandlers.add(handler);
        return handler;
    }

    private Endpoint connect(InetSocketAddress address, EndpointOptions options, RecordingEndpointHandler handler) {
        return provider().connect(handler.loop(), address, options, handler);
    }

    private Pair connectPair() {
        return connectPair(OPTIONS, OPTIONS);
    }

    private Pair connectPair(EndpointOptions clientOptions, EndpointOptions serverOptions) {
        return connectPair(clientOptions, serverOptions, newHandler("client"), newHandler("server"));
    }

    private Pair connectPair(
            EndpointOptions clientOptions,
            EndpointOptions serverOptions,
            RecordingEndpointHandler client,
            RecordingEndpointHandler server) {
        RecordingListenerHandler listener = listen();
        connect(listener.awaitListening().localAddress(), clientOptions, client);
        listener.awaitRequest().accept(server.loop(), serverOptions, server);
        client.awaitConnected();
        server.awaitConnected();
        Endpoint clientEndpoint = client.awaitPrepared();
        Endpoint serverEndpoint = server.awaitPrepared();
        REGISTERED_AT_FIRST.computeIfAbsent(clientEndpoint.memoryDomain(), MemoryDomain::registeredBytes);
        REGISTERED_AT_FIRST.computeIfAbsent(serverEndpoint.memoryDomain(), MemoryDomain::registeredBytes);
        return new Pair(client, server);
    }

    /**
     * One empty message from client to server, after which either side may speak: over iWARP the client speaks first.
     */
    private void greet(Pair pair) {
        RegisteredMemory scratch = region(pair.server(), 1, Access.LOCAL_WRITE);
        pair.server().receive(-1, scratch, 0, 1);
        pair.client().send(new WorkRequest(1).asSend(-1, 0));
        assertThat(pair.client().awaitSend()).isEqualTo(new Completion(-1, WorkStatus.SUCCESS, 0, 0, 0));
        assertSuccess(pair.server().awaitReceive(), -1, 0);
    }

    private RegisteredMemory region(RecordingEndpointHandler owner, long bytes, Access... access) {
        RegisteredMemory region = owner.awaitPrepared()
                .memoryDomain()
                .register(arena.allocate(bytes, 8), access.length == 0 ? Set.of() : Set.of(access));
        regions.add(region);
        return region;
    }

    /** A region for the peer of this connection alone, where the device can do that. */
    private RegisteredMemory ownRegion(RecordingEndpointHandler owner, long bytes, Access... access) {
        RegisteredMemory region =
                owner.awaitPrepared().connectionMemory().register(arena.allocate(bytes, 8), Set.of(access));
        regions.add(region);
        return region;
    }

    /** A region that may be the sink of reads on any provider. */
    private RegisteredMemory readSink(RecordingEndpointHandler owner, long bytes) {
        return owner.awaitPrepared().capabilities().readSinkNeedsRemoteWrite()
                ? region(owner, bytes, Access.LOCAL_WRITE, Access.REMOTE_WRITE)
                : region(owner, bytes, Access.LOCAL_WRITE);
    }

    private static WorkRequest sendOf(long workId, RegisteredMemory region, long offset, int length) {
        WorkRequest request = new WorkRequest(1).asSend(workId, 0);
        request.buffers().add(region, offset, length);
        return request;
    }

    private static WorkRequest writeOf(
            long workId, RegisteredMemory from, long offset, int length, RegisteredMemory to, long toOffset) {
        WorkRequest request = new WorkRequest(1).asWrite(workId, 0, to.address() + toOffset, to.remoteKey());
        request.buffers().add(from, offset, length);
        return request;
    }

    private static WorkRequest readOf(
            long workId, RegisteredMemory to, long offset, int length, RegisteredMemory from, long fromOffset) {
        WorkRequest request = new WorkRequest(1).asRead(workId, 0, from.address() + fromOffset, from.remoteKey());
        request.buffers().add(to, offset, length);
        return request;
    }

    private static void fill(MemorySegment segment, long seed) {
        byte[] bytes = new byte[(int) segment.byteSize()];
        new Random(seed).nextBytes(bytes);
        MemorySegment.copy(bytes, 0, segment, ValueLayout.JAVA_BYTE, 0, bytes.length);
    }

    private static void assertSame(
            RegisteredMemory actual, long actualOffset, RegisteredMemory expected, long offset, long length) {
        assertThat(MemorySegment.mismatch(
                        actual.segment(),
                        actualOffset,
                        actualOffset + length,
                        expected.segment(),
                        offset,
                        offset + length))
                .as("first byte that differs")
                .isEqualTo(-1);
    }

    private static void assertSuccess(Completion completion, long workId, int lengthBytes) {
        assertThat(completion).isEqualTo(new Completion(workId, WorkStatus.SUCCESS, lengthBytes, 0, 0));
    }

    private static void assertSent(Completion completion, long workId) {
        assertThat(completion.workId()).isEqualTo(workId);
        assertThat(completion.status()).isEqualTo(WorkStatus.SUCCESS);
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static EndpointOptions withDepths(int sendDepth, int receiveDepth) {
        return EndpointOptions.DEFAULTS.with(o -> {
            o.sendDepth = sendDepth;
            o.receiveDepth = receiveDepth;
            o.maxInlineBytes = 64;
        });
    }

    private static EndpointOptions withInlineBytes(int bytes) {
        return EndpointOptions.DEFAULTS.with(o -> {
            o.sendDepth = 64;
            o.receiveDepth = 64;
            o.maxInlineBytes = bytes;
        });
    }

    private static EndpointOptions withTimeout(int millis) {
        return EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = millis;
            o.sendDepth = 16;
            o.receiveDepth = 16;
            o.maxInlineBytes = 64;
        });
    }

    private static EndpointOptions withSharedReceiveQueue() {
        return EndpointOptions.DEFAULTS.with(o -> {
            o.sendDepth = 64;
            o.receiveDepth = 64;
            o.maxInlineBytes = 64;
            o.sharedReceiveQueue = true;
        });
    }

    private static long seed(String test) {
        long seed =
                Long.getLong("verbena.test.seed", ThreadLocalRandom.current().nextLong());
        System.out.println(test + ": -Dverbena.test.seed=" + seed);
        return seed;
    }

    // ---- connecting

    @Test
    void carriesPrivateDataBothWays() {
        RecordingEndpointHandler client = newHandler("client");
        RecordingEndpointHandler server = newHandler("server");
        RecordingListenerHandler listener = listen();
        InetSocketAddress address = listener.awaitListening().localAddress();
        byte[] longest = new byte[EndpointOptions.MAX_PRIVATE_DATA_BYTES];
        Arrays.fill(longest, (byte) 0x5a);

        Endpoint endpoint = connect(address, OPTIONS.with(o -> o.privateData = longest), client);
        IncomingConnection request = listener.awaitRequest();

        assertThat(request.privateData()).startsWith(longest);
        assertThat(request.localAddress()).isEqualTo(address);
        Endpoint accepted = request.accept(server.loop(), OPTIONS.with(o -> o.privateData = ascii("welcome")), server);
        assertThat(client.awaitConnected()).startsWith(ascii("welcome"));
        server.awaitConnected();
        assertThat(client.awaitPrepared()).isSameAs(endpoint);
        assertThat(server.awaitPrepared()).isSameAs(accepted);
        assertThat(endpoint.remoteAddress()).isEqualTo(address);
        assertThat(accepted.localAddress()).isEqualTo(address);
        assertThat(endpoint.localAddress().getAddress())
                .isEqualTo(accepted.remoteAddress().getAddress());
        assertThat(request.remoteAddress()).isEqualTo(accepted.remoteAddress());
    }

    @Test
    void connectsWithoutPrivateData() {
        RecordingEndpointHandler client = newHandler("client");
        RecordingEndpointHandler server = newHandler("server");
        RecordingListenerHandler listener = listen();
        connect(listener.awaitListening().localAddress(), OPTIONS, client);
        IncomingConnection request = listener.awaitRequest();
        for (byte b : request.privateData()) {
            assertThat(b).as("padding").isZero();
        }
        request.accept(server.loop(), OPTIONS, server);
        for (byte b : client.awaitConnected()) {
            assertThat(b).as("padding").isZero();
        }
    }

    @Test
    void connectsFromTheLoopsOwnThreadWithoutReentrantCallbacks() {
        IoEventLoop loop = loop();
        RecordingListenerHandler listener = listen();
        InetSocketAddress address = listener.awaitListening().localAddress();
        RecordingEndpointHandler client = newHandler("client", loop);
        RecordingEndpointHandler server = newHandler("server", loop);
        AtomicInteger early = new AtomicInteger();
        Patience.await("connect on the loop", loop.submit(() -> {
            client.whenPrepared(endpoint -> early.compareAndSet(0, 1));
            connect(address, OPTIONS, client);
            early.compareAndSet(0, 2);
        }));
        IncomingConnection request = listener.awaitRequest();
        AtomicInteger earlyAccept = new AtomicInteger();
        Patience.await("accept on the loop", loop.submit(() -> {
            server.whenPrepared(endpoint -> earlyAccept.compareAndSet(0, 1));
            request.accept(loop, OPTIONS, server);
            earlyAccept.compareAndSet(0, 2);
        }));
        client.awaitConnected();
        server.awaitConnected();
        assertThat(early).as("connect returns before the first callback").hasValue(2);
        assertThat(earlyAccept).as("accept returns before the first callback").hasValue(2);
    }

    @Test
    void reportsLimitsThatCoverWhatWasRequested() {
        Pair pair = connectPair();
        for (RecordingEndpointHandler side : List.of(pair.client(), pair.server())) {
            EndpointCapabilities capabilities = side.awaitPrepared().capabilities();
            assertThat(capabilities.sendDepth()).isGreaterThanOrEqualTo(OPTIONS.sendDepth());
            assertThat(capabilities.receiveDepth()).isGreaterThanOrEqualTo(OPTIONS.receiveDepth());
            assertThat(capabilities.maxSges()).isGreaterThanOrEqualTo(minSges());
            assertThat(capabilities.maxReadSges()).isBetween(1, capabilities.maxSges());
            assertThat(capabilities.maxInlineBytes())
                    .isGreaterThanOrEqualTo(Math.min(minInlineBytes(), OPTIONS.maxInlineBytes()));
            assertThat(capabilities.readDepth()).isPositive();
            assertThat(capabilities.maxMessageBytes()).isGreaterThanOrEqualTo(1 << 20);
            assertThat(side.<Integer>call(Endpoint::freeSendSlots)).isEqualTo(capabilities.sendDepth());
        }
    }

    @Test
    void rejectsWithAReason() {
        RecordingListenerHandler listener = listen();
        InetSocketAddress address = listener.awaitListening().localAddress();
        RecordingEndpointHandler client = newLoser("client");
        connect(address, OPTIONS, client);
        listener.awaitRequest().reject(ascii("go away"));

        Throwable cause = client.awaitDisconnected();
        assertThat(cause)
                .isInstanceOfSatisfying(
                        ConnectionException.Rejected.class,
                        rejected -> assertThat(rejected.privateData()).startsWith(ascii("go away")));
        assertThat(cause).hasMessageContaining(Integer.toString(address.getPort()));
        assertThat(client.isConnected()).isFalse();
        client.assertNoViolations();
    }

    @Test
    void isRejectedWhereNobodyListens() {
        RecordingListenerHandler listener = listen();
        Listener open = listener.awaitListening();
        InetSocketAddress address = open.localAddress();
        open.close();
        listener.awaitClosed();

        RecordingEndpointHandler client = newLoser("client");
        connect(address, OPTIONS, client);
        assertThat(client.awaitDisconnected())
                .isInstanceOf(ConnectionException.Rejected.class)
                .hasMessageContaining(Integer.toString(address.getPort()));
        assertThat(client.isConnected()).isFalse();
        client.assertNoViolations();
    }

    @Test
    void timesOutWhenNobodyAnswersAndALateAcceptFails() {
        RecordingListenerHandler listener = listen();
        InetSocketAddress address = listener.awaitListening().localAddress();
        // Well before the listener itself gives up. On a busy machine the request may not even have come then.
        IncomingConnection request = null;
        for (int millis = 200; request == null; millis *= 2) {
            assertThat(millis).as("a timeout within which the request comes").isLessThan(60_000);
            RecordingEndpointHandler client = newLoser("client");
            long start = System.nanoTime();
            connect(address, withTimeout(millis), client);
            assertThat(client.awaitDisconnected())
                    .isInstanceOf(ConnectionException.TimedOut.class)
                    .hasMessageContaining(Integer.toString(address.getPort()));
            assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(millis - 10));
            assertThat(client.isConnected()).isFalse();
            client.assertNoViolations();
            request = listener.tryRequest();
        }

        RecordingEndpointHandler server = newLoser("late server");
        request.accept(server.loop(), withTimeout(3000), server);
        Throwable cause = server.awaitDisconnected();
        if (!server.isConnected()) {
            assertThat(cause).isInstanceOf(ConnectionException.class);
        }
        server.assertNoViolations();
    }

    @Test
    protected void rejectsARequestThatIsForgotten() {
        RecordingListenerHandler listener = listen();
        RecordingEndpointHandler client = newLoser("client");
        connect(listener.awaitListening().localAddress(), withTimeout(60_000), client);
        IncomingConnection forgotten = listener.awaitRequest();
        assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.class);
        assertThat(client.isConnected()).isFalse();
        client.assertNoViolations();
        assertThat(forgotten.remoteAddress()).isNotNull();
    }

    @Test
    void decidesOnARequestOnce() {
        RecordingListenerHandler listener = listen();
        RecordingEndpointHandler client = newHandler("client");
        RecordingEndpointHandler server = newHandler("server");
        connect(listener.awaitListening().localAddress(), OPTIONS, client);
        IncomingConnection request = listener.awaitRequest();
        request.accept(server.loop(), OPTIONS, server);
        assertThatThrownBy(() -> request.reject(new byte[0])).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> request.accept(server.loop(), OPTIONS, newLoser("second")))
                .isInstanceOf(IllegalStateException.class);
        client.awaitConnected();
        server.awaitConnected();

        RecordingEndpointHandler other = newLoser("other");
        connect(listener.awaitListening().localAddress(), OPTIONS, other);
        IncomingConnection rejected = listener.awaitRequest();
        rejected.reject(new byte[0]);
        assertThatThrownBy(() -> rejected.reject(new byte[0])).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> rejected.accept(server.loop(), OPTIONS, newLoser("third")))
                .isInstanceOf(IllegalStateException.class);
        assertThat(other.awaitDisconnected()).isInstanceOf(ConnectionException.Rejected.class);
    }

    @Test
    void givesUpAnAttempt() {
        RecordingListenerHandler listener = listen();
        RecordingEndpointHandler client = newLoser("client");
        Endpoint endpoint = connect(listener.awaitListening().localAddress(), OPTIONS, client);
        endpoint.disconnect();
        endpoint.disconnect();
        Throwable cause = client.awaitDisconnected();
        if (cause != null) {
            assertThat(cause).isInstanceOf(ConnectionException.class);
        }
        client.assertNoViolations();
    }

    @Test
    void refusesWorkBeforeItIsConnected() {
        AtomicReference<@Nullable Boolean> early = new AtomicReference<>();
        RecordingEndpointHandler client = newHandler("client");
        client.whenPrepared(endpoint -> early.set(client.post(endpoint, new WorkRequest(1).asSend(1, 0))));
        connectPair(OPTIONS, OPTIONS, client, newHandler("server"));
        assertThat(early).hasValue(false);
    }

    // ---- listening

    @Test
    void saysWhyItCannotListen() {
        InetSocketAddress taken = listen().awaitListening().localAddress();
        RecordingListenerHandler second = listen(taken);
        assertThat(second.awaitClosed())
                .as("cause of a second listener")
                .isNotNull()
                .hasMessageContaining(Integer.toString(taken.getPort()));
        // 192.0.2.0/24 is reserved for documentation: no host has it.
        RecordingListenerHandler foreign = listen(new InetSocketAddress("192.0.2.77", 0));
        assertThat(foreign.awaitClosed()).as("cause at a foreign address").isNotNull();
    }

    @Test
    void connectsFromAnAddressThatWasBoundBefore() {
        InetSocketAddress anyPort = new InetSocketAddress(listenAddress().getAddress(), 0);
        RecordingListenerHandler listener = listen();
        InetSocketAddress to = listener.awaitListening().localAddress();
        LocalBinding bound = provider().bind(anyPort);
        InetSocketAddress from = bound.localAddress();
        assertThat(from.getPort()).isPositive();
        assertThatThrownBy(() -> provider().bind(from)).isInstanceOf(ConnectionException.class);
        RecordingEndpointHandler client = newHandler("client");
        bound.connect(client.loop(), to, OPTIONS, client);
        IncomingConnection request = listener.awaitRequest();
        assertThat(request.remoteAddress().getAddress()).isEqualTo(from.getAddress());
        RecordingEndpointHandler server = newHandler("server");
        request.accept(server.loop(), OPTIONS, server);
        assertThat(client.awaitConnected()).isNotNull();
        assertThat(client.awaitPrepared().localAddress()).isEqualTo(from);
        server.awaitConnected();
        bound.close(); // it is the endpoint's now
        assertThatThrownBy(() -> bound.connect(client.loop(), to, OPTIONS, client))
                .isInstanceOf(IllegalStateException.class);
        LocalBinding unused = provider().bind(anyPort);
        InetSocketAddress free = unused.localAddress();
        unused.close();
        unused.close();
        provider().bind(free).close();
        assertThatThrownBy(() -> provider().bind(new InetSocketAddress("192.0.2.77", 0)))
                .as("a foreign address")
                .isInstanceOf(ConnectionException.class);
    }

    @Test
    void closesAListenerAndKeepsItsConnections() {
        Pair pair = connectPair();
        Listener listener = listeners.getFirst();
        assertThat(listener.localAddress().getPort()).isPositive();
        listener.close();
        listener.close();
        assertThat(listenerHandlers.getFirst().awaitClosed()).isNull();
        greet(pair);
    }

    // ---- messages

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 7, 64, 65, 1000, 4096, 65_537, -1})
    void carriesMessagesOfAllSizes(int size) {
        int length = size < 0 ? largestMessageBytes() : size;
        Pair pair = connectPair();
        RegisteredMemory source = region(pair.client(), length + 16);
        RegisteredMemory sink = region(pair.server(), length + 16, Access.LOCAL_WRITE);
        fill(source.segment(), length);
        pair.server().receive(1, sink, 3, length);
        pair.client().send(sendOf(2, source, 5, length));
        assertSent(pair.client().awaitSend(), 2);
        assertSuccess(pair.server().awaitReceive(), 1, length);
        assertSame(sink, 3, source, 5, length);
        assertThat(sink.segment().get(ValueLayout.JAVA_BYTE, 2)).isZero();
        assertThat(sink.segment().get(ValueLayout.JAVA_BYTE, 3 + length)).isZero();

        // And the other way, into a larger receive.
        RegisteredMemory back = region(pair.client(), length + 16, Access.LOCAL_WRITE);
        pair.client().receive(3, back, 0, length + 16);
        pair.server().send(sendOf(4, sink, 3, length));
        assertSent(pair.server().awaitSend(), 4);
        assertSuccess(pair.client().awaitReceive(), 3, length);
        assertSame(back, 0, source, 5, length);
    }

    /** siw corrupts a small send that crosses a page, unless it sends it within the call that posts it. */
    @Test
    void readsWhatIsSmallAndCrossesAPage() {
        Pair pair = connectPair();
        RegisteredMemory table =
                region(pair.server(), 2 * PAGE_BYTES, Access.LOCAL_WRITE, Access.REMOTE_WRITE, Access.REMOTE_READ);
        RegisteredMemory back = readSink(pair.client(), 64);
        fill(table.segment(), 1);
        for (int length = 2; length <= 40; length += 3) {
            for (int before = 1; before < length; before += 5) {
                back.segment().fill((byte) 0);
                long at = firstPage(table) - before;
                pair.client().send(readOf(1, back, 8, length, table, at));
                assertSuccess(pair.client().awaitSend(), 1, length);
                assertSame(back, 8, table, at, length);
                assertThat(back.segment().get(ValueLayout.JAVA_BYTE, 7)).isZero();
                assertThat(back.segment().get(ValueLayout.JAVA_BYTE, 8 + length))
                        .isZero();
            }
        }
    }

    @Test
    void writesWhatIsSmallAndCrossesAPageBehindARead() {
        EndpointOptions withoutInline = EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = 60_000;
            o.sendDepth = 16;
            o.receiveDepth = 16;
            o.maxSges = 1;
            o.maxInlineBytes = 0;
            o.readDepth = 1;
        });
        Pair pair = connectPair(withoutInline, OPTIONS);
        RegisteredMemory table =
                region(pair.server(), 2 * PAGE_BYTES, Access.LOCAL_WRITE, Access.REMOTE_WRITE, Access.REMOTE_READ);
        RegisteredMemory source = region(pair.client(), 2 * PAGE_BYTES);
        RegisteredMemory back = readSink(pair.client(), PAGE_BYTES);
        fill(source.segment(), 2);
        for (int length = 2; length <= 40; length += 3) {
            for (int before = 1; before < length; before += 5) {
                table.segment().fill((byte) 0);
                WorkRequest write =
                        new WorkRequest(1).asWrite(3, WorkRequest.FENCE, table.address() + 8, table.remoteKey());
                write.buffers().add(source, firstPage(source) - before, length);
                pair.client().run(endpoint -> {
                    assertThat(pair.client().post(endpoint, readOf(2, back, 0, PAGE_BYTES, table, 0)))
                            .isTrue();
                    assertThat(pair.client().post(endpoint, write)).isTrue();
                    endpoint.flush();
                });
                assertSuccess(pair.client().awaitSend(), 2, PAGE_BYTES);
                assertSent(pair.client().awaitSend(), 3);
                pair.client().send(readOf(4, back, 0, PAGE_BYTES, table, 0));
                assertSuccess(pair.client().awaitSend(), 4, PAGE_BYTES);
                assertSame(table, 8, source, firstPage(source) - before, length);
            }
        }
    }

    /** The offset of an address that begins a page, with room for some bytes before it, in a region of two pages. */
    private static long firstPage(RegisteredMemory region) {
        long offset = PAGE_BYTES - (region.address() & PAGE_BYTES - 1);
        return offset < 64 ? offset + PAGE_BYTES : offset;
    }

    @Test
    void carriesEmptyMessagesWithoutBuffers() {
        Pair pair = connectPair();
        pair.server().run(endpoint -> {
            assertThat(pair.server().postReceive(endpoint, 1, new ScatterGatherList(1)))
                    .isTrue();
            endpoint.flush();
        });
        pair.client().send(new WorkRequest(1).asSend(2, 0));
        assertSent(pair.client().awaitSend(), 2);
        assertSuccess(pair.server().awaitReceive(), 1, 0);
    }

    /** 65536 is more than any provider has: it gives what it has, and that can be used to the full. */
    @ParameterizedTest
    @ValueSource(ints = {64, 1 << 16})
    void usesInlineMemoryOnlyDuringTheCall(int wanted) {
        EndpointOptions options = withInlineBytes(wanted);
        Pair pair = connectPair(options, options);
        int length = pair.client().awaitPrepared().capabilities().maxInlineBytes();
        assertThat(length).isBetween(Math.min(wanted, minInlineBytes()), (1 << 16) - 1);
        assumeTrue(length > 0, "nothing is sent inline here");
        RegisteredMemory source = region(pair.client(), length);
        RegisteredMemory sink = region(pair.server(), 2L * length, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
        fill(source.segment(), 7);
        byte[] expected = source.segment().toArray(ValueLayout.JAVA_BYTE);
        pair.server().receive(1, sink, 0, length);
        boolean taken = pair.client().call(endpoint -> {
            WorkRequest write =
                    new WorkRequest(1).asWrite(2, WorkRequest.INLINE, sink.address() + length, sink.remoteKey());
            write.buffers().add(source, 0, length);
            boolean posted = pair.client().post(endpoint, write);
            WorkRequest send = new WorkRequest(1).asSend(3, WorkRequest.INLINE);
            send.buffers().add(source, 0, length);
            posted &= pair.client().post(endpoint, send);
            source.segment().fill((byte) 0);
            endpoint.flush();
            return posted;
        });
        assertThat(taken).isTrue();
        assertSent(pair.client().awaitSend(), 2);
        assertSent(pair.client().awaitSend(), 3);
        assertSuccess(pair.server().awaitReceive(), 1, length);
        byte[] received = sink.segment().toArray(ValueLayout.JAVA_BYTE);
        assertThat(Arrays.copyOf(received, length)).isEqualTo(expected);
        assertThat(Arrays.copyOfRange(received, length, 2 * length)).isEqualTo(expected);
    }

    @Test
    void gathersAndScatters() {
        Pair pair = connectPair();
        int sges = Math.min(4, pair.client().awaitPrepared().capabilities().maxSges());
        int receiveSges =
                Math.min(4, pair.server().awaitPrepared().capabilities().maxReceiveSges());
        RegisteredMemory one = region(pair.client(), 4096);
        RegisteredMemory two = region(pair.client(), 4096);
        RegisteredMemory sink = region(pair.server(), 8192, Access.LOCAL_WRITE);
        fill(one.segment(), 1);
        fill(two.segment(), 2);
        WorkRequest send = new WorkRequest(sges).asSend(1, 0);
        ScatterGatherList receive = new ScatterGatherList(receiveSges);
        for (int i = 0; i < receiveSges; i++) {
            receive.add(sink, 1000L * (receiveSges - i), i == receiveSges - 1 ? 900 : 60);
        }
        byte[] expected = new byte[0];
        for (int i = 0; i < sges; i++) {
            RegisteredMemory from = i % 2 == 0 ? one : two;
            int length = 100 + 17 * i;
            send.buffers().add(from, 200L * i, length);
            byte[] sge = from.segment().asSlice(200L * i, length).toArray(ValueLayout.JAVA_BYTE);
            expected = Arrays.copyOf(expected, expected.length + length);
            System.arraycopy(sge, 0, expected, expected.length - length, length);
        }
        pair.server().run(endpoint -> {
            assertThat(pair.server().postReceive(endpoint, 2, receive)).isTrue();
            endpoint.flush();
        });
        pair.client().send(send);
        assertSent(pair.client().awaitSend(), 1);
        assertSuccess(pair.server().awaitReceive(), 2, expected.length);
        byte[] received = new byte[expected.length];
        int at = 0;
        for (int i = 0; i < receiveSges; i++) {
            int length = Math.min(i == receiveSges - 1 ? 900 : 60, expected.length - at);
            MemorySegment.copy(sink.segment(), ValueLayout.JAVA_BYTE, 1000L * (receiveSges - i), received, at, length);
            at += length;
        }
        assertThat(received).isEqualTo(expected);
    }

    @Test
    void keepsTheOrderOfALinkedBatch() {
        Pair pair = connectPair();
        boolean hasInline = pair.client().awaitPrepared().capabilities().maxInlineBytes() >= 8;
        int count = 64;
        RegisteredMemory source = region(pair.client(), 8L * count);
        RegisteredMemory sink = region(pair.server(), 8L * count, Access.LOCAL_WRITE);
        for (int i = 0; i < count; i++) {
            source.segment().setAtIndex(ValueLayout.JAVA_LONG, i, 1000 + i);
        }
        pair.server().run(endpoint -> {
            ScatterGatherList list = new ScatterGatherList(1);
            for (int i = 0; i < count; i++) {
                assertThat(pair.server().postReceive(endpoint, i, list.clear().add(sink, 8L * i, 8)))
                        .isTrue();
            }
            endpoint.flush();
        });
        pair.client().run(endpoint -> {
            WorkRequest request = new WorkRequest(1);
            for (int i = 0; i < count; i++) {
                request.asSend(100 + i, hasInline && i % 3 == 0 ? WorkRequest.INLINE : 0)
                        .buffers()
                        .add(source, 8L * i, 8);
                assertThat(pair.client().post(endpoint, request)).isTrue();
            }
            endpoint.flush();
            endpoint.flush();
        });
        List<Completion> sent = pair.client().awaitSends(count);
        List<Completion> received = pair.server().awaitReceives(count);
        for (int i = 0; i < count; i++) {
            assertSent(sent.get(i), 100 + i);
            assertSuccess(received.get(i), i, 8);
            assertThat(sink.segment().getAtIndex(ValueLayout.JAVA_LONG, i)).isEqualTo(1000 + i);
        }
        Patience.until(
                "a batch end",
                () -> pair.client().batchEnds() > 0 && pair.server().batchEnds() > 0);
    }

    /** A provider that copies does so at once, in the order of all else; another leaves the message to be posted. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 64, 1000, 4000})
    void copiesMessagesInTheirOrderOrLeavesThemToBePosted(int restBytes) {
        Pair pair = connectPair();
        greet(pair);
        int count = 40;
        int bytes = 2 * Long.BYTES + restBytes;
        boolean isInline = bytes
                <= Math.min(128, pair.client().awaitPrepared().capabilities().maxInlineBytes());
        RegisteredMemory source = region(pair.client(), bytes);
        fill(source.segment(), 5);
        RegisteredMemory sink = region(pair.server(), (long) bytes * count, Access.LOCAL_WRITE);
        pair.server().run(endpoint -> {
            ScatterGatherList list = new ScatterGatherList(1);
            for (int i = 0; i < count; i++) {
                list.clear().add(sink, (long) bytes * i, bytes);
                assertThat(pair.server().postReceive(endpoint, i, list)).isTrue();
            }
            endpoint.flush();
        });
        ByteBuf rest = Unpooled.buffer(restBytes + 3).writeZero(3);
        for (int i = 2 * Long.BYTES; i < bytes; i++) {
            rest.writeByte(source.segment().get(ValueLayout.JAVA_BYTE, i));
        }
        List<Integer> copied = new ArrayList<>();
        List<Integer> posted = new ArrayList<>();
        pair.client().run(endpoint -> {
            int slots = endpoint.freeSendSlots();
            for (int i = 0; i < count; i++) {
                // The fourth of each five goes the other way, and what was posted is given to the device now and then.
                if (i % 5 != 3 && endpoint.trySend(i, ~i, rest, 3, restBytes)) {
                    assertThat(endpoint.hasSentCopies()).as("before the flush").isFalse();
                    copied.add(i);
                } else {
                    source.segment().set(BIG_ENDIAN, 0, i);
                    source.segment().set(BIG_ENDIAN, Long.BYTES, ~i);
                    WorkRequest request = new WorkRequest(1).asSend(100 + i, isInline ? WorkRequest.INLINE : 0);
                    request.buffers().add(source, 0, bytes);
                    posted.add(i);
                    assertThat(pair.client().post(endpoint, request)).isTrue();
                    if (!isInline) {
                        endpoint.flush();
                    }
                }
                if (i % 10 == 9) {
                    endpoint.flush();
                }
            }
            endpoint.flush();
            assertThat(slots - endpoint.freeSendSlots()).as("slots").isLessThanOrEqualTo(posted.size());
        });
        System.out.println(copied.size() + " of " + count + " messages of " + bytes + " bytes were copied at once");
        for (int i = 0; i < count; i++) {
            assertSuccess(pair.server().awaitReceive(), i, bytes);
            if (isInline || copied.contains(i)) {
                assertThat(sink.segment().get(BIG_ENDIAN, (long) bytes * i)).isEqualTo(i);
                assertThat(sink.segment().get(BIG_ENDIAN, (long) bytes * i + Long.BYTES))
                        .isEqualTo(~i);
            }
            assertSame(sink, (long) bytes * i + 2 * Long.BYTES, source, 2 * Long.BYTES, restBytes);
        }
        for (int i : posted) {
            assertSent(pair.client().awaitSend(), 100 + i);
        }
        Patience.until("what was copied has gone", () -> pair.client().call(Endpoint::hasSentCopies));
        rest.release();
    }

    @Test
    void copiesNothingWithoutAConnection() {
        Pair pair = connectPair();
        greet(pair);
        ByteBuf rest = Unpooled.buffer(1).writeZero(1);
        pair.client().run(endpoint -> {
            endpoint.disconnect();
            assertThat(endpoint.trySend(1, 2, rest, 0, 1)).isFalse();
        });
        pair.client().awaitDisconnected();
        pair.server().awaitDisconnected();
        pair.client()
                .run(endpoint -> assertThat(endpoint.trySend(1, 2, rest, 0, 1)).isFalse());
        rest.release();
    }

    /** What cannot be read is not sent, and what follows is. */
    @Test
    void copiesNothingOfABufferThatCannotBeRead() {
        Pair pair = connectPair();
        greet(pair);
        RegisteredMemory sink = region(pair.server(), 64, Access.LOCAL_WRITE);
        pair.server().receive(1, sink, 0, 64);
        ByteBuf gone = Unpooled.buffer(1).writeZero(1);
        gone.release();
        ByteBuf rest = Unpooled.buffer(1).writeByte(7);
        boolean copied = pair.client().call(endpoint -> {
            try {
                assertThat(endpoint.trySend(1, 2, gone, 0, 1)).isFalse();
            } catch (IllegalReferenceCountException expected) {
                // The provider copies.
            }
            endpoint.flush();
            boolean taken = endpoint.trySend(3, 4, rest, 0, 1);
            endpoint.flush();
            return taken;
        });
        if (copied) {
            assertSuccess(pair.server().awaitReceive(), 1, 17);
            assertThat(sink.segment().get(BIG_ENDIAN, 0)).isEqualTo(3);
            assertThat(sink.segment().get(ValueLayout.JAVA_BYTE, 16)).isEqualTo((byte) 7);
        }
        rest.release();
    }

    /** Whatever the order, each receive has the message that completes it. */
    @Test
    void takesReceivesInAnyOrderOnceThatIsAllowed() {
        Pair pair = connectPair();
        greet(pair);
        int count = 20;
        RegisteredMemory source = region(pair.client(), 8L * count);
        RegisteredMemory sink = region(pair.server(), 8L * count, Access.LOCAL_WRITE);
        pair.server().sharesReceives(); // their order is not checked
        pair.server().run(endpoint -> {
            endpoint.takeReceivesInAnyOrder();
            ScatterGatherList list = new ScatterGatherList(1);
            for (int i = 0; i < count; i++) {
                list.clear().add(sink, 8L * i, 8);
                assertThat(endpoint.postReceive(i, list)).isTrue();
            }
            endpoint.flush();
        });
        pair.client().run(endpoint -> {
            WorkRequest request = new WorkRequest(1);
            for (int i = 0; i < count; i++) {
                source.segment().setAtIndex(ValueLayout.JAVA_LONG, i, 1000 + i);
                request.asSend(100 + i, 0).buffers().add(source, 8L * i, 8);
                assertThat(pair.client().post(endpoint, request)).isTrue();
            }
            endpoint.flush();
        });
        pair.client().awaitSends(count);
        List<Completion> received = pair.server().awaitReceives(count);
        for (int i = 0; i < count; i++) {
            long slot = received.get(i).workId();
            assertThat(sink.segment().getAtIndex(ValueLayout.JAVA_LONG, slot)).isEqualTo(1000 + i);
        }
        assertThat(received.stream().map(Completion::workId)).doesNotHaveDuplicates();
    }

    @Test
    void echoesManyMessages() {
        int count = 2000;
        int window = 8;
        int slots = 64;
        RecordingEndpointHandler client = newHandler("client");
        RecordingEndpointHandler server = newHandler("server");
        connectPair(OPTIONS, OPTIONS, client, server);
        RegisteredMemory clientMemory = region(client, 64L * slots, Access.LOCAL_WRITE);
        RegisteredMemory serverMemory = region(server, 64L * slots, Access.LOCAL_WRITE);
        List<String> wrong = new CopyOnWriteArrayList<>();

        // The server echoes out of the slot that it received into, and receives into another one meanwhile.
        ArrayDeque<Integer> free = new ArrayDeque<>();
        ScatterGatherList serverList = new ScatterGatherList(1);
        WorkRequest serverRequest = new WorkRequest(1);
        server.whenReceived((endpoint, completion) -> {
            if (completion.status() != WorkStatus.SUCCESS) {
                return;
            }
            long slot = completion.workId();
            serverRequest.asSend(slot, 0).buffers().add(serverMemory, 64 * slot, completion.lengthBytes());
            assertThat(server.post(endpoint, serverRequest)).isTrue();
            int next = free.remove();
            serverList.clear().add(serverMemory, 64L * next, 64);
            assertThat(server.postReceive(endpoint, next, serverList)).isTrue();
        });
        server.whenSent((endpoint, completion) -> free.add((int) completion.workId()));
        server.whenCompletionsHandled(Endpoint::flush);
        server.run(endpoint -> {
            for (int i = 0; i < slots; i++) {
                if (i < 2 * window) {
                    serverList.clear().add(serverMemory, 64L * i, 64);
                    assertThat(server.postReceive(endpoint, i, serverList)).isTrue();
                } else {
                    free.add(i);
                }
            }
            endpoint.flush();
        });

        // The client has one receive posted for each message that is out.
        AtomicInteger sent = new AtomicInteger();
        AtomicInteger echoed = new AtomicInteger();
        ScatterGatherList list = new ScatterGatherList(1);
        WorkRequest request = new WorkRequest(1);
        Consumer<Endpoint> sendNext = endpoint -> {
            int number = sent.getAndIncrement();
            int slot = number % (slots / 2);
            list.clear().add(clientMemory, 64L * slot, 64);
            assertThat(client.postReceive(endpoint, slot, list)).isTrue();
            clientMemory.segment().set(ValueLayout.JAVA_INT, 64L * (slots / 2 + slot), number);
            request.asSend(slot, 0).buffers().add(clientMemory, 64L * (slots / 2 + slot), 4 + number % 60);
            assertThat(client.post(endpoint, request)).isTrue();
        };
        client.whenReceived((endpoint, completion) -> {
            if (completion.status() != WorkStatus.SUCCESS) {
                return;
            }
            int expected = echoed.getAndIncrement();
            int number = clientMemory.segment().get(ValueLayout.JAVA_INT, 64 * completion.workId());
            if (number != expected || completion.lengthBytes() != 4 + expected % 60) {
                wrong.add("echo " + number + " of " + completion.lengthBytes() + " bytes where " + expected
                        + " was next");
            }
            if (sent.get() < count) {
                sendNext.accept(endpoint);
            }
        });
        client.whenCompletionsHandled(Endpoint::flush);
        client.run(endpoint -> {
            for (int i = 0; i < window; i++) {
                sendNext.accept(endpoint);
            }
            endpoint.flush();
        });
        Patience.until(
                "all echoes are back, or something went wrong",
                () -> echoed.get() == count || !wrong.isEmpty() || client.isDisconnected() || server.isDisconnected());
        assertThat(wrong).isEmpty();
        assertThat(client.isDisconnected() ? client.awaitDisconnected() : null).isNull();
        assertThat(server.isDisconnected() ? server.awaitDisconnected() : null).isNull();
        assertThat(echoed).hasValue(count);
    }

    // ---- one-sided operations

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 8, 1000, 65_537, -1})
    void writesAndReadsOfAllSizes(int size) {
        int length = size < 0 ? largestMessageBytes() : size;
        Pair pair = connectPair();
        RegisteredMemory source = region(pair.client(), length + 16);
        RegisteredMemory table =
                region(pair.server(), length + 16, Access.LOCAL_WRITE, Access.REMOTE_WRITE, Access.REMOTE_READ);
        RegisteredMemory back = readSink(pair.client(), length + 16);
        fill(source.segment(), length);
        pair.client().run(endpoint -> {
            assertThat(pair.client().post(endpoint, writeOf(1, source, 5, length, table, 9)))
                    .isTrue();
            assertThat(pair.client().post(endpoint, readOf(2, back, 3, length, table, 9)))
                    .isTrue();
            endpoint.flush();
        });
        assertSent(pair.client().awaitSend(), 1);
        assertSuccess(pair.client().awaitSend(), 2, length);
        assertSame(table, 9, source, 5, length);
        assertSame(back, 3, source, 5, length);
        assertThat(pair.server().unclaimedCompletions())
                .as("what the peer hears")
                .isZero();
    }

    @Test
    void queuesReadsBeyondTheReadDepth() {
        Pair pair = connectPair();
        EndpointCapabilities capabilities = pair.client().awaitPrepared().capabilities();
        int count = Math.min(capabilities.sendDepth(), 4 * capabilities.readDepth() + 1);
        RegisteredMemory table = region(pair.server(), 64L * count, Access.REMOTE_READ);
        RegisteredMemory back = readSink(pair.client(), 64L * count);
        fill(table.segment(), 11);
        pair.client().run(endpoint -> {
            for (int i = 0; i < count; i++) {
                assertThat(pair.client().post(endpoint, readOf(i, back, 64L * i, 64, table, 64L * i)))
                        .isTrue();
            }
            endpoint.flush();
        });
        List<Completion> done = pair.client().awaitSends(count);
        for (int i = 0; i < count; i++) {
            assertSuccess(done.get(i), i, 64);
        }
        assertSame(back, 0, table, 0, 64L * count);
    }

    @Test
    void sendsAfterAFenceSeeWhatWasRead() {
        Pair pair = connectPair();
        int length = 32 * 1024;
        RegisteredMemory table = region(pair.server(), length, Access.REMOTE_READ);
        RegisteredMemory sink = region(pair.server(), length, Access.LOCAL_WRITE);
        RegisteredMemory relay = readSink(pair.client(), length);
        fill(table.segment(), 5);
        pair.server().receive(1, sink, 0, length);
        pair.client().run(endpoint -> {
            assertThat(pair.client().post(endpoint, readOf(2, relay, 0, length, table, 0)))
                    .isTrue();
            WorkRequest send = new WorkRequest(1).asSend(3, WorkRequest.FENCE);
            send.buffers().add(relay, 0, length);
            assertThat(pair.client().post(endpoint, send)).isTrue();
            endpoint.flush();
        });
        assertSuccess(pair.client().awaitSend(), 2, length);
        assertSent(pair.client().awaitSend(), 3);
        assertSuccess(pair.server().awaitReceive(), 1, length);
        assertSame(sink, 0, table, 0, length);
    }

    @Test
    void carriesImmediateDataOrRefusesItAtOnce() {
        Pair pair = connectPair();
        RegisteredMemory source = region(pair.client(), 64);
        RegisteredMemory sink = region(pair.server(), 64, Access.LOCAL_WRITE);
        RegisteredMemory table = region(pair.server(), 64, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
        fill(source.segment(), 3);
        WorkRequest send = new WorkRequest(1).asSendWithImmediate(1, 0, 0x01020384);
        send.buffers().add(source, 0, 10);
        WorkRequest write =
                new WorkRequest(1).asWriteWithImmediate(2, 0, table.address() + 8, table.remoteKey(), 0xfedcba98);
        write.buffers().add(source, 0, 20);
        if (!pair.client().awaitPrepared().capabilities().immediateData()) {
            assertRefusedAtOnce(pair, send);
            assertRefusedAtOnce(pair, write);
            greet(pair);
            return;
        }
        pair.server().receive(11, sink, 0, 64);
        pair.server().receive(12, sink, 0, 64);
        pair.client().send(send);
        pair.client().send(write);
        assertSent(pair.client().awaitSend(), 1);
        assertSent(pair.client().awaitSend(), 2);
        assertThat(pair.server().awaitReceive())
                .isEqualTo(new Completion(11, WorkStatus.SUCCESS, 10, EndpointHandler.WITH_IMMEDIATE, 0x01020384));
        assertThat(pair.server().awaitReceive())
                .isEqualTo(new Completion(
                        12,
                        WorkStatus.SUCCESS,
                        20,
                        EndpointHandler.WITH_IMMEDIATE | EndpointHandler.REMOTE_WRITE,
                        0xfedcba98));
        assertSame(table, 8, source, 0, 20);
    }

    @Test
    void doesAtomicsOrRefusesThemAtOnce() {
        Pair pair = connectPair();
        RegisteredMemory counter =
                region(pair.server(), 16, Access.LOCAL_WRITE, Access.REMOTE_ATOMIC, Access.REMOTE_READ);
        RegisteredMemory old = readSink(pair.client(), 32);
        counter.segment().set(ValueLayout.JAVA_LONG, 8, 40);
        long at = counter.address() + 8;
        WorkRequest add = new WorkRequest(1).asFetchAndAdd(1, 0, at, counter.remoteKey(), 2);
        add.buffers().add(old, 0, 8);
        WorkRequest swap = new WorkRequest(1).asCompareAndSwap(2, 0, at, counter.remoteKey(), 42, -7);
        swap.buffers().add(old, 8, 8);
        WorkRequest vain = new WorkRequest(1).asCompareAndSwap(3, 0, at, counter.remoteKey(), 42, 99);
        vain.buffers().add(old, 16, 8);
        if (!pair.client().awaitPrepared().capabilities().atomics()) {
            assertRefusedAtOnce(pair, add);
            assertRefusedAtOnce(pair, swap);
            greet(pair);
            return;
        }
        pair.client().send(add);
        pair.client().send(swap);
        pair.client().send(vain);
        assertSuccess(pair.client().awaitSend(), 1, 8);
        assertSuccess(pair.client().awaitSend(), 2, 8);
        assertSuccess(pair.client().awaitSend(), 3, 8);
        assertThat(old.segment().get(ValueLayout.JAVA_LONG, 0))
                .as("before the add")
                .isEqualTo(40);
        assertThat(old.segment().get(ValueLayout.JAVA_LONG, 8))
                .as("before the swap")
                .isEqualTo(42);
        assertThat(old.segment().get(ValueLayout.JAVA_LONG, 16))
                .as("before the swap that does not match")
                .isEqualTo(-7);
        assertThat(counter.segment().get(ValueLayout.JAVA_LONG, 8)).isEqualTo(-7);
        assertThat(counter.segment().get(ValueLayout.JAVA_LONG, 0)).isZero();

        WorkRequest crooked = new WorkRequest(1).asFetchAndAdd(4, 0, at - 4, counter.remoteKey(), 1);
        crooked.buffers().add(old, 0, 8);
        assertIllegal(pair.client(), crooked);
        WorkRequest narrow = new WorkRequest(1).asFetchAndAdd(5, 0, at, counter.remoteKey(), 1);
        narrow.buffers().add(old, 0, 4);
        assertIllegal(pair.client(), narrow);
        greet(pair);
    }

    @Test
    void addsConcurrentlyWithoutLoss() {
        Pair pair = connectPair();
        assumeTrue(pair.client().awaitPrepared().capabilities().atomics(), "no atomics here");
        Pair other = connectPair();
        RegisteredMemory counter = region(pair.server(), 8, Access.LOCAL_WRITE, Access.REMOTE_ATOMIC);
        int count = 50;
        List<RecordingEndpointHandler> clients = List.of(pair.client(), other.client());
        for (RecordingEndpointHandler client : clients) {
            RegisteredMemory old = readSink(client, 8L * count);
            client.run(endpoint -> {
                for (int i = 0; i < count; i++) {
                    WorkRequest add = new WorkRequest(1).asFetchAndAdd(i, 0, counter.address(), counter.remoteKey(), 1);
                    add.buffers().add(old, 8L * i, 8);
                    assertThat(client.post(endpoint, add)).isTrue();
                }
                endpoint.flush();
            });
        }
        for (RecordingEndpointHandler client : clients) {
            client.awaitSends(count).forEach(done -> assertSuccess(done, done.workId(), 8));
        }
        assertThat(counter.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(2L * count);
    }

    @Test
    void sendsWithInvalidateOrRefusesAtOnce() {
        Pair pair = connectPair();
        RegisteredMemory source = region(pair.client(), 64);
        RegisteredMemory sink = region(pair.server(), 64, Access.LOCAL_WRITE);
        RegisteredMemory table = ownRegion(pair.server(), 64, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
        int key = table.remoteKey();
        WorkRequest send = new WorkRequest(1).asSendWithInvalidate(1, 0, key);
        send.buffers().add(source, 0, 10);
        if (!pair.client().awaitPrepared().capabilities().sendWithInvalidate()) {
            assertRefusedAtOnce(pair, send);
            greet(pair);
            return;
        }
        pair.server().receive(11, sink, 0, 64);
        pair.client().send(send);
        assertSent(pair.client().awaitSend(), 1);
        assertThat(pair.server().awaitReceive())
                .isEqualTo(new Completion(11, WorkStatus.SUCCESS, 10, EndpointHandler.WITH_INVALIDATE, key));
        WorkRequest write = new WorkRequest(1).asWrite(2, 0, table.address(), key);
        write.buffers().add(source, 0, 10);
        fill(source.segment(), 1);
        pair.client().send(write);
        pair.client().awaitDisconnected();
        assertThat(table.segment().mismatch(MemorySegment.ofArray(new byte[64])))
                .as("nothing was written with the invalidated key")
                .isEqualTo(-1);
    }

    private static void assumeConnectionMemory(Pair pair) {
        assumeTrue(
                pair.server().awaitPrepared().capabilities().connectionMemory(),
                "memory cannot be bound to one connection here");
    }

    @ParameterizedTest
    @EnumSource(
            value = WorkRequest.Opcode.class,
            names = {"READ", "WRITE", "FETCH_AND_ADD"})
    void opensConnectionMemoryToItsPeerAlone(WorkRequest.Opcode opcode) {
        Pair owner = connectPair();
        assumeConnectionMemory(owner);
        assumeTrue(
                opcode != WorkRequest.Opcode.FETCH_AND_ADD
                        || owner.client().awaitPrepared().capabilities().atomics(),
                "no atomics here");
        Pair stranger = connectPair();
        greet(owner);
        greet(stranger);
        RegisteredMemory table = ownRegion(
                owner.server(), 64, Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
        fill(table.segment(), 5);
        byte[] before = table.segment().toArray(ValueLayout.JAVA_BYTE);
        trespass(stranger, opcode, table);
        assertThat(table.segment().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(before);
        RegisteredMemory sink = readSink(owner.client(), 64);
        owner.client().send(readOf(2, sink, 0, 64, table, 0));
        assertSuccess(owner.client().awaitSend(), 2, 64);
        assertSame(sink, 0, table, 0, 64);
        owner.client().awaitPrepared().disconnect();
        owner.client().awaitDisconnected();
        owner.server().awaitDisconnected();
        Pair late = connectPair();
        greet(late);
        trespass(late, opcode, table);
        assertThat(table.segment().toArray(ValueLayout.JAVA_BYTE))
                .as("after its connection has ended")
                .isEqualTo(before);
    }

    /**
     * Where that takes a work request of its own, the provider holds the memory for a moment, and must have released it
     * then.
     */
    @Test
    void closesConnectionMemoryAtOnce() {
        Pair pair = connectPair();
        greet(pair);
        RegisteredMemory sink = readSink(pair.client(), 64);
        MemorySegment memory = arena.allocate(64);
        fill(memory, 7);
        MemoryDomain domain = pair.server().awaitPrepared().connectionMemory();
        for (int i = 0; i < 300; i++) {
            RegisteredMemory table = domain.register(memory, Set.of(Access.REMOTE_READ));
            if (i % 10 == 0) {
                pair.client().send(readOf(i, sink, 0, 64, table, 0));
                assertSuccess(pair.client().awaitSend(), i, 64);
            }
            table.close();
            assertThat(table.isGone()).as("closed memory is gone, number %d", i).isTrue();
        }
        RegisteredMemory closed = domain.register(memory, Set.of(Access.REMOTE_READ));
        closed.close();
        trespass(pair, WorkRequest.Opcode.READ, closed);
    }

    /**
     * A peer that learns the key from the next message may use it, though other messages are under way at its
     * registration.
     */
    @Test
    void opensConnectionMemoryBeforeTheNextMessage() {
        Pair pair = connectPair();
        greet(pair);
        RegisteredMemory source = region(pair.server(), 64);
        RegisteredMemory inbox = region(pair.client(), 64, Access.LOCAL_WRITE);
        RegisteredMemory sink = readSink(pair.client(), 64);
        for (int i = 0; i < 50; i++) {
            pair.client().receive(10, inbox, 0, 64);
            pair.client().receive(11, inbox, 0, 64);
            AtomicReference<RegisteredMemory> table = new AtomicReference<>();
            WorkRequest before = new WorkRequest(1).asSend(1, 0);
            before.buffers().add(source, 0, 64);
            WorkRequest next = new WorkRequest(1).asSend(2, 0);
            next.buffers().add(source, 0, 64);
            pair.server().run(endpoint -> {
                assertThat(pair.server().post(endpoint, before)).isTrue();
                table.set(ownRegion(pair.server(), 64, Access.REMOTE_READ));
                endpoint.flush();
            });
            fill(table.get().segment(), i);
            AtomicBoolean taken = new AtomicBoolean();
            Patience.until("the next message is taken", () -> {
                pair.server().run(endpoint -> {
                    taken.set(pair.server().post(endpoint, next));
                    endpoint.flush();
                });
                return taken.get();
            });
            assertSuccess(pair.client().awaitReceive(), 10, 64);
            assertSuccess(pair.client().awaitReceive(), 11, 64);
            pair.client().send(readOf(3, sink, 0, 64, table.get(), 0));
            assertSuccess(pair.client().awaitSend(), 3, 64);
            assertSame(sink, 0, table.get(), 0, 64);
            assertSent(pair.server().awaitSend(), 1);
            assertSent(pair.server().awaitSend(), 2);
        }
    }

    /** Accesses memory that is not this peer's, which must end its connection and reveal nothing. */
    private void trespass(Pair pair, WorkRequest.Opcode opcode, RegisteredMemory table) {
        RegisteredMemory local = readSink(pair.client(), 64);
        int bytes = opcode == WorkRequest.Opcode.FETCH_AND_ADD ? Long.BYTES : 64;
        WorkRequest request = new WorkRequest(1);
        switch (opcode) {
            case READ -> request.asRead(1, 0, table.address(), table.remoteKey());
            case WRITE -> request.asWrite(1, 0, table.address(), table.remoteKey());
            default -> request.asFetchAndAdd(1, 0, table.address(), table.remoteKey(), 1);
        }
        request.buffers().add(local, 0, bytes);
        pair.client().send(request);
        Completion refused = pair.client().awaitSend();
        if (reportsRemoteAccessErrors(opcode)) {
            assertThat(refused.status()).isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR);
        }
        pair.client().awaitDisconnected();
        pair.server().awaitDisconnected();
        assertThat(local.segment().mismatch(MemorySegment.ofArray(new byte[64])))
                .as("what came back")
                .isEqualTo(-1);
    }

    @Test
    void opensSharedMemoryToEveryPeer() {
        RegisteredMemory table = null;
        for (int i = 0; i < 3; i++) {
            Pair pair = connectPair();
            greet(pair);
            if (table == null) {
                table = region(pair.server(), 64, Access.REMOTE_READ);
                fill(table.segment(), 6);
            }
            RegisteredMemory sink = readSink(pair.client(), 64);
            pair.client().send(readOf(1, sink, 0, 64, table, 0));
            assertSuccess(pair.client().awaitSend(), 1, 64);
            assertSame(sink, 0, table, 0, 64);
            pair.client().awaitPrepared().disconnect();
            pair.server().awaitDisconnected();
        }
    }

    private static MemoryDomain join(RecordingEndpointHandler side, PeerGroup group) {
        return side.call(endpoint -> endpoint.join(group));
    }

    @Test
    void registersGroupMemoryWithTheDeviceWhereKeysDecideAlone() {
        Pair pair = connectPair();
        MemoryDomain joined = join(pair.server(), new PeerGroup());
        Endpoint endpoint = pair.server().awaitPrepared();
        assertThat(joined.equals(endpoint.memoryDomain()))
                .isNotEqualTo(endpoint.capabilities().groupMemory());
    }

    @ParameterizedTest
    @EnumSource(
            value = WorkRequest.Opcode.class,
            names = {"READ", "WRITE", "FETCH_AND_ADD"})
    void opensGroupMemoryToTheGroupsPeersAlone(WorkRequest.Opcode opcode) {
        Pair owner = connectPair();
        assumeTrue(
                owner.server().awaitPrepared().capabilities().groupMemory(),
                "memory cannot be bound to the connections of a group here");
        assumeTrue(
                opcode != WorkRequest.Opcode.FETCH_AND_ADD
                        || owner.client().awaitPrepared().capabilities().atomics(),
                "no atomics here");
        Pair member = connectPair();
        Pair outsider = connectPair();
        Pair otherMember = connectPair();
        PeerGroup group = new PeerGroup();
        MemoryDomain memory = join(owner.server(), group);
        join(member.server(), group);
        join(otherMember.server(), new PeerGroup());
        List<Pair> all = List.of(owner, member, outsider, otherMember);
        all.forEach(this::greet);
        RegisteredMemory table =
                memory.register(arena.allocate(64, 8), Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
        regions.add(table);
        fill(table.segment(), 5);
        byte[] before = table.segment().toArray(ValueLayout.JAVA_BYTE);
        trespass(outsider, opcode, table);
        trespass(otherMember, opcode, table);
        owner.client().awaitPrepared().disconnect();
        owner.client().awaitDisconnected();
        owner.server().awaitDisconnected();
        RegisteredMemory sink = readSink(member.client(), 64);
        member.client().send(readOf(2, sink, 0, 64, table, 0));
        assertSuccess(member.client().awaitSend(), 2, 64);
        assertSame(sink, 0, table, 0, 64);
        assertThat(table.segment().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(before);
        table.close();
        trespass(member, opcode, table);
        assertThat(table.segment().toArray(ValueLayout.JAVA_BYTE))
                .as("after it is closed")
                .isEqualTo(before);
    }

    @Test
    void noMemberInvalidatesTheMemoryOfItsGroup() {
        Pair owner = connectPair();
        EndpointCapabilities capabilities = owner.client().awaitPrepared().capabilities();
        assumeTrue(
                capabilities.groupMemory() && capabilities.sendWithInvalidate(),
                "no memory for a group, or no send with invalidate here");
        Pair member = connectPair();
        PeerGroup group = new PeerGroup();
        RegisteredMemory table = join(owner.server(), group).register(arena.allocate(64, 8), Access.REMOTE_READ);
        regions.add(table);
        join(member.server(), group);
        greet(owner);
        greet(member);
        RegisteredMemory received = region(member.server(), 64, Access.LOCAL_WRITE);
        member.server().receive(1, received, 0, 64);
        member.client().send(new WorkRequest(1).asSendWithInvalidate(1, 0, table.remoteKey()));
        member.client().awaitDisconnected();
        member.server().awaitDisconnected();
        RegisteredMemory sink = readSink(owner.client(), 64);
        owner.client().send(readOf(2, sink, 0, 64, table, 0));
        assertSuccess(owner.client().awaitSend(), 2, 64);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void invalidatesWhatBelongsToTheConnectionAlone(boolean shared) {
        Pair owner = connectPair();
        assumeConnectionMemory(owner);
        assumeTrue(owner.client().awaitPrepared().capabilities().sendWithInvalidate(), "no send with invalidate here");
        Pair stranger = connectPair();
        greet(owner);
        greet(stranger);
        RegisteredMemory table = shared
                ? region(owner.server(), 64, Access.REMOTE_READ)
                : ownRegion(owner.server(), 64, Access.REMOTE_READ);
        RegisteredMemory received = region(stranger.server(), 64, Access.LOCAL_WRITE);
        stranger.server().receive(1, received, 0, 64);
        stranger.client().send(new WorkRequest(1).asSendWithInvalidate(1, 0, table.remoteKey()));
        stranger.client().awaitDisconnected();
        stranger.server().awaitDisconnected();
        assertThat(stranger.server().awaitReceive().status()).isEqualTo(WorkStatus.FLUSHED);
        RegisteredMemory sink = readSink(owner.client(), 64);
        owner.client().send(readOf(2, sink, 0, 64, table, 0));
        assertSuccess(owner.client().awaitSend(), 2, 64);
    }

    private void assertRefusedAtOnce(Pair pair, WorkRequest request) {
        pair.client().run(endpoint -> {
            int free = endpoint.freeSendSlots();
            assertThatThrownBy(() -> pair.client().post(endpoint, request))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining(request.opcode().name());
            assertThat(endpoint.freeSendSlots()).isEqualTo(free);
            endpoint.flush();
        });
    }

    // ---- what is refused before the device sees it

    private static void assertIllegal(RecordingEndpointHandler side, WorkRequest request) {
        side.run(endpoint -> {
            int free = endpoint.freeSendSlots();
            assertThatThrownBy(() -> side.post(endpoint, request)).isInstanceOf(IllegalArgumentException.class);
            assertThat(endpoint.freeSendSlots()).isEqualTo(free);
        });
    }

    @Test
    void refusesWhatExceedsItsLimits() {
        Pair pair = connectPair();
        RecordingEndpointHandler client = pair.client();
        EndpointCapabilities capabilities = client.awaitPrepared().capabilities();
        RegisteredMemory readOnly = region(client, 1 << 16);
        RegisteredMemory writable = region(client, 1 << 16, Access.LOCAL_WRITE);
        RegisteredMemory table = region(pair.server(), 1 << 16, Access.LOCAL_WRITE, Access.REMOTE_READ);

        WorkRequest tooManySges = new WorkRequest(capabilities.maxSges() + 1).asSend(1, 0);
        for (int i = 0; i <= capabilities.maxSges(); i++) {
            tooManySges.buffers().add(readOnly, i, 1);
        }
        ScatterGatherList tooManyReceives = new ScatterGatherList(capabilities.maxReceiveSges() + 1);
        for (int i = 0; i <= capabilities.maxReceiveSges(); i++) {
            tooManyReceives.add(writable, i, 1);
        }
        assertIllegal(client, tooManySges);
        client.run(endpoint -> {
            assertThatThrownBy(() -> client.postReceive(endpoint, 2, tooManyReceives))
                    .isInstanceOf(IllegalArgumentException.class);
            ScatterGatherList lacksRight = new ScatterGatherList(1).add(readOnly, 0, 8);
            assertThatThrownBy(() -> client.postReceive(endpoint, 3, lacksRight))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("LOCAL_WRITE");
        });

        WorkRequest inlineTooLong = new WorkRequest(1).asSend(4, WorkRequest.INLINE);
        inlineTooLong.buffers().add(readOnly, 0, capabilities.maxInlineBytes() + 1);
        assertIllegal(client, inlineTooLong);
        assertIllegal(client, readOf(5, readOnly, 0, 8, table, 0));
        WorkRequest tooManyReadSges =
                new WorkRequest(capabilities.maxReadSges() + 1).asRead(6, 0, table.address(), table.remoteKey());
        for (int i = 0; i <= capabilities.maxReadSges(); i++) {
            tooManyReadSges.buffers().add(writable, i, 1);
        }
        assertIllegal(client, tooManyReadSges);
        WorkRequest inlineRead = new WorkRequest(1).asRead(7, WorkRequest.INLINE, table.address(), table.remoteKey());
        inlineRead.buffers().add(writable, 0, 8);
        assertIllegal(client, inlineRead);
        if (capabilities.readSinkNeedsRemoteWrite()) {
            assertIllegal(client, readOf(8, writable, 0, 8, table, 0));
        }
        greet(pair);
    }

    @Test
    void registersNativeSharedMemoryAlone() {
        Pair pair = connectPair();
        MemoryDomain domain = pair.client().awaitPrepared().memoryDomain();
        long before = domain.registeredBytes();
        assertThatThrownBy(() -> domain.register(MemorySegment.ofArray(new byte[64]), Set.of()))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> domain.register(MemorySegment.NULL, Set.of()))
                .isInstanceOf(IllegalArgumentException.class);
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment segment = confined.allocate(64);
            assertThatThrownBy(() -> domain.register(segment, Set.of())).isInstanceOf(IllegalArgumentException.class);
        }
        assertThat(domain.registeredBytes()).isEqualTo(before);
        RegisteredMemory region = region(pair.client(), 12_345, Access.LOCAL_WRITE);
        assertThat(domain.registeredBytes()).isEqualTo(before + 12_345);
        assertThat(region.access()).containsExactly(Access.LOCAL_WRITE);
        region.close();
        region.close();
        assertThat(domain.registeredBytes()).isEqualTo(before);
    }

    /** Memory of another provider, whose keys mean nothing here. */
    private static final class StrangeMemory extends RegisteredMemory {
        private StrangeMemory(MemorySegment segment) {
            super(segment, Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE));
        }

        @Override
        public int localKey() {
            return 1;
        }

        @Override
        public int remoteKey() {
            return 1;
        }

        @Override
        protected void deregister() {}
    }

    @Test
    void refusesMemoryThatItDoesNotKnow() {
        Pair pair = connectPair();
        RecordingEndpointHandler client = pair.client();
        RegisteredMemory known = region(client, 64, Access.LOCAL_WRITE);
        RegisteredMemory table = region(pair.server(), 64, Access.LOCAL_WRITE, Access.REMOTE_READ);
        StrangeMemory strange = new StrangeMemory(arena.allocate(64));
        assertIllegal(client, sendOf(1, strange, 0, 8));
        assertIllegal(client, readOf(2, strange, 0, 8, table, 0));
        WorkRequest second = new WorkRequest(2).asSend(3, 0);
        second.buffers().add(known, 0, 8).add(strange, 0, 8);
        assertIllegal(client, second);
        WorkRequest held = new WorkRequest(1).asSend(4, 0);
        held.buffers().addHeld(strange, 0, 8);
        assertIllegal(client, held);
        client.run(endpoint -> assertThatThrownBy(
                        () -> client.postReceive(endpoint, 5, new ScatterGatherList(1).addHeld(strange, 0, 8)))
                .isInstanceOf(IllegalArgumentException.class));
        // A refused request holds nothing.
        long registered = client.awaitPrepared().memoryDomain().registeredBytes();
        known.close();
        assertThat(client.awaitPrepared().memoryDomain().registeredBytes()).isEqualTo(registered - 64);
        greet(pair);
    }

    @Test
    void leavesMemoryToThePosterThatKeepsItOpen() {
        Pair pair = connectPair();
        RegisteredMemory source = region(pair.client(), 64);
        RegisteredMemory sink = region(pair.server(), 64, Access.LOCAL_WRITE);
        fill(source.segment(), 7);
        pair.server().run(endpoint -> {
            assertThat(pair.server().postReceive(endpoint, 1, new ScatterGatherList(1).addHeld(sink, 0, 64)))
                    .isTrue();
            endpoint.flush();
        });
        WorkRequest send = new WorkRequest(1).asSend(2, 0);
        send.buffers().addHeld(source, 0, 64);
        pair.client().send(send);
        assertSent(pair.client().awaitSend(), 2);
        assertSuccess(pair.server().awaitReceive(), 1, 64);
        assertSame(sink, 0, source, 0, 64);
        // A receive that is out does not count: the poster alone keeps the memory open.
        pair.server().run(endpoint -> {
            assertThat(pair.server().postReceive(endpoint, 3, new ScatterGatherList(1).addHeld(sink, 0, 64)))
                    .isTrue();
            endpoint.flush();
        });
        pair.server().awaitPrepared().disconnect();
        assertThat(pair.server().awaitReceive().status()).isEqualTo(WorkStatus.FLUSHED);
        long registered = pair.server().awaitPrepared().memoryDomain().registeredBytes();
        sink.close();
        assertThat(pair.server().awaitPrepared().memoryDomain().registeredBytes())
                .isEqualTo(registered - 64);
    }

    @Test
    void refusesRegionsThatAreGone() {
        Pair pair = connectPair();
        RegisteredMemory gone = region(pair.client(), 64, Access.LOCAL_WRITE);
        gone.close();
        pair.client().run(endpoint -> {
            assertThatThrownBy(() -> pair.client().post(endpoint, sendOf(1, gone, 0, 8)))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> pair.client().postReceive(endpoint, 1, new ScatterGatherList(1).add(gone, 0, 8)))
                    .isInstanceOf(IllegalStateException.class);
            WorkRequest broken = new WorkRequest(1).asSend(2, 0);
            broken.buffers().addHeld(gone, 0, 8);
            assertThatThrownBy(() -> pair.client().post(endpoint, broken)).isInstanceOf(IllegalStateException.class);
            ScatterGatherList brokenReceive = new ScatterGatherList(1).addHeld(gone, 0, 8);
            assertThatThrownBy(() -> pair.client().postReceive(endpoint, 2, brokenReceive))
                    .isInstanceOf(IllegalStateException.class);
            assertThat(endpoint.freeSendSlots())
                    .isEqualTo(endpoint.capabilities().sendDepth());
        });
        greet(pair);
    }

    // ---- limits in time: queues that are full

    @Test
    void refusesWorkWhileTheSendQueueIsFull() {
        Pair pair = connectPair(withDepths(24, 8), withDepths(24, 8));
        int depth = pair.client().awaitPrepared().capabilities().sendDepth();
        RegisteredMemory source = region(pair.client(), 64);
        RegisteredMemory table = region(pair.server(), 64, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
        for (int round = 0; round < 3; round++) {
            pair.client().run(endpoint -> {
                for (int i = 0; i < depth; i++) {
                    assertThat(endpoint.freeSendSlots()).isEqualTo(depth - i);
                    assertThat(pair.client().post(endpoint, writeOf(i, source, 0, 8, table, 0)))
                            .isTrue();
                    if (i % 10 == 9) {
                        endpoint.flush();
                    }
                }
                assertThat(endpoint.freeSendSlots()).isZero();
                assertThat(pair.client().post(endpoint, writeOf(99, source, 0, 8, table, 0)))
                        .isFalse();
                endpoint.flush();
            });
            List<Completion> done = pair.client().awaitSends(depth);
            IntStream.range(0, depth).forEach(i -> assertSent(done.get(i), i));
            assertThat(pair.client().<Integer>call(Endpoint::freeSendSlots)).isEqualTo(depth);
        }
    }

    @Test
    void hasAFreeSlotInEachSendCompletion() {
        AtomicInteger least = new AtomicInteger(Integer.MAX_VALUE);
        RecordingEndpointHandler client = newHandler("client");
        client.whenSent((endpoint, completion) -> least.accumulateAndGet(endpoint.freeSendSlots(), Math::min));
        Pair pair = connectPair(withDepths(8, 8), withDepths(8, 8), client, newHandler("server"));
        int depth = client.awaitPrepared().capabilities().sendDepth();
        RegisteredMemory source = region(client, 64);
        RegisteredMemory table = region(pair.server(), 64, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
        client.run(endpoint -> {
            for (int i = 0; i < depth; i++) {
                assertThat(client.post(endpoint, writeOf(i, source, 0, 8, table, 0)))
                        .isTrue();
            }
            endpoint.flush();
        });
        client.awaitSends(depth);
        assertThat(least.get()).isPositive();
    }

    @Test
    void refusesReceivesWhileTheReceiveQueueIsFull() {
        Pair pair = connectPair(withDepths(8, 12), withDepths(8, 12));
        int depth = pair.server().awaitPrepared().capabilities().receiveDepth();
        RegisteredMemory sink = region(pair.server(), 64, Access.LOCAL_WRITE);
        RegisteredMemory source = region(pair.client(), 64);
        ScatterGatherList list = new ScatterGatherList(1).add(sink, 0, 8);
        pair.server().run(endpoint -> {
            for (int i = 0; i < depth; i++) {
                assertThat(pair.server().postReceive(endpoint, i, list)).isTrue();
            }
            assertThat(pair.server().postReceive(endpoint, 99, list)).isFalse();
            endpoint.flush();
        });
        for (int i = 0; i < 3; i++) {
            pair.client().send(sendOf(i, source, 0, 8));
            assertSuccess(pair.server().awaitReceive(), i, 8);
            int id = depth + i;
            pair.server().run(endpoint -> {
                assertThat(pair.server().postReceive(endpoint, id, list)).isTrue();
                assertThat(pair.server().postReceive(endpoint, 99, list)).isFalse();
                endpoint.flush();
            });
        }
    }

    // ---- errors

    @Test
    void endsAConnectionWhoseReceiveIsTooSmall() {
        Pair pair = connectPair();
        RegisteredMemory source = region(pair.client(), 4096);
        RegisteredMemory sink = region(pair.server(), 4096, Access.LOCAL_WRITE);
        pair.server().receive(1, sink, 0, 16);
        pair.server().receive(2, sink, 1024, 16);
        pair.client().send(sendOf(3, source, 0, 64));
        Completion bad = pair.server().awaitReceive();
        assertThat(bad.workId()).isEqualTo(1);
        assertThat(bad.status()).isIn(receiveTooSmallStatuses());
        assertThat(pair.server().awaitReceive().status()).isEqualTo(WorkStatus.FLUSHED);
        assertThat(pair.server().awaitDisconnected())
                .isInstanceOfSatisfying(
                        WorkCompletionException.class,
                        cause -> assertThat(cause.status()).isEqualTo(bad.status()));
        pair.client().awaitSend();
        pair.client().awaitDisconnected();
        assertThat(sink.segment().asSlice(16, 1000).mismatch(MemorySegment.ofArray(new byte[1000])))
                .as("bytes beyond the receive")
                .isEqualTo(-1);
    }

    /** Ways to access memory without permission. */
    enum Trespass {
        WRONG_KEY,
        BEFORE_THE_REGION,
        BEHIND_THE_REGION,
        // Of two pages, but few bytes.
        SHORTLY_BEFORE_THE_REGION,
        SHORTLY_BEHIND_THE_REGION,
        MISSING_RIGHT,
        CLOSED_REGION
    }

    @ParameterizedTest
    @EnumSource(Trespass.class)
    void endsAConnectionOnAForbiddenRead(Trespass trespass) {
        trespass(WorkRequest.Opcode.READ, trespass);
    }

    @ParameterizedTest
    @EnumSource(Trespass.class)
    void endsAConnectionOnAForbiddenWrite(Trespass trespass) {
        trespass(WorkRequest.Opcode.WRITE, trespass);
    }

    @ParameterizedTest
    @EnumSource(Trespass.class)
    void endsAConnectionOnAForbiddenAtomic(Trespass trespass) {
        trespass(WorkRequest.Opcode.FETCH_AND_ADD, trespass);
    }

    private void trespass(WorkRequest.Opcode opcode, Trespass trespass) {
        assumeTrue(
                trespass != Trespass.MISSING_RIGHT || refusesWithoutRight(opcode),
                "the device does not look at this right");
        Pair pair = connectPair();
        assumeTrue(
                opcode != WorkRequest.Opcode.FETCH_AND_ADD
                        || pair.client().awaitPrepared().capabilities().atomics(),
                "no atomics here");
        Access right = switch (opcode) {
            case READ -> Access.REMOTE_READ;
            case WRITE -> Access.REMOTE_WRITE;
            default -> Access.REMOTE_ATOMIC;
        };
        Access wrongRight = right == Access.REMOTE_READ ? Access.REMOTE_WRITE : Access.REMOTE_READ;
        // Three pages, of which the middle one is registered: what is before and behind must stay as it is.
        MemorySegment pages = arena.allocate(3 * 4096, 4096);
        MemoryDomain domain = pair.server().awaitPrepared().memoryDomain();
        RegisteredMemory table = domain.register(
                pages.asSlice(4096, 4096),
                Set.of(Access.LOCAL_WRITE, trespass == Trespass.MISSING_RIGHT ? wrongRight : right));
        regions.add(table);
        RegisteredMemory good = region(
                pair.server(), 4096, Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
        RegisteredMemory local = readSink(pair.client(), 4096);
        fill(local.segment(), 4);
        int length = switch (trespass) {
            case SHORTLY_BEFORE_THE_REGION, SHORTLY_BEHIND_THE_REGION -> 16;
            default -> 64;
        };
        if (opcode == WorkRequest.Opcode.FETCH_AND_ADD) {
            length = Long.BYTES;
        }
        long address = switch (trespass) {
            case BEFORE_THE_REGION, SHORTLY_BEFORE_THE_REGION -> table.address() - 8;
            case BEHIND_THE_REGION, SHORTLY_BEHIND_THE_REGION ->
                table.address() + 4096 - (length == 8 ? 0 : length / 2);
            default -> table.address();
        };
        int key = trespass == Trespass.WRONG_KEY ? table.remoteKey() ^ 0x5a5a5a5a : table.remoteKey();
        if (trespass == Trespass.CLOSED_REGION) {
            table.close();
        }
        RegisteredMemory sink = region(pair.client(), 64, Access.LOCAL_WRITE);
        pair.client().receive(77, sink, 0, 64);
        int badBytes = length;

        pair.client().run(endpoint -> {
            assertThat(pair.client().post(endpoint, writeOf(1, local, 0, 8, good, 0)))
                    .isTrue();
            WorkRequest bad = new WorkRequest(1);
            switch (opcode) {
                case READ -> bad.asRead(2, 0, address, key);
                case WRITE -> bad.asWrite(2, 0, address, key);
                default -> bad.asFetchAndAdd(2, 0, address, key, 1);
            }
            bad.buffers().add(local, 0, badBytes);
            assertThat(pair.client().post(endpoint, bad)).isTrue();
            assertThat(pair.client().post(endpoint, readOf(3, local, 128, 8, good, 0)))
                    .isTrue();
            assertThat(pair.client().post(endpoint, readOf(4, local, 128, 8, good, 0)))
                    .isTrue();
            endpoint.flush();
        });

        List<Completion> all = pair.client().awaitSends(4);
        assertThat(all).extracting(Completion::workId).containsExactly(1L, 2L, 3L, 4L);
        int failed = namesWhatFailed() ? 1 : 0;
        all.subList(0, failed).forEach(done -> assertSent(done, 1));
        Completion bad = all.get(failed);
        assertThat(all.subList(failed + 1, 4))
                .allSatisfy(
                        rest -> assertThat(rest).isEqualTo(new Completion(rest.workId(), WorkStatus.FLUSHED, 0, 0, 0)));
        assertThat(pair.client().awaitReceive().status()).isEqualTo(WorkStatus.FLUSHED);
        Throwable cause = pair.client().awaitDisconnected();
        assertThat(cause).as("cause of the end").isNotNull();
        if (reportsRemoteAccessErrors(opcode)) {
            assertThat(bad.status()).isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR);
            assertThat(cause)
                    .isInstanceOfSatisfying(
                            WorkCompletionException.class,
                            failure -> assertThat(failure.status()).isEqualTo(WorkStatus.REMOTE_ACCESS_ERROR));
        }
        pair.server().awaitDisconnected();
        assertThat(pages.asSlice(0, 4096).mismatch(MemorySegment.ofArray(new byte[4096])))
                .as("the page before the region")
                .isEqualTo(-1);
        assertThat(pages.asSlice(8192, 4096).mismatch(MemorySegment.ofArray(new byte[4096])))
                .as("the page behind the region")
                .isEqualTo(-1);
        if (trespass != Trespass.BEHIND_THE_REGION) {
            assertThat(pages.asSlice(4096, 4096).mismatch(MemorySegment.ofArray(new byte[4096])))
                    .as("the region")
                    .isEqualTo(-1);
        }
        pair.client()
                .run(endpoint -> assertThat(pair.client().post(endpoint, writeOf(5, local, 0, 8, good, 0)))
                        .isFalse());
    }

    /**
     * Tries an operation that must end the connection. Whether the client learns why depends on the device: to siw a
     * send has succeeded when TCP has it.
     */
    private void assertEnds(Pair pair, WorkRequest request) {
        pair.client().send(request);
        pair.client().awaitSend();
        pair.client().awaitDisconnected();
        pair.server().awaitDisconnected();
    }

    @ParameterizedTest
    @EnumSource(
            value = WorkRequest.Opcode.class,
            names = {"READ", "WRITE"})
    void reachesBothEndsOfARegionAndNotAByteFurther(WorkRequest.Opcode opcode) {
        MemorySegment around = arena.allocate(3 * 4096, 4096);
        int length = 1000;
        int[][] within = {{0, length}, {0, 1}, {length - 1, 1}, {1, length - 1}};
        int[][] beyond = {{-1, 1}, {length, 1}, {0, length + 1}, {-1, length + 1}, {length - 1, 2}};
        Pair good = connectPair();
        MemoryDomain domain = good.server().awaitPrepared().memoryDomain();
        RegisteredMemory table = domain.register(
                around.asSlice(5000, length), Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE));
        regions.add(table);
        RegisteredMemory local = readSink(good.client(), 4096);
        for (int[] part : within) {
            boolean reads = opcode == WorkRequest.Opcode.READ;
            fill(reads ? table.segment() : local.segment(), part[0] + part[1]);
            good.client()
                    .send(
                            reads
                                    ? readOf(1, local, 0, part[1], table, part[0])
                                    : writeOf(1, local, 0, part[1], table, part[0]));
            assertSent(good.client().awaitSend(), 1);
            if (!reads) {
                // The read behind it shows that the write is done.
                good.client().send(readOf(2, local, 2048, 1, table, part[0]));
                assertSent(good.client().awaitSend(), 2);
            }
            assertSame(local, 0, table, part[0], part[1]);
        }
        table.segment().fill((byte) 0);
        for (int[] part : beyond) {
            Pair pair = connectPair();
            RegisteredMemory mine = readSink(pair.client(), 4096);
            fill(mine.segment(), 1);
            assertEnds(
                    pair,
                    opcode == WorkRequest.Opcode.READ
                            ? readOf(1, mine, 0, part[1], table, part[0])
                            : writeOf(1, mine, 0, part[1], table, part[0]));
        }
        assertThat(around.asSlice(0, 5000).mismatch(MemorySegment.ofArray(new byte[5000])))
                .as("what is before the region")
                .isEqualTo(-1);
        assertThat(around.asSlice(5000 + length).mismatch(MemorySegment.ofArray(new byte[3 * 4096 - 5000 - length])))
                .as("what is behind the region")
                .isEqualTo(-1);
    }

    @Test
    void endsAConnectionOnACompareAndSwapWithAWrongKey() {
        Pair pair = connectPair();
        RegisteredMemory table = region(pair.server(), 8, Access.LOCAL_WRITE, Access.REMOTE_ATOMIC);
        RegisteredMemory old = readSink(pair.client(), 8);
        WorkRequest swap =
                new WorkRequest(1).asCompareAndSwap(1, 0, table.address(), table.remoteKey() ^ 0x5a5a5a5a, 0, 7);
        swap.buffers().add(old, 0, 8);
        if (!pair.client().awaitPrepared().capabilities().atomics()) {
            assertRefusedAtOnce(pair, swap);
            return;
        }
        assertEnds(pair, swap);
        assertThat(table.segment().get(ValueLayout.JAVA_LONG, 0)).isZero();
    }

    @Test
    void endsAConnectionOnAWriteWithImmediateWithAWrongKey() {
        Pair pair = connectPair();
        RegisteredMemory table = region(pair.server(), 64, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
        RegisteredMemory sink = region(pair.server(), 64, Access.LOCAL_WRITE);
        RegisteredMemory source = region(pair.client(), 64);
        fill(source.segment(), 1);
        pair.server().receive(1, sink, 0, 64);
        WorkRequest write =
                new WorkRequest(1).asWriteWithImmediate(2, 0, table.address(), table.remoteKey() ^ 0x5a5a5a5a, 99);
        write.buffers().add(source, 0, 64);
        if (!pair.client().awaitPrepared().capabilities().immediateData()) {
            assertRefusedAtOnce(pair, write);
            return;
        }
        assertEnds(pair, write);
        assertThat(pair.server().awaitReceive().status())
                .as("no completion at the peer")
                .isNotEqualTo(WorkStatus.SUCCESS);
        assertThat(table.segment().mismatch(MemorySegment.ofArray(new byte[64])))
                .isEqualTo(-1);
    }

    @Test
    void endsAConnectionOnASendWithInvalidateOfAWrongKey() {
        Pair pair = connectPair();
        RegisteredMemory table = ownRegion(pair.server(), 64, Access.LOCAL_WRITE, Access.REMOTE_READ);
        RegisteredMemory sink = region(pair.server(), 64, Access.LOCAL_WRITE);
        pair.server().receive(1, sink, 0, 64);
        WorkRequest send = new WorkRequest(1).asSendWithInvalidate(2, 0, table.remoteKey() ^ 0x5a5a5a5a);
        if (!pair.client().awaitPrepared().capabilities().sendWithInvalidate()) {
            assertRefusedAtOnce(pair, send);
            return;
        }
        assertEnds(pair, send);
        assertThat(pair.server().awaitReceive().status()).isNotEqualTo(WorkStatus.SUCCESS);
    }

    /** With no patience for a receiver that is not ready, where a device knows of such. */
    private static EndpointOptions impatient() {
        return EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = OPTIONS.connectTimeoutMillis();
            o.sendDepth = 16;
            o.receiveDepth = 16;
            o.maxInlineBytes = 64;
            o.rnrRetryCount = 0;
        });
    }

    @Test
    void endsAConnectionWithoutAReceiveForAMessage() {
        Pair pair = connectPair(impatient(), impatient());
        assertEnds(pair, sendOf(1, region(pair.client(), 64), 0, 64));
    }

    @Test
    void endsAConnectionWithoutAReceiveForAWriteWithImmediate() {
        Pair pair = connectPair(impatient(), impatient());
        RegisteredMemory table = region(pair.server(), 64, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
        WorkRequest write = new WorkRequest(1).asWriteWithImmediate(2, 0, table.address(), table.remoteKey(), 99);
        write.buffers().add(region(pair.client(), 64), 0, 64);
        if (!pair.client().awaitPrepared().capabilities().immediateData()) {
            assertRefusedAtOnce(pair, write);
            return;
        }
        assertEnds(pair, write);
    }

    @ParameterizedTest
    @EnumSource(
            value = WorkRequest.Opcode.class,
            names = {"READ", "WRITE"})
    void closesARegionThatThePeerIsUsing(WorkRequest.Opcode opcode) {
        int bytes = 64 << 10;
        int count = 16;
        for (int round = 0; round < 4; round++) {
            Pair pair = connectPair();
            RegisteredMemory table =
                    region(pair.server(), bytes, Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);
            RegisteredMemory local = readSink(pair.client(), bytes);
            RecordingEndpointHandler client = pair.client();
            client.run(endpoint -> {
                for (int i = 0; i < count; i++) {
                    assertThat(client.post(
                                    endpoint,
                                    opcode == WorkRequest.Opcode.READ
                                            ? readOf(i, local, 0, bytes, table, 0)
                                            : writeOf(i, local, 0, bytes, table, 0)))
                            .isTrue();
                }
                endpoint.flush();
            });
            // Once before anything is under way, and then when some of it is done.
            client.awaitSends(4 * round);
            table.close();
            boolean refused = false;
            for (Completion done : client.awaitSends(count - 4 * round)) {
                refused |= done.status() != WorkStatus.SUCCESS;
            }
            if (refused) {
                client.awaitDisconnected();
                pair.server().awaitDisconnected();
            }
        }
    }

    /** Memory of another provider, which no device here knows. */
    private RegisteredMemory foreign() {
        return new RegisteredMemory(arena.allocate(64, 8), Set.of(Access.LOCAL_WRITE)) {
            @Override
            public int localKey() {
                return 1;
            }

            @Override
            public int remoteKey() {
                return 1;
            }

            @Override
            protected void deregister() {}
        };
    }

    @Test
    void refusesMemoryOfAnotherProvider() {
        Pair pair = connectPair();
        RegisteredMemory foreign = foreign();
        pair.client().run(endpoint -> {
            assertThatThrownBy(() -> pair.client().post(endpoint, sendOf(1, foreign, 0, 8)))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(
                            () -> pair.client().postReceive(endpoint, 1, new ScatterGatherList(1).add(foreign, 0, 8)))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThat(endpoint.freeSendSlots())
                    .isEqualTo(endpoint.capabilities().sendDepth());
        });
        greet(pair);
    }

    @Test
    void refusesMemoryOfAnotherProviderInASharedReceiveQueue() {
        assumeTrue(hasSharedReceiveQueues(), "the device has no shared receive queues");
        RegisteredMemory foreign = foreign();
        RecordingEndpointHandler client = newHandler("client");
        client.whenPrepared(endpoint -> {
            SharedReceiveQueue queue = endpoint.sharedReceiveQueue();
            if (queue != null) {
                assertThatThrownBy(() -> queue.postReceive(1, new ScatterGatherList(1).add(foreign, 0, 8)))
                        .isInstanceOf(IllegalArgumentException.class);
                queue.flush();
            }
        });
        connectPair(withSharedReceiveQueue(), OPTIONS, client, newHandler("server"));
    }

    /** Callbacks that may throw. */
    enum Callback {
        PREPARED,
        CONNECTED,
        SENT,
        RECEIVED,
        HANDLED
    }

    @ParameterizedTest
    @EnumSource(Callback.class)
    void endsTheConnectionWhoseHandlerThrowsAndNoOther(Callback callback) {
        IoEventLoop loop = loop();
        Pair bystander = connectPair(OPTIONS, OPTIONS, newHandler("bystander", loop), newHandler("peer", loop));
        IllegalStateException thrown = new IllegalStateException("thrown by " + callback);
        RecordingEndpointHandler server = newHandler("server", loop);
        switch (callback) {
            case PREPARED ->
                server.whenPrepared(endpoint -> {
                    throw thrown;
                });
            case CONNECTED ->
                server.whenConnected(endpoint -> {
                    throw thrown;
                });
            case SENT ->
                server.whenSent((endpoint, completion) -> {
                    throw thrown;
                });
            case RECEIVED ->
                server.whenReceived((endpoint, completion) -> {
                    throw thrown;
                });
            case HANDLED ->
                server.whenCompletionsHandled(endpoint -> {
                    throw thrown;
                });
        }
        RecordingEndpointHandler client = newLoser("client");
        RecordingListenerHandler listener = listen();
        connect(listener.awaitListening().localAddress(), OPTIONS, client);
        listener.awaitRequest().accept(loop, OPTIONS, server);
        if (callback != Callback.PREPARED && callback != Callback.CONNECTED) {
            client.awaitConnected();
            server.awaitConnected();
            RegisteredMemory memory = region(server, 64, Access.LOCAL_WRITE);
            server.receive(1, memory, 0, 64);
            client.send(new WorkRequest(1).asSend(2, 0));
            if (callback == Callback.SENT) {
                server.awaitReceive();
                client.receive(4, region(client, 64, Access.LOCAL_WRITE), 0, 64);
                server.run(endpoint -> {
                    server.post(endpoint, new WorkRequest(1).asSend(3, 0));
                    endpoint.flush();
                });
            }
        }
        assertThat(server.awaitDisconnected()).isSameAs(thrown);
        client.awaitDisconnected();
        client.assertNoViolations();
        greet(bystander);
    }

    // ---- the end

    @Test
    void flushesEverythingWhenItDisconnects() {
        Pair pair = connectPair();
        RegisteredMemory sink = region(pair.client(), 64, Access.LOCAL_WRITE);
        RegisteredMemory source = region(pair.client(), 64);
        RegisteredMemory serverSink = region(pair.server(), 64, Access.LOCAL_WRITE);
        for (int i = 0; i < 5; i++) {
            pair.client().receive(i, sink, 0, 64);
            pair.server().receive(10 + i, serverSink, 0, 64);
        }
        // Staged and never flushed: taken, so it completes.
        pair.client().run(endpoint -> {
            assertThat(pair.client().post(endpoint, sendOf(20, source, 0, 8))).isTrue();
            assertThat(pair.client().postReceive(endpoint, 5, new ScatterGatherList(1).add(sink, 0, 64)))
                    .isTrue();
            endpoint.disconnect();
            endpoint.disconnect();
            assertThat(pair.client().post(endpoint, sendOf(21, source, 0, 8))).isFalse();
            assertThat(pair.client().postReceive(endpoint, 6, new ScatterGatherList(1).add(sink, 0, 64)))
                    .isFalse();
            endpoint.flush();
        });
        assertThat(pair.client().awaitReceives(6))
                .extracting(Completion::status)
                .containsOnly(WorkStatus.FLUSHED);
        assertThat(pair.client().awaitSend().workId()).isEqualTo(20);
        assertThat(pair.client().awaitDisconnected()).isNull();
        // What was staged may have gone out before the end; then one of the receives has it.
        assertThat(pair.server().awaitReceives(5).stream().skip(1))
                .extracting(Completion::status)
                .containsOnly(WorkStatus.FLUSHED);
        assertThat(pair.server().awaitDisconnected()).isNull();
        pair.client().run(endpoint -> {
            assertThat(pair.client().post(endpoint, sendOf(22, source, 0, 8))).isFalse();
            endpoint.flush();
            endpoint.disconnect();
        });
    }

    @Test
    void endsInGoodOrderFromTheServer() {
        Pair pair = connectPair();
        greet(pair);
        pair.server().awaitPrepared().disconnect();
        assertThat(pair.server().awaitDisconnected()).isNull();
        assertThat(pair.client().awaitDisconnected()).isNull();
    }

    @Test
    void endsInGoodOrderFromBothSidesAtOnce() {
        for (int i = 0; i < 5; i++) {
            Pair pair = connectPair();
            pair.client().awaitPrepared().disconnect();
            pair.server().awaitPrepared().disconnect();
            assertThat(pair.server().awaitDisconnected()).isNull();
            assertThat(pair.client().awaitDisconnected()).isNull();
        }
    }

    @Test
    void disconnectsFromWithinACallback() {
        RecordingEndpointHandler server = newHandler("server");
        server.whenReceived((endpoint, completion) -> endpoint.disconnect());
        Pair pair = connectPair(OPTIONS, OPTIONS, newHandler("client"), server);
        RegisteredMemory sink = region(server, 64, Access.LOCAL_WRITE);
        server.receive(1, sink, 0, 64);
        server.receive(2, sink, 0, 64);
        pair.client().send(new WorkRequest(1).asSend(3, 0));
        assertSuccess(server.awaitReceive(), 1, 0);
        assertThat(server.awaitReceive().status()).isEqualTo(WorkStatus.FLUSHED);
        assertThat(server.awaitDisconnected()).isNull();
        assertThat(pair.client().awaitDisconnected()).isNull();
    }

    /** A send that has succeeded is received, also by a peer that is slow and answers while the sender goes away. */
    @ParameterizedTest
    @ValueSource(ints = {64, 16 << 10})
    void receivesWhatWasSentBeforeTheSenderWent(int bytes) throws InterruptedException {
        int messages = 128;
        CountDownLatch gone = new CountDownLatch(1);
        AtomicInteger sent = new AtomicInteger();
        AtomicInteger received = new AtomicInteger();
        RecordingEndpointHandler client = newHandler("client");
        RecordingEndpointHandler server = newHandler("server");
        client.whenSent((endpoint, completion) -> countSuccess(completion, sent));
        server.whenReceived((endpoint, completion) -> {
            countSuccess(completion, received);
            if (completion.workId() == 0) {
                awaitUninterruptibly(gone);
            }
            boolean unused = server.post(endpoint, new WorkRequest(1).asSend(completion.workId(), 0));
        });
        EndpointOptions deep = OPTIONS.with(o -> o.sendDepth = messages);
        connectPair(deep, deep, client, server);
        RegisteredMemory sink = region(server, bytes, Access.LOCAL_WRITE);
        RegisteredMemory source = region(client, bytes);
        for (int i = 0; i < messages; i++) {
            server.receive(i, sink, 0, bytes);
        }
        client.run(endpoint -> {
            for (int i = 0; i < messages; i++) {
                assertThat(client.post(endpoint, sendOf(i, source, 0, bytes))).isTrue();
            }
            endpoint.flush();
        });
        client.awaitSend();
        Patience.until("the first is received", () -> received.get() == 1);
        // A sender that sleeps has to be woken for an answer: that it cannot be must harm nothing.
        Patience.sleep(50);
        client.run(Endpoint::disconnect);
        client.run(endpoint -> {}); // it has left
        gone.countDown();
        server.awaitDisconnected();
        client.awaitDisconnected();
        assertThat(received.get())
                .as("messages received, of those sent with success")
                .isGreaterThanOrEqualTo(sent.get());
    }

    private static void countSuccess(Completion completion, AtomicInteger count) {
        if (completion.status() == WorkStatus.SUCCESS) {
            count.incrementAndGet();
        }
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        try {
            assertThat(latch.await(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS))
                    .isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void losesNothingWhenClosedWhilePosting(boolean clientCloses) throws InterruptedException {
        long seed = seed("losesNothingWhenClosedWhilePosting");
        Random random = new Random(seed);
        for (int round = 0; round < 5; round++) {
            Pair pair = connectPair(withDepths(32, 32), withDepths(32, 32));
            greet(pair);
            for (RecordingEndpointHandler side : List.of(pair.client(), pair.server())) {
                RecordingEndpointHandler peer = side == pair.client() ? pair.server() : pair.client();
                RegisteredMemory source = region(side, 4096);
                RegisteredMemory table = region(peer, 4096, Access.LOCAL_WRITE, Access.REMOTE_WRITE);
                WorkRequest request = new WorkRequest(1);
                Runnable pump = new Runnable() {
                    private long next;

                    @Override
                    public void run() {
                        Endpoint endpoint = side.awaitPrepared();
                        request.asWrite(next, 0, table.address(), table.remoteKey())
                                .buffers()
                                .add(source, 0, 512);
                        while (side.post(endpoint, request)) {
                            next++;
                            request.asWrite(next, 0, table.address(), table.remoteKey())
                                    .buffers()
                                    .add(source, 0, 512);
                        }
                        endpoint.flush();
                        if (!side.isDisconnected()) {
                            // A chain of tasks would keep Netty's loop from its sockets for a second at a time.
                            boolean full = endpoint.freeSendSlots() == 0;
                            side.loop().schedule(this, full ? 1 : 1_000, TimeUnit.MICROSECONDS);
                        }
                    }
                };
                side.loop().execute(pump);
            }
            Patience.turns(random.nextInt(300), pair.client().loop());
            (clientCloses ? pair.client() : pair.server()).awaitPrepared().disconnect();
            (clientCloses ? pair.client() : pair.server()).awaitDisconnected();
            (clientCloses ? pair.server() : pair.client()).awaitDisconnected();
            pair.client().assertNoViolations();
            pair.server().assertNoViolations();
        }
    }

    @Test
    void keepsMemoryInFlightRegistered() {
        Pair pair = connectPair();
        MemoryDomain domain = pair.server().awaitPrepared().memoryDomain();
        long before = domain.registeredBytes();
        RegisteredMemory sink = region(pair.server(), 64, Access.LOCAL_WRITE);
        RegisteredMemory flushed = region(pair.server(), 32, Access.LOCAL_WRITE);
        pair.server().receive(1, sink, 0, 64);
        pair.server().receive(2, flushed, 0, 32);
        sink.close();
        flushed.close();
        assertThat(domain.registeredBytes()).isEqualTo(before + 96);
        RegisteredMemory source = region(pair.client(), 16);
        source.segment().set(ValueLayout.JAVA_LONG, 0, 0x1234);
        long withSource = domain.registeredBytes() - before;
        pair.client().send(sendOf(3, source, 0, 16));
        assertSuccess(pair.server().awaitReceive(), 1, 16);
        assertThat(sink.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(0x1234);
        Patience.until("the used region is gone", () -> domain.registeredBytes() - before == withSource - 64);
        pair.server().awaitPrepared().disconnect();
        assertThat(pair.server().awaitReceive().status()).isEqualTo(WorkStatus.FLUSHED);
        pair.server().awaitDisconnected();
        Patience.until("the flushed region is gone", () -> domain.registeredBytes() - before == withSource - 96);
    }

    @Test
    void endsEverythingWhenTheLoopsEnd() {
        Pair pair = connectPair();
        RegisteredMemory sink = region(pair.client(), 64, Access.LOCAL_WRITE);
        pair.client().receive(1, sink, 0, 64);
        shutDown();
        assertThat(pair.client().isDisconnected()).isTrue();
        assertThat(pair.server().isDisconnected()).isTrue();
        assertThat(pair.client().awaitReceive()).isEqualTo(new Completion(1, WorkStatus.FLUSHED, 0, 0, 0));
        listenerHandlers.getFirst().awaitClosed();
    }

    // ---- many

    @Test
    void sharesAReceiveQueueAmongTheEndpointsOfALoop() {
        assumeTrue(hasSharedReceiveQueues(), "the device has no shared receive queues");
        IoEventLoop loop = loop();
        EndpointOptions shared = withSharedReceiveQueue();
        int count = 4;
        List<Pair> pairs = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            RecordingEndpointHandler server = newHandler("server " + i, loop);
            pairs.add(connectPair(OPTIONS, shared, newHandler("client " + i), server));
            server.sharesReceives();
        }
        SharedReceiveQueue queue = pairs.getFirst().server().awaitPrepared().sharedReceiveQueue();
        assumeTrue(queue != null, "no shared receive queue here");
        assertThat(pairs)
                .allSatisfy(pair -> assertThat(pair.server().awaitPrepared().sharedReceiveQueue())
                        .isSameAs(queue));
        assertThat(queue.depth()).isPositive();
        AtomicInteger closed = new AtomicInteger();
        Patience.await("attach", loop.submit(() -> {
            assertThat(queue.attachment()).isNull();
            queue.attach((AutoCloseable) closed::incrementAndGet);
        }));
        int each = 8;
        RegisteredMemory sink = region(pairs.getFirst().server(), 64L * count * each, Access.LOCAL_WRITE);
        Patience.await("receives", loop.submit(() -> {
            ScatterGatherList list = new ScatterGatherList(1);
            for (int i = 0; i < count * each; i++) {
                assertThat(queue.postReceive(i, list.clear().add(sink, 64L * i, 64)))
                        .isTrue();
            }
            queue.flush();
        }));
        for (int i = 0; i < count; i++) {
            RecordingEndpointHandler client = pairs.get(i).client();
            RegisteredMemory source = region(client, 8);
            source.segment().set(ValueLayout.JAVA_LONG, 0, i);
            client.run(endpoint -> {
                for (int j = 0; j < each; j++) {
                    assertThat(client.post(endpoint, sendOf(j, source, 0, 8))).isTrue();
                }
                endpoint.flush();
            });
        }
        boolean[] used = new boolean[count * each];
        for (int i = 0; i < count; i++) {
            pairs.get(i).client().awaitSends(each).forEach(done -> assertSent(done, done.workId()));
            for (Completion completion : pairs.get(i).server().awaitReceives(each)) {
                assertSuccess(completion, completion.workId(), 8);
                assertThat(used[(int) completion.workId()]).as("used twice").isFalse();
                used[(int) completion.workId()] = true;
                assertThat(sink.segment().get(ValueLayout.JAVA_LONG, 64 * completion.workId()))
                        .isEqualTo(i);
            }
        }
        assertThat(used).doesNotContain(false);
        // What an endpoint leaves in the queue is there for the others.
        pairs.getFirst().client().awaitPrepared().disconnect();
        pairs.getFirst().server().awaitDisconnected();
        Patience.await("another receive", loop.submit(() -> {
            assertThat(queue.postReceive(99, new ScatterGatherList(1).add(sink, 0, 64)))
                    .isTrue();
            queue.flush();
        }));
        RecordingEndpointHandler last = pairs.getLast().client();
        last.send(new WorkRequest(1).asSend(1, 0));
        assertSuccess(pairs.getLast().server().awaitReceive(), 99, 0);
        shutDown();
        assertThat(closed).as("the attachment is closed with the loop").hasValue(1);
    }

    @Test
    @Timeout(value = 300, unit = TimeUnit.SECONDS)
    protected void manyConnections() {
        int count = connectionCount();
        int atOnce = 50;
        EndpointOptions small = EndpointOptions.DEFAULTS.with(o -> {
            o.connectTimeoutMillis = 60_000;
            o.sendDepth = 4;
            o.receiveDepth = 4;
            o.maxSges = 1;
            o.maxInlineBytes = 16;
            o.readDepth = 1;
        });
        RecordingListenerHandler listener = listen();
        InetSocketAddress address = listener.awaitListening().localAddress();
        List<Pair> pairs = new ArrayList<>();
        List<RecordingEndpointHandler> pending = new ArrayList<>();
        for (int i = 0; i < count; i += atOnce) {
            int end = Math.min(count, i + atOnce);
            for (int j = i; j < end; j++) {
                RecordingEndpointHandler client = newHandler("client " + j);
                pending.add(client);
                byte[] number = ascii("%08d".formatted(j));
                connect(address, small.with(o -> o.privateData = number), client);
            }
            RecordingEndpointHandler[] servers = new RecordingEndpointHandler[end - i];
            for (int j = i; j < end; j++) {
                IncomingConnection request = listener.awaitRequest();
                int number = Integer.parseInt(new String(request.privateData(), 0, 8, StandardCharsets.US_ASCII));
                RecordingEndpointHandler server = newHandler("server " + number);
                servers[number - i] = server;
                request.accept(server.loop(), small, server);
            }
            for (int j = i; j < end; j++) {
                servers[j - i].awaitConnected();
                pending.get(j).awaitConnected();
                pairs.add(new Pair(pending.get(j), servers[j - i]));
            }
        }
        REGISTERED_AT_FIRST.computeIfAbsent(
                pairs.getFirst().client().awaitPrepared().memoryDomain(), MemoryDomain::registeredBytes);
        RegisteredMemory source = region(pairs.getFirst().client(), 8L * count);
        RegisteredMemory sink = region(pairs.getFirst().server(), 8L * count, Access.LOCAL_WRITE);
        for (int i = 0; i < count; i++) {
            source.segment().setAtIndex(ValueLayout.JAVA_LONG, i, 7L * i);
            pairs.get(i).server().receive(i, sink, 8L * i, 8);
            pairs.get(i).client().send(sendOf(i, source, 8L * i, 8));
        }
        for (int i = 0; i < count; i++) {
            assertSent(pairs.get(i).client().awaitSend(), i);
            assertSuccess(pairs.get(i).server().awaitReceive(), i, 8);
        }
        assertSame(sink, 0, source, 0, 8L * count);
        for (int i = 0; i < count; i++) {
            (i % 2 == 0 ? pairs.get(i).client() : pairs.get(i).server())
                    .awaitPrepared()
                    .disconnect();
        }
        for (Pair pair : pairs) {
            assertThat(pair.client().awaitDisconnected()).isNull();
            assertThat(pair.server().awaitDisconnected()).isNull();
        }
    }

    @Test
    void survivesRandomTrafficBothWays() {
        long seed = seed("survivesRandomTrafficBothWays");
        Random random = new Random(seed);
        Pair pair = connectPair();
        greet(pair);
        int slots = 32;
        int slotBytes = 20_000;
        List<RecordingEndpointHandler> sides = List.of(pair.client(), pair.server());
        RegisteredMemory[] source = new RegisteredMemory[2];
        RegisteredMemory[] sink = new RegisteredMemory[2];
        RegisteredMemory[] table = new RegisteredMemory[2];
        RegisteredMemory[] back = new RegisteredMemory[2];
        for (int s = 0; s < 2; s++) {
            source[s] = region(sides.get(s), (long) slots * slotBytes);
            sink[s] = region(sides.get(s), (long) slots * slotBytes, Access.LOCAL_WRITE);
            back[s] = readSink(sides.get(s), (long) slots * slotBytes);
            table[s] = region(
                    sides.get(s),
                    (long) slots * slotBytes,
                    Access.LOCAL_WRITE,
                    Access.REMOTE_WRITE,
                    Access.REMOTE_READ);
        }
        for (int round = 0; round < 10; round++) {
            for (int s = 0; s < 2; s++) {
                fill(source[s].segment(), random.nextLong());
                fill(table[s].segment(), random.nextLong());
                sink[s].segment().fill((byte) 0);
            }
            int[][] kind = new int[2][slots];
            int[][] length = new int[2][slots];
            for (int s = 0; s < 2; s++) {
                for (int i = 0; i < slots; i++) {
                    // Writes go to even slots and reads to odd ones, so they do not meet.
                    kind[s][i] = random.nextInt(2) == 0 ? 0 : 1 + i % 2;
                    // Empty reads among others are beyond siw, which takes one response for another then.
                    int least = kind[s][i] == 2 ? 1 : 0;
                    length[s][i] =
                            Math.max(least, random.nextInt(4) == 0 ? random.nextInt(64) : random.nextInt(slotBytes));
                }
            }
            for (int s = 0; s < 2; s++) {
                RecordingEndpointHandler side = sides.get(s);
                int me = s;
                side.run(endpoint -> {
                    ScatterGatherList list = new ScatterGatherList(1);
                    for (int i = 0; i < slots; i++) {
                        if (kind[1 - me][i] == 0) {
                            list.clear().add(sink[me], (long) i * slotBytes, slotBytes);
                            assertThat(side.postReceive(endpoint, i, list)).isTrue();
                        }
                    }
                    endpoint.flush();
                });
            }
            for (int s = 0; s < 2; s++) {
                RecordingEndpointHandler side = sides.get(s);
                int me = s;
                long flushes = random.nextLong();
                side.run(endpoint -> {
                    WorkRequest request = new WorkRequest(1);
                    for (int i = 0; i < slots; i++) {
                        long at = (long) i * slotBytes;
                        RegisteredMemory remote = table[1 - me];
                        switch (kind[me][i]) {
                            case 0 -> request.asSend(i, 0).buffers().add(source[me], at, length[me][i]);
                            case 1 ->
                                request.asWrite(i, 0, remote.address() + at, remote.remoteKey())
                                        .buffers()
                                        .add(source[me], at, length[me][i]);
                            default ->
                                request.asRead(i, 0, remote.address() + at, remote.remoteKey())
                                        .buffers()
                                        .add(back[me], at, length[me][i]);
                        }
                        assertThat(side.post(endpoint, request)).isTrue();
                        if ((flushes >>> i & 1) == 1) {
                            endpoint.flush();
                        }
                    }
                    endpoint.flush();
                });
            }
            for (int s = 0; s < 2; s++) {
                long[] ids = sides.get(s).awaitSends(slots).stream()
                        .peek(done -> assertThat(done.status()).isEqualTo(WorkStatus.SUCCESS))
                        .mapToLong(Completion::workId)
                        .toArray();
                assertThat(ids).isEqualTo(LongStream.range(0, slots).toArray());
            }
            for (int s = 0; s < 2; s++) {
                for (int i = 0; i < slots; i++) {
                    if (kind[s][i] == 2) {
                        assertSame(back[s], (long) i * slotBytes, table[1 - s], (long) i * slotBytes, length[s][i]);
                    }
                    if (kind[s][i] == 0) {
                        Completion completion = sides.get(1 - s).awaitReceive();
                        assertThat(completion.lengthBytes()).isEqualTo(length[s][i]);
                        assertSame(
                                sink[1 - s],
                                completion.workId() * slotBytes,
                                source[s],
                                (long) i * slotBytes,
                                length[s][i]);
                    }
                }
            }
            // A read from each side comes behind its writes, so what it returns holds them.
            for (int s = 0; s < 2; s++) {
                RecordingEndpointHandler side = sides.get(s);
                RegisteredMemory copy = readSink(side, (long) slots * slotBytes);
                side.send(readOf(100, copy, 0, slots * slotBytes, table[1 - s], 0));
                assertSuccess(side.awaitSend(), 100, slots * slotBytes);
                for (int i = 0; i < slots; i++) {
                    if (kind[s][i] == 1) {
                        long at = (long) i * slotBytes;
                        assertSame(copy, at, source[s], at, length[s][i]);
                        assertSame(table[1 - s], at, source[s], at, length[s][i]);
                    }
                }
                copy.close();
            }
        }
    }
}
