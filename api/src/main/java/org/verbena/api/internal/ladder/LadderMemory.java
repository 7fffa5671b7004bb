package org.verbena.api.internal.ladder;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * What ladders remember about addresses: which rungs were passed over, and which one was used last. Any thread; used
 * when clients connect.
 */
public final class LadderMemory {
    /** Enough for the servers of a large fleet; the least recently used address makes room. */
    public static final int MAX_ADDRESSES = 1024;

    /** Shared by all clients of the process. */
    public static final LadderMemory OF_PROCESS = new LadderMemory(System::nanoTime);

    private final LongSupplier nanoTime;

    /** Guarded by this. */
    private final Map<InetSocketAddress, Known> byAddress = new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<InetSocketAddress, Known> eldest) {
            return size() > MAX_ADDRESSES;
        }
    };

    /** An address. Its rungs are as many as the program's ladders have. */
    private static final class Known {
        final Map<String, Failure> failures = new HashMap<>();

        @Nullable String used;
    }

    /** Why a rung was passed over, and when. */
    private record Failure(String reason, long beganNanos, long lengthNanos) {}

    public LadderMemory(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    /** Why a rung is to be tried last; null if it is to be tried in its turn. */
    public synchronized @Nullable String failure(InetSocketAddress address, String rung) {
        Known known = byAddress.get(address);
        Failure failure = known == null ? null : known.failures.get(rung);
        if (known == null || failure == null) {
            return null;
        }
        long ageNanos = nanoTime.getAsLong() - failure.beganNanos;
        if (ageNanos >= failure.lengthNanos) {
            known.failures.remove(rung);
            return null;
        }
        return "passed over " + Duration.ofNanos(ageNanos).toSeconds() + " s ago: " + failure.reason;
    }

    /** A rung was passed over, and a lower one was used. */
    public synchronized void failed(InetSocketAddress address, String rung, String reason, long lengthNanos) {
        if (lengthNanos > 0) {
            byAddress
                    .computeIfAbsent(address, unknown -> new Known())
                    .failures
                    .put(rung, new Failure(reason, nanoTime.getAsLong(), lengthNanos));
        }
    }

    /** A rung is used. Returns whether it differs from the last one. */
    synchronized boolean used(InetSocketAddress address, String rung) {
        Known known = byAddress.computeIfAbsent(address, unknown -> new Known());
        known.failures.remove(rung);
        boolean changed = !rung.equals(known.used);
        known.used = rung;
        return changed;
    }

    /** How many addresses it has. */
    public synchronized int size() {
        return byAddress.size();
    }
}
