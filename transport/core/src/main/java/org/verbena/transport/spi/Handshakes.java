package org.verbena.transport.spi;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A server's connections whose peers have not introduced themselves completely, oldest first, and how many of them each
 * address has. Not thread-safe.
 *
 * @param <C> a connection, by identity
 */
public final class Handshakes<C> {
    private final Map<C, Long> networks = new LinkedHashMap<>();
    private final Map<Long, Integer> perNetwork = new HashMap<>();

    /** Makes an empty one. */
    public Handshakes() {}

    /**
     * How many there are.
     *
     * @return 0 or more
     */
    public int size() {
        return networks.size();
    }

    /**
     * Whether a connection is among them.
     *
     * @param connection any
     * @return whether it was added and not removed
     */
    public boolean contains(C connection) {
        return networks.containsKey(connection);
    }

    /**
     * The oldest of some.
     *
     * @param which of them
     * @return null if there is none
     */
    public @Nullable C oldest(Predicate<? super C> which) {
        for (C connection : networks.keySet()) {
            if (which.test(connection)) {
                return connection;
            }
        }
        return null;
    }

    /**
     * The connection that makes room for a newcomer: the oldest of its address if that has its share already, otherwise
     * the oldest of all.
     *
     * @param network of the newcomer, by {@link PeerAddress}
     * @param share how many an address may have while others wait
     * @return null if there is none
     */
    public @Nullable C victimFor(long network, int share) {
        boolean hasShare = perNetwork.getOrDefault(network, 0) >= share;
        for (Map.Entry<C, Long> each : networks.entrySet()) {
            if (!hasShare || each.getValue() == network) {
                return each.getKey();
            }
        }
        return null;
    }

    /**
     * Adds the newest.
     *
     * @param connection not among them
     * @param network of its peer, by {@link PeerAddress}
     */
    public void add(C connection, long network) {
        networks.put(connection, network);
        perNetwork.merge(network, 1, Integer::sum);
    }

    /**
     * Removes one. Idempotent.
     *
     * @param connection its peer has introduced itself, or it has ended
     */
    public void remove(C connection) {
        Long network = networks.remove(connection);
        if (network != null) {
            perNetwork.computeIfPresent(network, (key, count) -> count == 1 ? null : count - 1);
        }
    }
}
