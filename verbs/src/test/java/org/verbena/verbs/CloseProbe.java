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
import java.util.Arrays;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Function;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.queue.EnhancedConnection;
import org.verbena.verbs.queue.QueuePairState;

/**
 * Closes objects while the stub holds a call about them: each public method of each type in turn. The close has to be
 * refused.
 */
public final class CloseProbe {
    private final Arena arena;
    private final Map<Class<?>, Set<String>> dataPath;
    private final Map<Class<?>, Object> arguments;
    private final Deque<VerbsObject> opened = new ArrayDeque<>();

    /**
     * Begins.
     *
     * @param arena owns the memory of arguments
     * @param dataPath methods that belong to the thread that closes, as their documentation says
     * @param arguments what to pass for parameters of types that are not known here
     */
    public CloseProbe(Arena arena, Map<Class<?>, Set<String>> dataPath, Map<Class<?>, Object> arguments) {
        this.arena = arena;
        this.dataPath = dataPath;
        this.arguments = arguments;
    }

    /**
     * Tries all methods.
     *
     * @param types whose
     * @param maker makes an object of a type, with {@link #keep} for all that it makes; null where there is none to try
     * @return the methods that reach C, as {@code Type.method}
     */
    public Set<String> heldCalls(List<Class<?>> types, Function<Class<?>, VerbsObject> maker) throws Exception {
        Map<String, String> closedMeanwhile = new TreeMap<>();
        Set<String> held = new TreeSet<>();
        for (Class<?> type : types) {
            for (Method method : callsOf(type)) {
                VerbsObject target = maker.apply(type);
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
        return held;
    }

    /** What close() said while the call was held in C; null if the call did not come to C. */
    private String closeDuring(VerbsObject target, Method method) throws Exception {
        Object[] given = Arrays.stream(method.getParameterTypes())
                .map(type -> argument(type, target))
                .toArray();
        AtomicBoolean ended = new AtomicBoolean();
        FutureTask<Object> call = new FutureTask<>(() -> {
            try {
                return method.invoke(target, given);
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

    private List<Method> callsOf(Class<?> type) {
        return Arrays.stream(type.getDeclaredMethods())
                .filter(method -> Modifier.isPublic(method.getModifiers()) && !Modifier.isStatic(method.getModifiers()))
                .filter(method -> !method.isSynthetic() && !method.getName().equals("toString"))
                .filter(method -> !dataPath.getOrDefault(type, Set.of()).contains(method.getName()))
                .sorted(Comparator.comparing(Method::toGenericString))
                .toList();
    }

    /** Closes it with the others. */
    public <T extends VerbsObject> T keep(T object) {
        opened.push(object);
        return object;
    }

    /** Closes what is kept, last things first. */
    public void closeAll() {
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
        return arguments.get(type); // null is refused with a NullPointerException before C is called, or optional
    }
}
