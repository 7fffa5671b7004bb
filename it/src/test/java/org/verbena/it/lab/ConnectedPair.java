package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.Descriptors;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.memory.AccessFlag;

/** Both ends of a connection in one thread, for tests of what goes wrong between them. */
final class ConnectedPair implements AutoCloseable {
    static final int REGION_BYTES = 4096;
    static final int EVENT_MILLIS = 15_000;

    private static final AtomicInteger NEXT_PORT = new AtomicInteger(7600);
    private static final QueuePairCapabilities QUEUES = new QueuePairCapabilities(16, 16, 1, 1, 0);

    /** One end. */
    static final class End implements AutoCloseable {
        private final Deque<AutoCloseable> resources = new ArrayDeque<>();
        final CmId id;
        final CompletionQueue completions;
        final QueuePair queuePair;
        final MemoryRegion region;

        End(CmId id) {
            this(id, null);
        }

        End(CmId id, @Nullable QueuePairExtension extension) {
            this.id = id;
            Context device = Objects.requireNonNull(id.device());
            ProtectionDomain domain = device.allocateProtectionDomain();
            resources.push(domain);
            completions = device.createCompletionQueue(64);
            resources.push(completions);
            QueuePairOptions options = QueuePairOptions.reliable(completions, QUEUES);
            queuePair = extension == null
                    ? id.createQueuePair(domain, options)
                    : id.createQueuePair(domain, options, extension);
            resources.push(queuePair);
            Arena arena = Arena.ofShared();
            resources.push(arena);
            region = domain.registerMemory(
                    arena.allocate(REGION_BYTES, 4096),
                    Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE));
            resources.push(region);
        }

        /** Gives everything back but the id. */
        @Override
        public void close() {
            closeAll(resources);
        }

        /** Polls for the next completion. */
        WorkCompletions awaitCompletion(WorkCompletions into) {
            long deadline = System.nanoTime() + EVENT_MILLIS * 1_000_000L;
            while (completions.poll(into) == 0) {
                if (System.nanoTime() > deadline) {
                    throw new AssertionError("no completion in " + EVENT_MILLIS + " ms on " + queuePair);
                }
                Thread.onSpinWait();
            }
            return into;
        }
    }

    final EventChannel events = EventChannel.open();
    final End client;
    final End server;

    /** What came of the request and of the answer. */
    final CmEvent request;

    final CmEvent answer;

    private final Deque<AutoCloseable> resources = new ArrayDeque<>();

    ConnectedPair(LabDevice device) {
        this(device.address(), ConnectionParameters.DEFAULT, ConnectionParameters.DEFAULT);
    }

    ConnectedPair(String address, ConnectionParameters asked, ConnectionParameters answered) {
        this(address, asked, answered, null);
    }

    /** With more to the client's queue pair. */
    ConnectedPair(
            String address,
            ConnectionParameters asked,
            ConnectionParameters answered,
            @Nullable QueuePairExtension extension) {
        resources.push(events);
        CmId listener = own(CmId.create(events, PortSpace.TCP));
        InetSocketAddress at = new InetSocketAddress(address, NEXT_PORT.incrementAndGet());
        listener.bind(at);
        listener.listen(8);
        CmId active = own(CmId.create(events, PortSpace.TCP));
        resolve(events, active, at);
        client = own(new End(active, extension));
        active.connect(asked);
        request = expect(CmEventType.CONNECT_REQUEST);
        own(request.id());
        server = own(new End(request.id()));
        server.id.accept(answered);
        // Both come, in either order.
        Map<CmId, CmEvent> established = new HashMap<>();
        while (established.size() < 2) {
            CmEvent event = expect(CmEventType.ESTABLISHED);
            established.put(event.id(), event);
        }
        answer = Objects.requireNonNull(established.get(active));
    }

    private <T extends AutoCloseable> T own(T resource) {
        resources.push(resource);
        return resource;
    }

    static void resolve(EventChannel events, CmId id, InetSocketAddress to) {
        id.resolveAddress(null, to, EVENT_MILLIS);
        expect(events, CmEventType.ADDR_RESOLVED);
        id.resolveRoute(EVENT_MILLIS);
        expect(events, CmEventType.ROUTE_RESOLVED);
    }

    CmEvent expect(CmEventType type) {
        return expect(events, type);
    }

    /** The next event but TIMEWAIT_EXIT, which must be of this type. */
    static CmEvent expect(EventChannel events, CmEventType... types) {
        while (true) {
            CmEvent event = events.get(EVENT_MILLIS);
            if (event == null) {
                throw new AssertionError("no event in " + EVENT_MILLIS + " ms instead of " + Arrays.toString(types));
            }
            if (Arrays.asList(types).contains(event.type())) {
                return event;
            }
            if (event.type() != CmEventType.TIMEWAIT_EXIT) {
                throw new AssertionError(
                        event.describe() + " on " + event.id() + " instead of " + Arrays.toString(types));
            }
        }
    }

    /** The client ends it, and the server answers. */
    void disconnect() {
        client.id.disconnect();
        awaitDisconnected();
    }

    /**
     * Waits until both ends are told that it is over; the one that hears first answers, as InfiniBand and RoCE have it.
     */
    void awaitDisconnected() {
        Set<CmId> told = new java.util.HashSet<>();
        while (told.size() < 2) {
            CmId id = expect(CmEventType.DISCONNECTED).id();
            if (told.add(id) && id == server.id) {
                try {
                    id.disconnect();
                } catch (CmException alreadyOver) {
                    assertThat(alreadyOver.errno()).isIn(22, 107);
                }
            }
        }
    }

    /** Whether nothing happens for a while. */
    boolean isQuiet(int millis) {
        return Descriptors.awaitReadable(millis, events.descriptor()) == 0;
    }

    @Override
    public void close() {
        closeAll(resources);
    }

    private static void closeAll(Deque<AutoCloseable> resources) {
        RuntimeException first = null;
        while (!resources.isEmpty()) {
            try {
                resources.pop().close();
            } catch (Exception e) {
                first = first == null ? new IllegalStateException(e) : first;
            }
        }
        if (first != null) {
            throw first;
        }
    }
}
