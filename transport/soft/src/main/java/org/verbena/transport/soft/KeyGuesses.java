package org.verbena.transport.soft;

import java.net.InetAddress;
import java.util.LinkedHashMap;
import java.util.Map;
import org.verbena.transport.spi.PeerAddress;

/**
 * Slows down peers that guess keys. A wrong key costs a peer its connection; here it also costs its address time: the
 * first few cost nothing, then new connections of that address are let through one at a time. It is a leaky bucket for
 * each address, kept as the time at which it will be empty. Any thread.
 *
 * <pre>{@code
 * now              free until here                 empty at
 *  |----------------------|---------------------------|
 *                         <----- what a newcomer waits, and pushes further ----->
 * }</pre>
 */
final class KeyGuesses {
    /**
     * The number of wrong keys of an address that cost nothing, for programs with bugs and many clients behind one
     * address.
     */
    static final int FREE = 64;

    /** The number of addresses that are remembered. An attacker with more of them is not slowed down by this. */
    static final int MAX_ADDRESSES = 4096;

    private static final int NANOS_PER_SECOND = 1_000_000_000;

    private final long nanosEach;
    private final long maxNanos;

    /** When each address's bucket is empty; the one that was touched longest ago first. */
    private final Map<Long, Long> emptyAt = new LinkedHashMap<>(16, 0.75f, true) {
        @java.io.Serial
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Long> eldest) {
            return size() > MAX_ADDRESSES;
        }
    };

    /**
     * Creates the buckets, all empty.
     *
     * @param perSecond wrong keys of an address that are tolerated in the long run; 0 for no limit
     * @param maxNanos the longest wait of a new connection, which is rejected if it would have to wait longer
     */
    KeyGuesses(int perSecond, long maxNanos) {
        this.maxNanos = maxNanos;
        nanosEach = perSecond == 0 ? 0 : NANOS_PER_SECOND / perSecond;
    }

    /**
     * An address used a key that is not valid for it.
     *
     * @param from the peer
     * @param nowNanos of {@link System#nanoTime()}
     */
    synchronized void refused(InetAddress from, long nowNanos) {
        if (nanosEach > 0) {
            Long network = PeerAddress.networkOf(from);
            // Debt beyond the longest wait makes no difference.
            long max = nowNanos + FREE * nanosEach + maxNanos + nanosEach;
            emptyAt.put(network, Math.min(max, laterOf(emptyAt.get(network), nowNanos) + nanosEach));
        }
    }

    /**
     * Asks when a new connection may continue. One that has to wait makes the next one wait longer.
     *
     * @param from the peer
     * @param nowNanos of {@link System#nanoTime()}
     * @return how long to wait, 0 for not at all; -1 to be rejected
     */
    synchronized long waitNanos(InetAddress from, long nowNanos) {
        if (emptyAt.isEmpty()) {
            return 0;
        }
        Long network = PeerAddress.networkOf(from);
        Long empty = emptyAt.get(network);
        if (empty == null) {
            return 0;
        }
        if (empty - nowNanos <= 0) {
            emptyAt.remove(network);
            return 0;
        }
        long wait = empty - nowNanos - FREE * nanosEach;
        if (wait <= 0) {
            return 0;
        }
        if (wait > maxNanos) {
            return -1;
        }
        emptyAt.put(network, empty + nanosEach);
        return wait;
    }

    /** Addresses that are remembered now. */
    synchronized int addresses() {
        return emptyAt.size();
    }

    private static long laterOf(@org.jspecify.annotations.Nullable Long then, long nowNanos) {
        return then == null || then - nowNanos < 0 ? nowNanos : then;
    }
}
