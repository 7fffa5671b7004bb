package org.verbena.transport.spi;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.RecordingEndpointHandler.Completion;

/**
 * A random walk of connects and disconnects, of memory that is registered, registered again, closed and invalidated,
 * and of reads, writes, atomics and sends that use all of it, permitted or not. A model predicts how each of them must
 * end: a permitted one succeeds, byte by byte, and any other ends its connection and changes nothing. A walk that fails
 * is made as short as possible. As in google/rdma-unit-test, for one provider after the other.
 *
 * <p>{@code -Dverbena.walks=} sets how many walks there are, {@code -Dverbena.walk.seed=} repeats one.
 */
@Timeout(value = 15, unit = TimeUnit.MINUTES)
public abstract class ControlPathWalk {
    private static final int STEPS = 60;
    private static final int LINKS = 3;
    private static final int REGIONS = 5;
    private static final int REGION_BYTES = 256;

    /** Enough to shorten a walk to what it takes; each is a walk of its own. */
    private static final int SHRINK_ATTEMPTS = 60;

    private static final EndpointOptions OPTIONS = EndpointOptions.DEFAULTS.with(o -> {
        o.connectTimeoutMillis = 20_000;
        o.sendDepth = 16;
        o.receiveDepth = 16;
        o.maxSges = 2;
        o.maxInlineBytes = 64;
        o.readDepth = 4;
        o.rnrRetryCount = 0;
    });

    /**
     * The kinds of steps; a step's numbers select its objects among those that exist then, so that a walk makes sense
     * without some of its steps.
     */
    enum Kind {
        CONNECT,
        DISCONNECT,
        REGISTER,
        CLOSE,
        REGISTER_ANEW,
        READ,
        WRITE,
        ADD,
        USE_OLD_KEY,
        SEND,
        SEND_WITHOUT_RECEIVE,
        SEND_WITH_INVALIDATE
    }

    /** The weight of each kind. */
    private static final int[] WEIGHTS = {6, 2, 6, 2, 3, 10, 10, 4, 2, 5, 1, 3};

    record Step(Kind kind, int link, int region, int number) {}

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
     * Whether a peer without the right for an operation is refused.
     *
     * @param right of reads, writes or atomics
     * @return false where the device does not check it
     */
    protected boolean looksAtRight(Access right) {
        return true;
    }

    /**
     * How many walks to make.
     *
     * @return {@code -Dverbena.walks}, 25 by default: a few seconds on soft
     */
    protected int walks() {
        return Integer.getInteger("verbena.walks", 25);
    }

    @Test
    void everyStepEndsAsTheModelSays() {
        Long given = Long.getLong("verbena.walk.seed");
        int walks = given == null ? walks() : 1;
        for (int i = 0; i < walks; i++) {
            long seed = given == null ? ThreadLocalRandom.current().nextLong() : given;
            List<Step> steps = draw(new Random(seed));
            Throwable failure = failureOf(steps);
            if (failure != null) {
                List<Step> shortest = Shrinker.shrink(steps, list -> failureOf(list) != null, SHRINK_ATTEMPTS);
                Throwable last = failureOf(shortest);
                throw new AssertionError(
                        "-Dverbena.walk.seed=" + seed + " fails, and so do these steps of it: " + shortest,
                        last == null ? failure : last);
            }
        }
    }

    private static List<Step> draw(Random random) {
        int sum = Arrays.stream(WEIGHTS).sum();
        List<Step> steps = new ArrayList<>();
        for (int i = 0; i < STEPS; i++) {
            int drawn = random.nextInt(sum);
            int kind = 0;
            while (drawn >= WEIGHTS[kind]) {
                drawn -= WEIGHTS[kind++];
            }
            steps.add(new Step(
                    Kind.values()[kind],
                    random.nextInt(2 * LINKS),
                    random.nextInt(REGIONS),
                    random.nextInt(Integer.MAX_VALUE)));
        }
        return steps;
    }

    private @Nullable Throwable failureOf(List<Step> steps) {
        try (Walk walk = new Walk()) {
            for (Step step : steps) {
                try {
                    walk.go(step);
                } catch (AssertionError | RuntimeException failure) {
                    throw new AssertionError("at " + step, failure);
                }
            }
            walk.end();
            return null;
        } catch (AssertionError | RuntimeException failure) {
            return failure;
        }
    }

    // ---- the model

    /** A connection; the side that a step names submits operations. */
    private static final class Link {
        final RecordingEndpointHandler[] sides;
        final RegisteredMemory[] scratch = new RegisteredMemory[2];
        final PeerGroup group;
        final MemoryDomain[] groupMemory = new MemoryDomain[2];
        boolean isUp = true;

        Link(RecordingEndpointHandler client, RecordingEndpointHandler server, PeerGroup group) {
            this.group = group;
            sides = new RecordingEndpointHandler[] {client, server};
        }
    }

    /** Whose peers may use a region. */
    private enum Reach {
        CONNECTION,
        GROUP,
        DEVICE
    }

    /** A region and its expected content. */
    private static final class Region {
        final Link link;
        final int side;
        final Reach reach;
        final Set<Access> rights;
        final MemorySegment memory;
        final byte[] expected = new byte[REGION_BYTES];
        RegisteredMemory registered;
        boolean isClosed;
        boolean isTakenBack;
        int oldKey;

        Region(Link link, int side, Reach reach, Set<Access> rights, MemorySegment memory) {
            this.link = link;
            this.side = side;
            this.reach = reach;
            this.rights = rights;
            this.memory = memory;
            registered = domain().register(memory, rights);
        }

        boolean isOwnOf(Link other, int asking) {
            return reach == Reach.CONNECTION && link == other && side != asking && other.isUp;
        }

        boolean isFor(Link other, int asking) {
            return switch (reach) {
                case CONNECTION -> isOwnOf(other, asking);
                case GROUP -> link.group == other.group;
                case DEVICE -> true;
            };
        }

        MemoryDomain domain() {
            Endpoint endpoint = link.sides[side].awaitPrepared();
            return switch (reach) {
                case CONNECTION -> endpoint.connectionMemory();
                case GROUP -> link.groupMemory[side];
                case DEVICE -> endpoint.memoryDomain();
            };
        }
    }

    private final class Walk implements AutoCloseable {
        private final Arena arena = Arena.ofShared();
        private final MultiThreadIoEventLoopGroup group =
                new MultiThreadIoEventLoopGroup(2, provider().newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        private final RecordingListenerHandler listening;
        private final Listener listener;
        private final List<RecordingEndpointHandler> handlers = new ArrayList<>();
        private final Link[] links = new Link[LINKS];
        private final PeerGroup[] groups = {new PeerGroup(), new PeerGroup()};
        private final Region[] regions = new Region[REGIONS];
        private final List<Region> all = new ArrayList<>();
        private final List<RegisteredMemory> registrations = new ArrayList<>();
        private @Nullable MemoryDomain domain;
        private long registeredAtFirst;

        Walk() {
            IoEventLoop loop = group.next();
            listening = new RecordingListenerHandler(loop);
            listener = provider().listen(loop, listenAddress(), ListenOptions.DEFAULTS, listening);
        }

        void go(Step step) {
            int slot = step.link % LINKS;
            int side = step.link / LINKS;
            Link link = links[slot];
            if (step.kind == Kind.CONNECT) {
                if (link == null || !link.isUp) {
                    links[slot] = connect();
                }
                return;
            }
            if (link == null) {
                return;
            }
            Region region = regions[step.region];
            switch (step.kind) {
                case DISCONNECT -> disconnect(link, side);
                case REGISTER -> regions[step.region] = register(link, side, step.number);
                case SEND -> send(link, side, step.number % REGION_BYTES, true);
                case SEND_WITHOUT_RECEIVE -> send(link, side, step.number % REGION_BYTES, false);
                default -> {
                    if (region != null) {
                        use(step, link, side, region);
                    }
                }
            }
        }

        private void use(Step step, Link link, int side, Region region) {
            int key = region.registered.remoteKey();
            // Mostly within the region, now and then at an end or beyond it.
            int offset = step.number % (REGION_BYTES + 16) - 8;
            int length = 1 + (step.number >>> 16) % 64;
            switch (step.kind) {
                case CLOSE -> {
                    region.isClosed = true;
                    region.registered.close();
                }
                case REGISTER_ANEW -> registerAnew(region);
                case READ -> access(link, side, region, key, Access.REMOTE_READ, offset, length, false);
                case WRITE -> access(link, side, region, key, Access.REMOTE_WRITE, offset, length, false);
                case ADD -> access(link, side, region, key, Access.REMOTE_ATOMIC, offset & -8, 8, false);
                case USE_OLD_KEY -> {
                    if (region.oldKey != 0 && !isKeyOfAny(region.oldKey)) {
                        access(link, side, region, region.oldKey, Access.REMOTE_READ, 0, 8, true);
                    }
                }
                case SEND_WITH_INVALIDATE -> invalidate(link, side, region, key);
                default -> throw new IllegalArgumentException(step.toString());
            }
        }

        /** Devices may reuse an old key. */
        private boolean isKeyOfAny(int key) {
            return all.stream().anyMatch(region -> region.registered.remoteKey() == key);
        }

        private Link connect() {
            RecordingEndpointHandler client = handler("client");
            RecordingEndpointHandler server = handler("server");
            provider().connect(client.loop(), listening.awaitListening().localAddress(), OPTIONS, client);
            listening.awaitRequest().accept(server.loop(), OPTIONS, server);
            client.awaitConnected();
            server.awaitConnected();
            Link link = new Link(client, server, groups[handlers.size() / 2 % groups.length]);
            for (int side = 0; side < 2; side++) {
                link.groupMemory[side] = link.sides[side].call(endpoint -> endpoint.join(link.group));
            }
            MemoryDomain known = client.awaitPrepared().memoryDomain();
            if (domain == null) {
                domain = known;
                registeredAtFirst = known.registeredBytes();
            }
            for (int side = 0; side < 2; side++) {
                link.scratch[side] = known.register(
                        arena.allocate(2 * REGION_BYTES, 8), Set.of(Access.LOCAL_WRITE, Access.REMOTE_WRITE));
                registrations.add(link.scratch[side]);
            }
            send(link, 0, 1, true); // over iWARP the client speaks first
            return link;
        }

        private RecordingEndpointHandler handler(String name) {
            RecordingEndpointHandler handler = new RecordingEndpointHandler(name + " " + handlers.size(), group.next());
            handlers.add(handler);
            return handler;
        }

        private void disconnect(Link link, int side) {
            if (link.isUp) {
                link.isUp = false;
                link.sides[side].awaitPrepared().disconnect();
                assertThat(link.sides[0].awaitDisconnected()).isNull();
                assertThat(link.sides[1].awaitDisconnected()).isNull();
            } else {
                link.sides[side].run(endpoint -> assertThat(
                                link.sides[side].post(endpoint, new WorkRequest(1).asSend(1, 0)))
                        .as("what is posted after the end")
                        .isFalse());
            }
        }

        private @Nullable Region register(Link link, int side, int number) {
            if (!link.isUp) {
                return null;
            }
            Set<Access> rights = EnumSet.of(Access.LOCAL_WRITE);
            Access[] remote = {Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC};
            for (int i = 0; i < remote.length; i++) {
                if ((number >> i) % 4 != 0) {
                    rights.add(remote[i]);
                }
            }
            Endpoint endpoint = link.sides[side].awaitPrepared();
            EndpointCapabilities capabilities = endpoint.capabilities();
            Reach reach = Reach.DEVICE;
            if (number % 2 == 0 && capabilities.connectionMemory()) {
                reach = Reach.CONNECTION;
            } else if (number % 4 == 1 && capabilities.groupMemory()) {
                reach = Reach.GROUP;
            }
            MemorySegment memory = arena.allocate(REGION_BYTES, 8);
            Region region = new Region(link, side, reach, rights, memory);
            registrations.add(region.registered);
            new Random(number).nextBytes(region.expected);
            MemorySegment.copy(region.expected, 0, memory, ValueLayout.JAVA_BYTE, 0, REGION_BYTES);
            all.add(region);
            return region;
        }

        /** The same memory, with another key: the old one is closed first. */
        private void registerAnew(Region region) {
            if (region.reach == Reach.CONNECTION && !region.link.isUp) {
                return;
            }
            region.oldKey = region.registered.remoteKey();
            region.registered.close();
            region.registered = region.domain().register(region.memory, region.rights);
            region.isClosed = false;
            region.isTakenBack = false;
            registrations.add(region.registered);
        }

        private void access(
                Link link, int side, Region region, int key, Access right, int offset, int length, boolean isOldKey) {
            RecordingEndpointHandler asking = link.sides[side];
            Endpoint endpoint = asking.awaitPrepared();
            if (!link.isUp
                    || (right == Access.REMOTE_ATOMIC
                            && !endpoint.capabilities().atomics())) {
                return;
            }
            boolean hasRight = region.rights.contains(right);
            if (!hasRight && !looksAtRight(right)) {
                return;
            }
            boolean isWithin = offset >= 0 && offset + length <= REGION_BYTES;
            boolean isGood = hasRight
                    && isWithin
                    && region.isFor(link, side)
                    && !region.isClosed
                    && !region.isTakenBack
                    && !isOldKey;
            RegisteredMemory local = link.scratch[side];
            byte[] before = new byte[REGION_BYTES];
            new Random(offset * 31L + length).nextBytes(before);
            MemorySegment.copy(before, 0, local.segment(), ValueLayout.JAVA_BYTE, 0, REGION_BYTES);
            long address = region.memory.address() + offset;
            WorkRequest request = switch (right) {
                case REMOTE_READ -> new WorkRequest(1).asRead(1, 0, address, key);
                case REMOTE_WRITE -> new WorkRequest(1).asWrite(1, 0, address, key);
                default -> new WorkRequest(1).asFetchAndAdd(1, 0, address, key, 5);
            };
            request.buffers().add(local, 0, length);
            asking.send(request);
            if (!isGood) {
                refused(link);
                return;
            }
            assertThat(asking.awaitSend()).isEqualTo(new Completion(1, WorkStatus.SUCCESS, length, 0, 0));
            byte[] now = local.segment().asSlice(0, length).toArray(ValueLayout.JAVA_BYTE);
            switch (right) {
                case REMOTE_READ ->
                    assertThat(now).as("what was read").isEqualTo(part(region.expected, offset, length));
                case REMOTE_WRITE -> {
                    System.arraycopy(before, 0, region.expected, offset, length);
                    send(link, side, 0, true); // when that has come, the write has been done
                }
                default -> {
                    assertThat(now).as("the old value").isEqualTo(part(region.expected, offset, length));
                    MemorySegment expected = MemorySegment.ofArray(region.expected);
                    expected.set(
                            ValueLayout.JAVA_LONG_UNALIGNED,
                            offset,
                            expected.get(ValueLayout.JAVA_LONG_UNALIGNED, offset) + 5);
                }
            }
            assertThat(region.memory.toArray(ValueLayout.JAVA_BYTE))
                    .as("the region")
                    .isEqualTo(region.expected);
        }

        private static byte[] part(byte[] bytes, int offset, int length) {
            return Arrays.copyOfRange(bytes, offset, offset + length);
        }

        private void refused(Link link) {
            link.isUp = false;
            link.sides[0].awaitDisconnected();
            link.sides[1].awaitDisconnected();
        }

        private void send(Link link, int side, int length, boolean hasReceive) {
            if (!link.isUp) {
                return;
            }
            RecordingEndpointHandler asking = link.sides[side];
            RecordingEndpointHandler other = link.sides[1 - side];
            RegisteredMemory sink = link.scratch[1 - side];
            if (hasReceive) {
                other.receive(2, sink, REGION_BYTES, REGION_BYTES);
            }
            WorkRequest request = new WorkRequest(1).asSend(3, 0);
            if (length > 0) {
                request.buffers().add(link.scratch[side], 0, length);
            }
            asking.send(request);
            if (!hasReceive) {
                refused(link);
                return;
            }
            assertThat(asking.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
            assertThat(other.awaitReceive()).isEqualTo(new Completion(2, WorkStatus.SUCCESS, length, 0, 0));
            assertThat(sink.segment()
                            .asSlice(REGION_BYTES, length)
                            .mismatch(link.scratch[side].segment().asSlice(0, length)))
                    .isEqualTo(-1);
        }

        private void invalidate(Link link, int side, Region region, int key) {
            RecordingEndpointHandler asking = link.sides[side];
            RecordingEndpointHandler other = link.sides[1 - side];
            if (!link.isUp || !asking.awaitPrepared().capabilities().sendWithInvalidate()) {
                return;
            }
            other.receive(2, link.scratch[1 - side], REGION_BYTES, REGION_BYTES);
            asking.send(new WorkRequest(1).asSendWithInvalidate(3, 0, key));
            // A key that gives peers no access cannot be invalidated by them.
            boolean isForPeers = region.rights.stream().anyMatch(right -> right != Access.LOCAL_WRITE);
            if (!region.isOwnOf(link, side) || !isForPeers || region.isClosed || region.isTakenBack) {
                refused(link);
                return;
            }
            assertThat(other.awaitReceive())
                    .isEqualTo(new Completion(2, WorkStatus.SUCCESS, 0, EndpointHandler.WITH_INVALIDATE, key));
            asking.awaitSend();
            region.isTakenBack = true;
        }

        /** Closes everything, and compares everything with the model. */
        void end() {
            for (Link link : links) {
                if (link != null && link.isUp) {
                    disconnect(link, 0);
                }
            }
            handlers.forEach(RecordingEndpointHandler::assertNoViolations);
            for (Region region : all) {
                assertThat(region.memory.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(region.expected);
            }
            registrations.forEach(RegisteredMemory::close);
            MemoryDomain known = domain;
            if (known != null) {
                Patience.until(
                        "registered bytes are " + registeredAtFirst + " again",
                        () -> known.registeredBytes() == registeredAtFirst);
            }
        }

        @Override
        public void close() {
            listener.close();
            for (RecordingEndpointHandler handler : handlers) {
                if (!handler.isDisconnected()) {
                    handler.awaitPrepared().disconnect();
                    handler.awaitDisconnected();
                }
            }
            registrations.forEach(RegisteredMemory::close);
            Patience.await("event loops ended", group.shutdownGracefully(0, 1, TimeUnit.SECONDS));
            arena.close();
        }
    }
}
