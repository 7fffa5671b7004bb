package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.InfinibandAddress;
import org.verbena.cm.PortSpace;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.queue.EnhancedConnection;

/**
 * No call about an id or a channel is under way in C while it is closed: every public method takes the channel's lock,
 * under which ids and channels are closed, and looks whether the id is open only then.
 */
@Timeout(240)
class CmCallsTest {
    /** What needs no C: fields that are written once or volatile. */
    private static final Set<String> WITHOUT_C = Set.of(
            "CmId.attach",
            "CmId.attachment",
            "CmId.channel",
            "CmId.isClosed",
            "CmId.isDatagram",
            "CmId.portSpace",
            "CmId.toString",
            "EventChannel.descriptor",
            "EventChannel.isClosed",
            "EventChannel.toString");

    @BeforeEach
    void installStub() throws Exception {
        StubDevice.install();
    }

    @Test
    void everyCallHoldsItsId() throws Exception {
        Set<String> free = new TreeSet<>();
        Map<String, Object> answered = new TreeMap<>();
        for (Class<?> type : List.of(CmId.class, EventChannel.class)) {
            for (Method method : callsOf(type)) {
                String name = type.getSimpleName() + "." + method.getName();
                Object outcome = closeDuring(type, method);
                if (outcome == null) {
                    free.add(name);
                } else if (!(outcome instanceof IllegalStateException)) {
                    answered.put(method.toString(), outcome);
                }
            }
        }
        assertThat(free).isEqualTo(new TreeSet<>(WITHOUT_C));
        // Reading what is in Java of a closed id is no danger.
        assertThat(answered)
                .allSatisfy((method, outcome) -> assertThat(
                                method.contains("queuePair()") || outcome instanceof NullPointerException)
                        .as("%s is refused once closed, and not answered with %s", method, outcome)
                        .isTrue());
    }

    /**
     * What the call ended with if the id and the channel were closed while it waited for the lock, or if it refused
     * null before that; null for another that did not wait.
     */
    private static Object closeDuring(Class<?> type, Method method) throws Exception {
        EventChannel channel = EventChannel.open();
        EventChannel other = EventChannel.open();
        CmId id = CmId.create(channel, PortSpace.TCP);
        Object target = type == CmId.class ? id : channel;
        Object[] arguments = Arrays.stream(method.getParameterTypes())
                .map(one -> argument(one, other))
                .toArray();
        Field field = EventChannel.class.getDeclaredField("lock");
        field.setAccessible(true);
        ReentrantLock lock = (ReentrantLock) field.get(channel);
        FutureTask<Object> call = new FutureTask<>(() -> {
            try {
                return Objects.requireNonNullElse(method.invoke(target, arguments), "null");
            } catch (InvocationTargetException refused) {
                return refused.getCause();
            }
        });
        Thread caller = Thread.ofPlatform().daemon().unstarted(call);
        boolean waited;
        lock.lock();
        try {
            caller.start();
            while (!call.isDone() && !lock.hasQueuedThread(caller)) {
                Thread.onSpinWait();
            }
            waited = !call.isDone();
            id.close();
            if (type == EventChannel.class) {
                channel.close();
            }
        } finally {
            lock.unlock();
        }
        Object outcome = call.get(Patience.LIMIT.toMillis(), TimeUnit.MILLISECONDS);
        channel.close();
        other.close();
        return waited || outcome instanceof NullPointerException ? outcome : null;
    }

    private static List<Method> callsOf(Class<?> type) {
        return Arrays.stream(type.getDeclaredMethods())
                .filter(method -> Modifier.isPublic(method.getModifiers()) && !Modifier.isStatic(method.getModifiers()))
                .filter(method -> !method.isSynthetic() && !method.getName().equals("close"))
                .sorted(Comparator.comparing(Method::toGenericString))
                .toList();
    }

    private static Object argument(Class<?> type, EventChannel other) {
        if (type == int.class) {
            return 1;
        } else if (type == long.class) {
            return 1000L;
        } else if (type == boolean.class) {
            return false;
        } else if (type == byte[].class) {
            return new byte[1];
        } else if (type == SocketAddress.class || type == InetSocketAddress.class) {
            return StubDevice.ROCE;
        } else if (type == InfinibandAddress.class) {
            return InfinibandAddress.ofPort(Gid.ZERO, PortSpace.IB, 1);
        } else if (type == ConnectionParameters.class) {
            return ConnectionParameters.DEFAULT;
        } else if (type == EnhancedConnection.class) {
            return new EnhancedConnection(1, 2);
        } else if (type == EventChannel.class) {
            return other;
        } else if (type.isEnum()) {
            return type.getEnumConstants()[0];
        } else if (type == Object.class) {
            return "attached";
        }
        return null; // the id has no device: refused before it is looked at
    }
}
