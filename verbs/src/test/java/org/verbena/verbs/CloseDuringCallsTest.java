package org.verbena.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.memory.WindowType;
import org.verbena.verbs.queue.EnhancedConnection;
import org.verbena.verbs.queue.QueuePairState;

/**
 * No call about an object is under way in C while the object is closed. The stub holds each call in turn, another thread
 * closes the object meanwhile, and has to be refused.
 */
@Timeout(240)
class CloseDuringCallsTest {
    private static final Set<AccessFlag> WRITE = EnumSet.of(AccessFlag.LOCAL_WRITE);
    private static final QueuePairCapabilities SIZES = new QueuePairCapabilities(4, 4, 2, 2, 16);

    /** Posting and polling: of the thread that closes, as their documentation says. */
    private static final Map<Class<?>, Set<String>> DATA_PATH = Map.of(
            CompletionQueue.class, Set.of("poll", "requestNotify"),
            CompletionChannel.class, Set.of("takeEvent"),
            MemoryWindow.class, Set.of("bind"));

    private final Arena arena = Arena.ofShared();
    private final Deque<VerbsObject> opened = new ArrayDeque<>();

    @BeforeEach
    void installStub() throws Exception {
        Stub.install();
    }

    @AfterEach
    void nothingLeaks() {
        Stub.call("stub_pause", 0);
        closeAll();
        arena.close();
        assertThat(Stub.live()).isZero();
    }

    @Test
    void everyCallKeepsItsObjectOpen() throws Exception {
        Map<String, String> closedMeanwhile = new TreeMap<>();
        Set<String> held = new TreeSet<>();
        for (Class<?> type : types()) {
            for (Method method : callsOf(type)) {
                VerbsObject target = make(type);
                if (target != null) {
                    String name = type.getSimpleName() + "." + method.getName();
                    String outcome = closeDuring(target, method);
                    if (outcome == null) {
                        continue; // the call reaches no C
                    }
                    held.add(name);
                    if (!outcome.contains("in use by calls")) {
                        closedMeanwhile.put(name, outcome);
                    }
                }
                closeAll();
            }
        }
        assertThat(closedMeanwhile).isEmpty();
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
        for (WorkQueue queue : List.of(queuePair.sendQueue(), queuePair.receiveQueue())) {
            assertThat(queue.memory.scope()).isEqualTo(Arena.global().scope());
        }
        for (Class<?> type : List.of(WorkQueue.class, WorkRequestBuilder.class, QueuePair.class)) {
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
                () -> receives.uncheckedPiece(data.address(), 8, 0),
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

    /** What close() said while the call was held in C; null if the call did not come to C. */
    private String closeDuring(VerbsObject target, Method method) throws Exception {
        Object[] arguments = Arrays.stream(method.getParameterTypes())
                .map(type -> argument(type, target))
                .toArray();
        AtomicBoolean ended = new AtomicBoolean();
        FutureTask<Object> call = new FutureTask<>(() -> {
            try {
                return method.invoke(target, arguments);
            } catch (InvocationTargetException refused) {
                return refused.getCause();
            } finally {
                ended.set(true);
            }
        });
        Stub.call("stub_pause", 1);
        start(call);
        while (Stub.call("stub_paused") == 0 && !ended.get()) {
            Thread.onSpinWait();
        }
        String outcome = null;
        if (Stub.call("stub_paused") > 0) {
            FutureTask<String> close = new FutureTask<>(() -> {
                try {
                    target.close();
                    return "closed";
                } catch (IllegalStateException refused) {
                    return String.valueOf(refused.getMessage());
                }
            });
            start(close);
            while (!close.isDone() && Stub.call("stub_paused") < 2) {
                Thread.onSpinWait();
            }
            outcome = close.isDone() ? close.get() : "destroys the object meanwhile";
            Stub.call("stub_pause", 0);
            close.get();
        }
        Stub.call("stub_pause", 0);
        if (call.get() instanceof VerbsObject made && !opened.contains(made)) {
            opened.push(made);
        }
        return outcome;
    }

    private static void start(FutureTask<?> task) {
        Thread.ofPlatform().daemon().start(task);
    }

    private static List<Class<?>> types() {
        List<Class<?>> types = new ArrayList<>(List.of(VerbsObject.class.getPermittedSubclasses()));
        types.addAll(List.of(
                Flow.class, FlowAction.class, Counters.class, ReceiveWorkQueue.class, IndirectionTable.class));
        return types;
    }

    private static List<Method> callsOf(Class<?> type) {
        return Arrays.stream(type.getDeclaredMethods())
                .filter(method -> Modifier.isPublic(method.getModifiers()) && !Modifier.isStatic(method.getModifiers()))
                .filter(method -> !method.isSynthetic() && !method.getName().equals("toString"))
                .filter(method -> !DATA_PATH.getOrDefault(type, Set.of()).contains(method.getName()))
                .sorted(Comparator.comparing(Method::toGenericString))
                .toList();
    }

    private VerbsObject make(Class<?> type) {
        Context context = keep(Verbs.device("stub0").open());
        if (type == Context.class) {
            return context;
        }
        ProtectionDomain domain = keep(context.allocateProtectionDomain());
        if (type == ProtectionDomain.class) {
            return domain;
        } else if (type == MemoryRegion.class) {
            return keep(domain.registerMemory(arena.allocate(64), WRITE));
        } else if (type == MemoryWindow.class) {
            return keep(domain.allocateMemoryWindow(WindowType.TYPE_2));
        } else if (type == DeviceMemory.class) {
            return keep(context.allocateDeviceMemory(64, 0));
        } else if (type == SharedReceiveQueue.class) {
            return keep(domain.createSharedReceiveQueue(8, 1));
        } else if (type == ThreadDomain.class) {
            return keep(context.allocateThreadDomain());
        } else if (type == XrcDomain.class) {
            return keep(context.openXrcDomain());
        }
        CompletionChannel channel = keep(context.createCompletionChannel());
        if (type == CompletionChannel.class) {
            return channel;
        }
        CompletionQueue completions = keep(context.createCompletionQueue(8, channel, 0));
        if (type == CompletionQueue.class) {
            return completions;
        } else if (type == QueuePair.class) {
            return keep(domain.createQueuePair(QueuePairOptions.reliable(completions, SIZES)));
        } else if (type == ReceiveWorkQueue.class) {
            return keep(ReceiveWorkQueue.create(domain, 3, 1, completions, Set.of()));
        } else if (type == Counters.class) {
            return keep(Counters.create(context));
        }
        return null;
    }

    private <T extends VerbsObject> T keep(T object) {
        opened.push(object);
        return object;
    }

    private void closeAll() {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }

    private Object argument(Class<?> type, VerbsObject target) {
        if (type == int.class) {
            return 1;
        } else if (type == long.class) {
            return 0L;
        } else if (type == boolean.class) {
            return false;
        } else if (type == MemorySegment.class) {
            return arena.allocate(64);
        } else if (type == Set.class) {
            return Set.of();
        } else if (type == Gid.class) {
            return new Gid(1, 2);
        } else if (type == Duration.class) {
            return Duration.ZERO;
        } else if (type == Consumer.class) {
            return (Consumer<Object>) event -> {};
        } else if (type == Path.class) {
            return Path.of("/dev/null");
        } else if (type == QueuePairAttributes.class) {
            return QueuePairAttributes.to(QueuePairState.RESET).build();
        } else if (type == EnhancedConnection.class) {
            return new EnhancedConnection(1, 2);
        } else if (type.isEnum()) {
            return type.getEnumConstants()[0];
        } else if (type.isArray()) {
            return java.lang.reflect.Array.newInstance(type.componentType(), 0);
        }
        return null; // refused with a NullPointerException before C is called, or optional
    }
}
