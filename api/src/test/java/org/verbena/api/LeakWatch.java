package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.util.ResourceLeakDetector;
import io.netty.util.ResourceLeakDetectorFactory;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.verbena.transport.spi.Patience;

/**
 * Remembers every buffer that was dropped without being released. It has to be started before the first buffer is made.
 */
public final class LeakWatch {
    private static final List<String> LEAKS = new CopyOnWriteArrayList<>();

    static {
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
        ResourceLeakDetectorFactory.setResourceLeakDetectorFactory(new ResourceLeakDetectorFactory() {
            @Override
            @SuppressWarnings("deprecation")
            public <T> ResourceLeakDetector<T> newResourceLeakDetector(
                    Class<T> resource, int samplingInterval, long maxActive) {
                return watched(resource, samplingInterval);
            }

            @Override
            public <T> ResourceLeakDetector<T> newResourceLeakDetector(Class<T> resource, int samplingInterval) {
                return watched(resource, samplingInterval);
            }
        });
    }

    private static <T> ResourceLeakDetector<T> watched(Class<T> resource, int samplingInterval) {
        ResourceLeakDetector<T> detector = new ResourceLeakDetector<>(resource, samplingInterval) {
            @Override
            protected boolean needReport() {
                return true;
            }

            @Override
            protected void reportTracedLeak(String resourceType, String records) {
                LEAKS.add(resourceType + records);
            }

            @Override
            protected void reportUntracedLeak(String resourceType) {
                LEAKS.add(resourceType);
            }
        };
        return detector;
    }

    private LeakWatch() {}

    /** Starts it, by being called. */
    public static void start() {}

    /** How many leaks have been found so far. */
    public static int count() {
        return LEAKS.size();
    }

    /**
     * Collects garbage, and what has leaked.
     *
     * @param known leaks that had been found before
     * @return the others
     */
    public static List<String> leaksSince(int known) {
        ReferenceQueue<Object> collected = new ReferenceQueue<>();
        WeakReference<Object> garbage = new WeakReference<>(new Object(), collected);
        try {
            System.gc();
            // What was garbage before has been found, too, when this has been.
            assertThat(collected.remove(Patience.LIMIT.toMillis())).isSameAs(garbage);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted while collecting garbage", interrupted);
        }
        UnpooledByteBufAllocator.DEFAULT.buffer(1).release(); // a detector reports when the next buffer is made
        return LEAKS.subList(known, LEAKS.size());
    }
}
