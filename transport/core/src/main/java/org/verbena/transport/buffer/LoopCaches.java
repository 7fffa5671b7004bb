package org.verbena.transport.buffer;

import io.netty.util.concurrent.FastThreadLocal;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** The caches of one thread: one for each pool that its event loop is attached to. */
final class LoopCaches {
    private static final LoopCache[] NONE = {};

    private static final FastThreadLocal<LoopCaches> OF_THREAD = new FastThreadLocal<>() {
        @Override
        protected LoopCaches initialValue() {
            return new LoopCaches();
        }

        @Override
        protected void onRemoval(LoopCaches ending) {
            // The thread of the event loop ends.
            for (LoopCache cache : ending.caches) {
                cache.detach();
            }
        }
    };

    private LoopCache[] caches = NONE;

    private LoopCaches() {}

    /** The calling thread's cache for a pool, or null if it has none. */
    static @Nullable LoopCache of(RegisteredBufferPool pool) {
        LoopCaches mine = OF_THREAD.getIfExists();
        if (mine != null) {
            for (LoopCache cache : mine.caches) {
                if (cache.pool == pool) {
                    return cache;
                }
            }
        }
        return null;
    }

    static void add(LoopCache cache) {
        LoopCaches mine = OF_THREAD.get();
        LoopCache[] more = Arrays.copyOf(mine.caches, mine.caches.length + 1);
        more[more.length - 1] = cache;
        mine.caches = more;
    }

    static void forget(LoopCache cache) {
        LoopCaches mine = OF_THREAD.getIfExists();
        if (mine != null) {
            mine.caches =
                    Arrays.stream(mine.caches).filter(other -> other != cache).toArray(LoopCache[]::new);
        }
    }
}
