package org.verbena.transport.protocol.state;

import io.netty.util.concurrent.FastThreadLocal;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * Objects that were used once, for whichever connection of an event loop needs one next: what a burst on one connection
 * needed serves the others, and a connection at rest keeps none. Confined to the loop.
 *
 * @param <T> of what kind
 */
public final class FreeList<T> {
    /** So many are in use at once where 32 connections have 64 messages under way, and they have 330 KB. */
    static final int MAX = 2048;

    private final ArrayDeque<T> free = new ArrayDeque<>();

    private FreeList() {}

    /** A list for each loop. */
    public static <T> FastThreadLocal<FreeList<T>> perLoop() {
        return new FastThreadLocal<>() {
            @Override
            protected FreeList<T> initialValue() {
                return new FreeList<>();
            }
        };
    }

    /** The one that was added last; null if there is none. */
    public @Nullable T poll() {
        return free.pollLast();
    }

    /** Adds one that is as good as new; with enough of them it is dropped. */
    public void add(T one) {
        if (free.size() < MAX) {
            free.addLast(one);
        }
    }
}
