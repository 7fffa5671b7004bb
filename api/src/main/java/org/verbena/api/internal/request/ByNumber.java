package org.verbena.api.internal.request;

import io.netty.util.collection.LongObjectHashMap;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Requests by their numbers. These follow each other, and Netty's map keeps such keys side by side: to remove one it
 * would look at all behind it. So the keys are spread here. Not thread-safe.
 */
final class ByNumber<R> {
    /** Odd, so that no two numbers have one key; 2^64 divided by the golden ratio, which spreads numbers in a row. */
    private static final long SPREAD = 0x9e37_79b9_7f4a_7c15L;

    private final LongObjectHashMap<R> requests = new LongObjectHashMap<>();

    @Nullable R get(long number) {
        return requests.get(number * SPREAD);
    }

    void put(long number, R request) {
        requests.put(number * SPREAD, request);
    }

    void remove(long number) {
        requests.remove(number * SPREAD);
    }

    int size() {
        return requests.size();
    }

    boolean isEmpty() {
        return requests.isEmpty();
    }

    /** A copy. */
    List<R> all() {
        return new ArrayList<>(requests.values());
    }

    Iterable<R> each() {
        return requests.values();
    }
}
