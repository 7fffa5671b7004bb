package org.verbena.it.steps;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jdi.Method;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * How many methods of Verbena a message of 64 bytes enters, in how many classes, and how many buffers of a pool and
 * copies it takes: bounds that may only fall. Nothing else says as early that the way of a message has become longer.
 */
@Timeout(180)
class StepsTest {
    /** Whatever else the loops have to do meanwhile is in few of so many walks. */
    private static final int WALKS = 20;

    private static final String VERBENA = "org.verbena.";
    private static final String POOL = "org.verbena.transport.buffer.RegisteredBufferPool";
    private static final String HEAP = "io.netty.buffer.UnpooledHeapByteBuf";

    /** Where bytes of a message are copied from or to. */
    private static final Set<String> BUFFERS = Set.of("org.verbena.transport.buffer.RegisteredByteBuf", HEAP);

    private static final Set<String> COPIES = Set.of("getBytes", "setBytes", "write");

    /** What is sent, and the bounds: a tenth more than was counted, for what a loop asks as it begins to spin. */
    private enum Way {
        /** {@code RdmaClient.request(byte[])} and its reply, at both ends. */
        REQUEST_ON_SHM("request", "shm", new Steps(1200, 104, 2, 8), new Steps(650, 50, 2, 6)),
        REQUEST_ON_SOFT("request", "soft", new Steps(1250, 104, 2, 8), new Steps(650, 50, 2, 6)),
        /** One message one way, claimed, until the peer's pipeline has it. */
        CLAIM_ON_SHM("claim", "shm", new Steps(600, 78, 2, 2), new Steps(70, 50, 1, 1)),
        CLAIM_ON_SOFT("claim", "soft", new Steps(640, 78, 2, 2), new Steps(70, 50, 1, 1));

        private final String what;
        private final String provider;
        private final Steps bound;
        private final Steps aim;

        Way(String what, String provider, Steps bound, Steps aim) {
            this.what = what;
            this.provider = provider;
            this.bound = bound;
            this.aim = aim;
        }
    }

    /** How many methods were entered, of how many classes, and how many buffers and copies were taken. */
    private record Steps(int entries, int classes, int pooled, int copies) {
        static Steps of(List<Method> walk) {
            Set<String> classes = new HashSet<>();
            int entries = 0;
            int pooled = 0;
            int copies = 0;
            for (Method method : walk) {
                String in = method.declaringType().name();
                if (BUFFERS.contains(in) && COPIES.contains(method.name())) {
                    copies++;
                }
                if (in.startsWith(VERBENA)) {
                    entries++;
                    classes.add(file(method));
                    pooled += in.equals(POOL) && method.name().equals("tryAllocate") ? 1 : 0;
                }
            }
            return new Steps(entries, classes.size(), pooled, copies);
        }

        Steps min(Steps other) {
            return new Steps(
                    Math.min(entries, other.entries),
                    Math.min(classes, other.classes),
                    Math.min(pooled, other.pooled),
                    Math.min(copies, other.copies));
        }

        boolean isWithin(Steps bound) {
            return min(bound).equals(this);
        }
    }

    /** What loops enter that have nothing to do: each time, since a timer may run by chance. */
    private static Set<Method> polling(MethodEntries program) throws InterruptedException {
        Set<Method> polling = new HashSet<>(walk(program, Set.of()));
        for (int i = 1; i < Walk.IDLE; i++) {
            polling.retainAll(Set.copyOf(walk(program, Set.of())));
        }
        return polling;
    }

    /** What all threads have entered, without the methods of loops that only poll. */
    private static List<Method> walk(MethodEntries program, Set<Method> polling) throws InterruptedException {
        return program.next().stream()
                .flatMap(List::stream)
                .filter(method -> !polling.contains(method))
                .toList();
    }

    /** The outermost class. */
    private static String file(Method method) {
        return method.declaringType().name().replaceFirst("\\$.*", "");
    }

    private static Map<String, Integer> byLayer(List<Method> walk) {
        Map<String, Integer> layers = new TreeMap<>();
        for (Method method : walk) {
            String in = file(method);
            if (in.startsWith(VERBENA)) {
                layers.merge(in.substring(VERBENA.length(), in.lastIndexOf('.')), 1, Integer::sum);
            }
        }
        return layers;
    }

    @ParameterizedTest
    @EnumSource
    void aMessageTakesNoMoreSteps(Way way) throws Exception {
        try (MethodEntries program =
                MethodEntries.of(Walk.class, List.of(way.what, way.provider), VERBENA + "*", HEAP)) {
            Set<Method> polling = polling(program);
            List<Method> walk = walk(program, polling);
            Steps best = Steps.of(walk);
            for (int i = 1; i < WALKS && !best.isWithin(way.bound); i++) {
                walk = walk(program, polling);
                best = best.min(Steps.of(walk));
            }
            System.out.println(way + ": " + best + ", at most " + way.bound + ", aim " + way.aim);
            System.out.println("by package: " + byLayer(walk));
            assertThat(best.isWithin(way.bound))
                    .as("%s is within %s", best, way.bound)
                    .isTrue();
        }
    }
}
