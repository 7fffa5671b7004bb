package org.verbena.transport.soft;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A listener's connections whose request is not complete, oldest first, and how many of them each address has. One thread: the loop's. */
final class Handshakes {
    private @Nullable PendingConnection oldest;
    private @Nullable PendingConnection newest;
    private final Map<Long, Integer> perNetwork = new HashMap<>();
    private int size;

    int size() {
        return size;
    }

    /** The oldest; null if there is none. */
    @Nullable PendingConnection oldest() {
        return oldest;
    }

    /**
     * The number of connections of an address.
     *
     * @param network of {@link PeerAddress}
     * @return 0 or more
     */
    int countOf(long network) {
        return perNetwork.getOrDefault(network, 0);
    }

    /**
     * The connection that makes room for a newcomer: the oldest of its address if that has its share already, otherwise
     * the oldest of all.
     *
     * @param network of the newcomer
     * @param share what an address may have while others wait
     * @return null if there is none
     */
    @Nullable PendingConnection victimFor(long network, int share) {
        PendingConnection found = oldest;
        if (countOf(network) >= share) {
            while (found != null && found.network != network) {
                found = found.newer;
            }
        }
        return found;
    }

    /**
     * Adds the newest.
     *
     * @param connection not among them
     */
    void add(PendingConnection connection) {
        connection.older = newest;
        if (newest == null) {
            oldest = connection;
        } else {
            newest.newer = connection;
        }
        newest = connection;
        connection.listed = true;
        size++;
        perNetwork.merge(connection.network, 1, Integer::sum);
    }

    /**
     * Takes one out. Idempotent.
     *
     * @param connection its request is complete, or it has ended
     */
    void remove(PendingConnection connection) {
        if (!connection.listed) {
            return;
        }
        connection.listed = false;
        PendingConnection older = connection.older;
        PendingConnection newer = connection.newer;
        if (older == null) {
            oldest = newer;
        } else {
            older.newer = newer;
        }
        if (newer == null) {
            newest = older;
        } else {
            newer.older = older;
        }
        connection.older = null;
        connection.newer = null;
        size--;
        perNetwork.computeIfPresent(connection.network, (network, count) -> count == 1 ? null : count - 1);
    }
}
