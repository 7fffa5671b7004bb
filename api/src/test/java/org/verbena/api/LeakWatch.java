package org.verbena.api;

import io.netty.util.ResourceLeakDetector;
import io.netty.util.ResourceLeakDetectorFactory;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** Remembers every buffer that was dropped without being released. It has to be started before the first buffer is made. */
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

    /** What has leaked. */
    public static List<String> leaks() {
        return LEAKS;
    }
}
