package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;

/**
 * No call about an object is under way in C while the object is closed. The stub holds each call in turn, another
 * thread closes the object meanwhile, and has to be refused.
 */
@Timeout(240)
class CloseDuringCallsTest {
    private static final Set<AccessFlag> WRITE = EnumSet.of(AccessFlag.LOCAL_WRITE);
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(4, 4, 2, 2, 16);

    /** Posting and polling: of the thread that closes, as their documentation says. */
    private static final Map<Class<?>, Set<String>> DATA_PATH = Map.of(
            CompletionQueue.class, Set.of("poll", "pollNative", "requestNotify"),
            CompletionChannel.class, Set.of("takeEvent"),
            MemoryWindow.class, Set.of("bind"));

    private final Arena arena = Arena.ofShared();
    private final CloseProbe probe = new CloseProbe(arena, DATA_PATH, Map.of());

    @BeforeEach
    void installStub() throws Exception {
        Stub.install();
    }

    @AfterEach
    void nothingLeaks() {
        Stub.call("stub_pause", 0);
        probe.closeAll();
        arena.close();
        assertThat(Stub.live()).isZero();
    }

    @Test
    void everyCallKeepsItsObjectOpen() throws Exception {
        Set<String> held = probe.heldCalls(
                Arrays.stream(VerbsObject.class.getPermittedSubclasses())
                        .filter(type -> type != PacketObject.class)
                        .toList(),
                this::make);
        // Not for nothing: these are held, of each kind one at least.
        assertThat(held)
                .contains(
                        "Context.queryDevice",
                        "Context.queryGid",
                        "Context.queryGids",
                        "Context.queryPkey",
                        "Context.queryDeviceExtended",
                        "Context.queryRawClock",
                        "Context.tryGetAsyncEvent",
                        "Context.allocateProtectionDomain",
                        "ProtectionDomain.registerMemory",
                        "MemoryRegion.reregister",
                        "CompletionQueue.resize",
                        "CompletionQueue.moderate",
                        "CompletionChannel.tryGetEvent",
                        "SharedReceiveQueue.armLimit",
                        "SharedReceiveQueue.queryDepthWrs",
                        "QueuePair.modify",
                        "QueuePair.query",
                        "QueuePair.queryState",
                        "QueuePair.queryEnhancedConnection");
    }

    /** Posting memory of a queue pair is freed without stopping the other threads: no arena of its own is closed. */
    @Test
    void queuePairsHaveNoSharedArena() throws Exception {
        QueuePair queuePair = (QueuePair) make(QueuePair.class);
        for (PostBatch queue : List.of(queuePair.sendQueue(), queuePair.receiveQueue())) {
            assertThat(queue.memory.scope()).isEqualTo(Arena.global().scope());
        }
        for (Class<?> type : List.of(PostBatch.class, WorkRequestBuilder.class, QueuePair.class)) {
            assertThat(Arrays.stream(type.getDeclaredFields()).filter(field -> field.getType() == Arena.class))
                    .isEmpty();
        }
    }

    /** What was begun before the close cannot be gone on with after it: the memory has been freed. */
    @Test
    void nothingReachesTheMemoryOfAClosedQueue() {
        QueuePair queuePair = (QueuePair) make(QueuePair.class);
        SendQueue sends = queuePair.sendQueue();
        ReceiveQueue receives = queuePair.receiveQueue();
        sends.send(1, 0);
        receives.receive(2);
        queuePair.close();
        MemorySegment data = arena.allocate(8);
        for (Runnable use : List.<Runnable>of(
                () -> sends.inline(data, 0, 8),
                () -> sends.send(3, 0),
                sends::flush,
                () -> receives.uncheckedSge(data.address(), 8, 0),
                () -> receives.receive(4),
                receives::flush)) {
            assertThat(catching(use)).isInstanceOf(IllegalStateException.class);
        }
        sends.signalLast();
        assertThat(sends.stagedWrs()).isZero();
    }

    private static RuntimeException catching(Runnable use) {
        try {
            use.run();
        } catch (RuntimeException refused) {
            return refused;
        }
        throw new AssertionError("was not refused");
    }

    private VerbsObject make(Class<?> type) {
        Context context = probe.keep(Verbs.device("stub0").open());
        if (type == Context.class) {
            return context;
        }
        ProtectionDomain domain = probe.keep(context.allocateProtectionDomain());
        if (type == ProtectionDomain.class) {
            return domain;
        } else if (type == MemoryRegion.class) {
            return probe.keep(domain.registerMemory(arena.allocate(64), WRITE));
        } else if (type == MemoryWindow.class) {
            return probe.keep(domain.allocateMemoryWindow(WindowType.TYPE_2));
        } else if (type == DeviceMemory.class) {
            return probe.keep(context.allocateDeviceMemory(64, 0));
        } else if (type == SharedReceiveQueue.class) {
            return probe.keep(domain.createSharedReceiveQueue(8, 1));
        } else if (type == ThreadDomain.class) {
            return probe.keep(context.allocateThreadDomain());
        } else if (type == XrcDomain.class) {
            return probe.keep(context.openXrcDomain());
        }
        CompletionChannel channel = probe.keep(context.createCompletionChannel());
        if (type == CompletionChannel.class) {
            return channel;
        }
        CompletionQueue completions = probe.keep(context.createCompletionQueue(8, channel, 0));
        if (type == CompletionQueue.class) {
            return completions;
        } else if (type == QueuePair.class) {
            return probe.keep(domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES)));
        }
        return null;
    }
}
