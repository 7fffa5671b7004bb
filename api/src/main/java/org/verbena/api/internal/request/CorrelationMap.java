package org.verbena.api.internal.request;

import io.netty.util.collection.LongObjectHashMap;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.spi.Secrets;

/**
 * Requests by their numbers. Netty's map keeps numbers that follow each other side by side: to remove one it would look
 * at all behind it. And the peer chooses the numbers of its requests: many that share a place would make each step as
 * slow. So the numbers are mixed here, in a way that no peer can know. Not thread-safe.
 */
final class CorrelationMap<R> {
    // Odd, so that no two numbers have one key.
    private final long first = Secrets.nextLong() | 1;
    private final long second = Secrets.nextLong() | 1;

    private final LongObjectHashMap<R> requests = new LongObjectHashMap<>();

    @Nullable R get(long number) {
        return requests.get(key(number));
    }

    void put(long number, R request) {
        requests.put(key(number), request);
    }

    @Nullable R remove(long number) {
        return requests.remove(key(number));
    }

    /**
     * A product's high bits depend on all of the number, its low bits do not: so they are folded into the low ones, and
     * once more, since for some multipliers the second product spreads multiples of a power of two badly.
     */
    long key(long number) {
        long product = number * first;
        long next = (product ^ product >>> 32) * second;
        return (next ^ next >>> 29) * first;
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
