package org.verbena.api;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.verbena.api.internal.request.ShortForm;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderSet;

/**
 * Event loops that the clients of this process share. They are made for the first client of their providers, and end
 * with the last. Any thread.
 */
final class SharedLoops {
    /** More than one loop does for most clients, and few enough threads for any process. */
    static final int THREADS = Math.clamp(Runtime.getRuntime().availableProcessors(), 1, 4);

    /**
     * Clients with the same key have the same loops.
     *
     * @param providers their names
     * @param options how the loops poll and block
     */
    private record Key(String providers, CompletionLoopOptions options) {}

    private static final Map<Key, SharedLoops> OPEN = new HashMap<>();

    private final Key key;
    private final RdmaEventLoopGroup group;

    /** Guarded by the map. */
    private int clients;

    private SharedLoops(Key key, ProviderSet providers) {
        this.key = key;
        group = new RdmaEventLoopGroup(providers, THREADS, null, key.options());
    }

    /** Enters a client, which leaves once. */
    static SharedLoops enter(ProviderSet providers, CompletionLoopOptions options) {
        Key key = new Key(providers.names(), options);
        synchronized (OPEN) {
            SharedLoops loops = OPEN.get(key);
            if (loops == null || loops.group.isShuttingDown()) {
                loops = new SharedLoops(key, providers);
                OPEN.put(key, loops);
            }
            loops.clients++;
            return loops;
        }
    }

    RdmaEventLoopGroup group() {
        return group;
    }

    /** A client leaves. Done when the loops have ended, if it was the last. */
    CompletableFuture<Void> leave() {
        synchronized (OPEN) {
            clients--;
            if (clients > 0) {
                return CompletableFuture.completedFuture(null);
            }
            OPEN.remove(key, this);
        }
        return ShortForm.done(group.shutdownGracefully(0, ShortForm.CLOSE_MILLIS, TimeUnit.MILLISECONDS));
    }
}
